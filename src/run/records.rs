//! The lines of a run directory: one model call, one finished item. Field order here is field order on disk.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::text::Language;

/// What names a call: equal keys mean the same call, and the call's seed derives from nothing else.
///
/// `round` 0 is the initial one; `sample` counts repeated draws of one prompt (self-consistency, no-debate).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallKey {
    pub dataset: String,
    pub run: u32,
    pub item: String,
    pub agent: String,
    pub round: u32,
    pub purpose: String,
    pub sample: u32,
}

/// One message of a chat, as it was given to the template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: String,
    pub content: String,
}

/// How a completion was decoded. A field that is off is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingRecord {
    /// 0 means greedy. A remote member decodes as its provider pleases: everything is `null`.
    pub temperature: Option<f32>,
    pub top_k: Option<u32>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
    pub max_tokens: Option<usize>,
    /// Whether a grammar constrained the completion.
    pub constrained: bool,
}

/// How a record was read from a completion's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parse {
    /// The text was the record.
    Ok,
    /// The record was found after stripping fences, trailing commas or closing open brackets.
    Repaired,
    /// No record was found; the answer alone was taken from the text.
    Fallback,
}

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub prompt_tokens: usize,
    /// Of the prompt, found in the prefix index.
    pub cached_tokens: usize,
    pub completion_tokens: usize,
    /// Of the completion, dictated by the constraint and never sampled.
    pub forced_tokens: usize,
}

/// Who an endpoint says answered: its models change under the name that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnsweredBy {
    /// Often more exact than the name that was asked for.
    pub model: Option<String>,
    /// OpenAI's `system_fingerprint`: weights and software together.
    pub fingerprint: Option<String>,
}

/// Why a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// An end-of-turn token, a stop string, or a completed grammar.
    Stop,
    /// `max_tokens` was reached.
    Length,
    /// The grammar could not go on (dead state, exceeded limits).
    Constraint,
    /// The ticket was dropped.
    Cancelled,
}

/// What a call is to the item: the diagnostics of MED-MAD B.7 compare like with like by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// An agent's own answer, before it has seen another's.
    Initial,
    /// An agent's answer in a round of interaction.
    Round,
    /// The answer of whoever decides for all.
    Final,
    /// Whatever gives no answer: a plan, a recruitment, a critique, a synthesis.
    Aside,
}

/// One line of `calls.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRecord {
    pub seq: u64,
    pub dataset: String,
    pub run: u32,
    pub item: String,
    pub agent: String,
    pub round: u32,
    pub purpose: String,
    pub sample: u32,
    pub stage: Stage,
    pub backbone: String,
    /// What fixes the completion's bytes, as one hash: calls with equal ones have equal texts.
    pub request: String,
    /// Of an endpoint alone, where it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AnsweredBy>,
    pub messages: Vec<Message>,
    pub sampling: SamplingRecord,
    /// Below 2^53, so that every JSON reader keeps it exactly.
    pub seed: u64,
    pub text: String,
    pub tokens: Vec<u32>,
    pub record: Value,
    pub parse: Parse,
    pub usage: Usage,
    pub finish_reason: FinishReason,
    pub elapsed_ms: u64,
    pub prev: String,
    pub hash: String,
}

impl CallRecord {
    pub fn key(&self) -> CallKey {
        CallKey {
            dataset: self.dataset.clone(),
            run: self.run,
            item: self.item.clone(),
            agent: self.agent.clone(),
            round: self.round,
            purpose: self.purpose.clone(),
            sample: self.sample,
        }
    }
}

/// What one round of answers came to. Vectors run over `agents`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundRecord {
    pub round: u32,
    pub stage: Stage,
    /// Who answered, in the order of the system; one that was asked more than once comes more than once.
    pub agents: Vec<String>,
    /// The agent behind Doctor A, Doctor B, … in this round's brief; empty in round 0, which has none.
    pub labels: Vec<String>,
    /// Normalised letters; empty where none was found.
    pub answers: Vec<String>,
    /// Empty where the system asks for none.
    pub confidences: Vec<f64>,
    /// What each answer counts in the vote; recalibrated confidences, for MED-MAD (B.8).
    pub weights: Vec<f64>,
    /// What the vote over this round's answers gives.
    pub aggregate: String,
    /// What every agent was shown of the others in this round; empty in round 0.
    pub brief: String,
}

/// One line of `items.jsonl`.
#[expect(
    clippy::large_enum_variant,
    reason = "a run's lines are of one kind: a box saves nothing where they are notes"
)]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ItemRecord {
    Answer(AnswerRecord),
    Note(NoteRecord),
}

