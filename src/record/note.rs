//! A note's line in `items.jsonl`: what a system found in it, and how.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Language, Trajectory};

/// A clinical note, and what a system found in it (MedGuards, Algorithm 1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoteLine {
    pub dataset: String,
    pub run: u32,
    pub item: String,
    pub language: Language,
    /// `null` where the file gives none.
    pub gold: Option<GoldLine>,
    /// Whether the note has an error; `null` where no label could be read, which is wrong whatever the gold.
    pub flag: Option<bool>,
    /// The sentence that was located; `null` where none was.
    pub sentence_id: Option<usize>,
    /// Its text in the note; empty where none was located.
    pub sentence: String,
    /// The sentence whose text the system's words equal, where they were aligned by likeness; equal to `sentence_id` where the system
    /// gave a number.
    pub exact_sentence_id: Option<usize>,
    /// `null` where there is none.
    pub correction: Option<String>,
    /// Of whoever corrected last, from 0 to 1.
    pub confidence: Option<f64>,
    /// `null` where the item errored before.
    pub detection: Option<DetectionLine>,
    /// `null` where nothing was to be located.
    pub localisation: Option<LocalisationLine>,
    /// Of a system that searches; absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Trajectory>,
    pub calls: u32,
    pub error: Option<String>,
    pub prev: String,
    pub hash: String,
}

/// What a note is scored against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldLine {
    pub flag: bool,
    pub sentence_id: Option<usize>,
    pub sentence: Option<String>,
    pub correction: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// What the correction must name, by the file.
    pub keywords: Vec<String>,
}

/// The opinion of an agent who says that no sentence has an error.
pub const NO_SENTENCE: &str = "NAN";

/// A stage of work on a note; the purpose of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoteStage {
    Detection,
    Localisation,
    Correction,
}

impl NoteStage {
    pub const ALL: [NoteStage; 3] =
        [NoteStage::Detection, NoteStage::Localisation, NoteStage::Correction];

    /// As calls have it for a purpose.
    pub const fn name(self) -> &'static str {
        match self {
            NoteStage::Detection => "detection",
            NoteStage::Localisation => "localisation",
            NoteStage::Correction => "correction",
        }
    }
}

impl fmt::Display for NoteStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who settled a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// One agent alone.
    Single,
    /// Both first agents, who said the same.
    Agreement,
    /// A third agent who had read what both said.
    Arbitration,
    /// The majority of three who had not read one another.
    Vote,
}

impl Source {
    /// As tables and figures say it.
    pub fn in_words(self) -> &'static str {
        match self {
            Source::Single => "one agent alone",
            Source::Agreement => "agreement",
            Source::Arbitration => "arbitration",
            Source::Vote => "vote",
        }
    }
}

/// How it was decided whether the note has an error. Vectors run over `agents`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectionLine {
    pub source: Source,
    pub agents: Vec<String>,
    /// Whether each says that there is an error; `null` where that could not be read.
    pub flags: Vec<Option<bool>>,
    /// From 0 to 1.
    pub confidences: Vec<Option<f64>>,
}

/// How the sentence was located. Vectors run over `agents`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalisationLine {
    pub source: Source,
    pub agents: Vec<String>,
    /// What each said: a sentence, a number or [`NO_SENTENCE`]; empty where nothing could be read.
    pub opinions: Vec<String>,
    /// The sentence that each means; `null` where it means none.
    pub sentence_ids: Vec<Option<usize>>,
    /// From 0 to 1.
    pub confidences: Vec<Option<f64>>,
}
