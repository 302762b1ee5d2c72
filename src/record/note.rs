//! A note's line in `items.jsonl`: the error that a system found in it, and how it was found.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::{Flag, Language, Trajectory};

/// A clinical note and the system's result on it (MedGuards, Algorithm 1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NoteLine {
    pub dataset: String,
    pub run: u32,
    pub item: String,
    pub language: Language,
    /// `null` if the file has none.
    pub gold: Option<GoldLine>,
    /// Whether the note has an error; `null` if no reply could be read, which counts as wrong.
    pub flag: Flag,
    /// The id of the located sentence; `null` if none was located.
    pub sentence_id: Option<usize>,
    /// Its text in the note; empty if none was located.
    pub sentence: String,
    /// If the system named the sentence by its text: the sentence with exactly this text, while `sentence_id` is the most similar one. If the
    /// system gave an id, that id.
    pub exact_sentence_id: Option<usize>,
    /// `null` if there is none.
    pub correction: Option<String>,
    /// The confidence of the agent that corrected last, from 0 to 1.
    pub confidence: Option<f64>,
    /// `null` if the item errored before this stage.
    pub detection: Option<DetectionLine>,
    /// `null` if there was nothing to locate.
    pub localisation: Option<LocalisationLine>,
    /// Only of systems that search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Trajectory>,
    pub calls: u32,
    pub error: Option<String>,
    pub prev: String,
    pub hash: String,
}

impl NoteLine {
    /// How confident detection is in the note's flag, from 0 to 1: the arbiter, else the mean over the agents who gave this flag and state
    /// a confidence. `None` where the note errored, its flag could not be read, or none of these agents states one.
    pub fn stated_confidence(&self) -> Option<f64> {
        let flag = self.flag.said().filter(|_| self.error.is_none())?;
        let detection = self.detection.as_ref()?;
        let deciding = match detection.source {
            SettledBy::Arbitration => detection.flags.len().saturating_sub(1),
            _ => 0,
        };
        let agents = detection.flags.iter().zip(&detection.confidences).skip(deciding);
        let stated = agents.filter(|(own, _)| **own == Some(flag));
        let stated: Vec<f64> = stated.filter_map(|(_, confidence)| *confidence).collect();
        (!stated.is_empty()).then(|| stated.iter().sum::<f64>() / stated.len() as f64)
    }
}

/// The gold annotation that a note is scored against: its one error, or of a correct note none of what an error has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GoldLine {
    pub flag: bool,
    /// The id of one of the note's sentences.
    pub sentence_id: Option<usize>,
    /// As in its own column; whitespace, an apostrophe or the last full stop may differ from the note's.
    pub sentence: Option<String>,
    pub correction: Option<String>,
    /// The error type as in the file, such as `diagnosis`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The keywords that a correction must name, according to the file.
    pub keywords: Vec<String>,
}

/// The opinion of an agent that no sentence has an error.
pub const NO_SENTENCE: &str = "NAN";

/// A stage of the work on a note; its name is the purpose of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum NoteStage {
    Detection,
    Localisation,
    Correction,
}

impl NoteStage {
    /// The purpose of its calls.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// How a stage was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum SettledBy {
    #[strum(to_string = "one agent alone")]
    Single,
    /// The first two agents gave the same result.
    Agreement,
    /// A third agent, which read both results, decided.
    Arbitration,
    /// The majority of three agents that did not see one another's results.
    Vote,
}

impl SettledBy {
    /// The name in tables and figures.
    pub fn in_words(self) -> &'static str {
        self.into()
    }
}

/// How it was decided whether the note has an error. Every vector has one entry for each of `agents`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DetectionLine {
    pub source: SettledBy,
    pub agents: Vec<String>,
    /// Whether each agent found an error; `null` if its answer could not be parsed.
    pub flags: Vec<Option<bool>>,
    /// From 0 to 1.
    pub confidences: Vec<Option<f64>>,
}

/// How the sentence was located. Every vector has one entry for each of `agents`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LocalisationLine {
    pub source: SettledBy,
    pub agents: Vec<String>,
    /// The answer of each agent: a sentence, an id or [`NO_SENTENCE`]; empty if it could not be parsed.
    pub opinions: Vec<String>,
    /// The sentence id that each answer stands for; `null` for none.
    pub sentence_ids: Vec<Option<usize>>,
    /// From 0 to 1.
    pub confidences: Vec<Option<f64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_confidence_in_a_flag_is_that_of_those_who_decided_it() {
        use SettledBy::{Agreement, Arbitration, Single, Vote};
        let yes = Some(true);
        let note = |source, flags: &[Option<bool>], confidences: &[Option<f64>]| NoteLine {
            flag: yes.into(),
            detection: Some(DetectionLine {
                source,
                agents: (1..=flags.len()).map(|number| format!("det{number}")).collect(),
                flags: flags.to_vec(),
                confidences: confidences.to_vec(),
            }),
            ..NoteLine::default()
        };
        let no = Some(false);
        let three = [Some(0.5), Some(0.25), Some(0.75)];
        for (source, flags, confidences, expected) in [
            (Single, &[yes][..], &[Some(0.5)][..], Some(0.5)),
            (Single, &[yes], &[None], None),
            (Agreement, &[yes, yes], &[Some(0.5), Some(1.0)], Some(0.75)),
            (Agreement, &[yes, yes], &[None, Some(1.0)], Some(1.0)),
            (Arbitration, &[yes, no, yes], &three, Some(0.75)),
            (Arbitration, &[yes, no, yes], &[Some(0.5), Some(0.25), None], None),
            (Vote, &[yes, no, yes], &three, Some(0.625)),
        ] {
            let note = note(source, flags, confidences);
            assert_eq!(note.stated_confidence(), expected, "{note:?}");
        }
        let mut unread = note(Agreement, &[yes, yes], &three[..2]);
        unread.flag = Flag::default();
        assert_eq!(unread.stated_confidence(), None);
        let mut errored = note(Agreement, &[yes, yes], &three[..2]);
        errored.error = Some("e".to_owned());
        assert_eq!(errored.stated_confidence(), None);
    }
}