impl ItemRecord {
    pub fn run(&self) -> u32 {
        match self {
            ItemRecord::Answer(record) => record.run,
            ItemRecord::Note(record) => record.run,
        }
    }

    pub fn item(&self) -> &str {
        match self {
            ItemRecord::Answer(record) => &record.item,
            ItemRecord::Note(record) => &record.item,
        }
    }

    /// What it says in a word: a letter, or whether the note has an error; empty where it says nothing.
    pub fn says(&self) -> &str {
        match self {
            ItemRecord::Answer(record) => &record.answer,
            ItemRecord::Note(record) => record.flag.map_or("", flag_in_words),
        }
    }

    /// What it should say.
    pub fn gold(&self) -> Option<&str> {
        match self {
            ItemRecord::Answer(record) => record.gold.as_deref(),
            ItemRecord::Note(record) => record.gold.as_ref().map(|gold| flag_in_words(gold.flag)),
        }
    }

    /// Whether the answer, or the flag, is the gold one; what errored or gave none is wrong. `None` without gold.
    pub fn correct(&self) -> Option<bool> {
        let is_right = match self {
            ItemRecord::Answer(record) => {
                record.gold.as_ref()?;
                record.correct == Some(true)
            }
            ItemRecord::Note(record) => record.flag == Some(record.gold.as_ref()?.flag),
        };
        Some(is_right && self.error().is_none())
    }

    /// Why the item was not finished; it counts as wrong, and a resumed run tries it again.
    pub fn error(&self) -> Option<&str> {
        match self {
            ItemRecord::Answer(record) => record.error.as_deref(),
            ItemRecord::Note(record) => record.error.as_deref(),
        }
    }
}

fn flag_in_words(has_error: bool) -> &'static str {
    match has_error {
        true => "error",
        false => "no error",
    }
}

impl From<AnswerRecord> for ItemRecord {
    fn from(record: AnswerRecord) -> ItemRecord {
        ItemRecord::Answer(record)
    }
}

impl From<NoteRecord> for ItemRecord {
    fn from(record: NoteRecord) -> ItemRecord {
        ItemRecord::Note(record)
    }
}

/// Only a note's line has a `detection`; serde's own untagged reading would not say which field is wrong.
impl<'de> Deserialize<'de> for ItemRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ItemRecord, D::Error> {
        let line = Value::deserialize(deserializer)?;
        let record = match line.get("detection") {
            Some(_) => serde_json::from_value(line).map(ItemRecord::Note),
            None => serde_json::from_value(line).map(ItemRecord::Answer),
        };
        record.map_err(D::Error::custom)
    }
}

/// A question, and what a system answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRecord {
    pub dataset: String,
    pub run: u32,
    pub item: String,
    pub gold: Option<String>,
    pub rounds: Vec<RoundRecord>,
    pub answer: String,
    /// `null` where there is no gold.
    pub correct: Option<bool>,
    pub team_confidence: f64,
    pub rationale: String,
    /// The last round that ran: 0 when the panel agreed at once.
    pub rounds_run: u32,
    pub calls: u32,
    /// Whether the vote was tied and the first agent in panel order decided.
    pub tie: bool,
    /// Why the item has no answer; it counts as wrong, and a resumed run tries it again.
    pub error: Option<String>,
    pub prev: String,
    pub hash: String,
}

/// A clinical note, and what a system found in it (MedGuards, Algorithm 1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoteRecord {
    pub dataset: String,
    pub run: u32,
    pub item: String,
    pub language: Language,
    /// `null` where the file gives none.
    pub gold: Option<GoldRecord>,
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
    pub detection: Option<DetectionRecord>,
    /// `null` where nothing was to be located.
    pub localisation: Option<LocalisationRecord>,
    pub calls: u32,
    pub error: Option<String>,
    pub prev: String,
    pub hash: String,
}

/// What a note is scored against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldRecord {
    pub flag: bool,
    pub sentence_id: Option<usize>,
    pub sentence: Option<String>,
    pub correction: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// What the correction must name, by the file.
    pub keywords: Vec<String>,
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
pub struct DetectionRecord {
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
pub struct LocalisationRecord {
    pub source: Source,
    pub agents: Vec<String>,
    /// What each said: a sentence, a number or `NAN`; empty where nothing could be read.
    pub opinions: Vec<String>,
    /// The sentence that each means; `null` where it means none.
    pub sentence_ids: Vec<Option<usize>>,
    /// From 0 to 1.
    pub confidences: Vec<Option<f64>>,
}
