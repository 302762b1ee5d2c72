//! An agent's record of one round (App. C.2), parsed leniently from whatever JSON the model wrote.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::settings::{AnswerReading, RecordForm, Settings};
use crate::data::Choice;
use crate::record::{FinishReason, Parse};
use crate::systems::case;
use crate::systems::reading::answer::{leading_letter, normalise_answer};
use crate::systems::reading::confidence::clamped;
use crate::systems::reading::reply::Fields;
use crate::systems::reading::{number, text};

/// One agent's record. Texts are kept as written; missing fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub cot: Vec<String>,
    /// One letter A–J, possibly beyond the item's options; empty where none was found.
    pub answer: String,
    /// From 0 to 1.
    pub confidence: f64,
    pub option_analysis: Vec<OptionAnalysis>,
    pub structured_reasoning: StructuredReasoning,
    /// `None` where the record has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counterfactual_check: Option<CounterfactualCheck>,
    pub debate_moves: DebateMoves,
    /// Irregularities that parsing found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OptionAnalysis {
    /// The option's letter; where the text does not begin with one, the text as written.
    pub option: String,
    pub pros: String,
    pub cons: String,
    /// As written, which should be from 1 to 5; `None` where it is no number.
    pub fit_score: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StructuredReasoning {
    pub question_focus: String,
    pub key_clues: Vec<String>,
    pub elimination: Vec<Elimination>,
    pub final_support: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Elimination {
    pub dx_or_option: String,
    pub why_not: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterfactualCheck {
    pub if_chose_other: String,
    /// Logged, never used in a vote (App. B.4).
    pub confidence_after_check: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DebateMoves {
    pub main_point: String,
    pub challenge: Vec<String>,
    pub accept: Vec<String>,
    pub risk_check: String,
}

/// An irregularity of a record, and how it was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// `confidence` is missing or not a number; it counts as 0.
    ConfidenceNotNumeric,
    /// `confidence` was outside 0 to 1.
    ConfidenceClamped,
    /// In records of earlier versions: `confidence` was converted to a number from 0 to 1: `90`, `"85 %"`, `"high"`.
    ConfidenceConverted,
    /// The text is no record; the answer was found in its prose.
    AnswerFromText,
    /// App. B.2 makes another letter of `answer` than it says.
    AnswerByRule,
}

impl case::Parsed for Record {
    fn answer(&mut self) -> Option<&mut String> {
        Some(&mut self.answer)
    }
}

impl Record {
    /// These reasons, and the answer, confidence and scores of `record`; reasons that it lacks stay away.
    pub fn in_place_of(&self, record: &Record) -> Record {
        let swap = |own: &mut String, with: &String| match own.trim() {
            "" => own.clear(),
            _ => own.clone_from(with),
        };
        let mut swapped = record.clone();
        swapped.cot.truncate(self.cot.len());
        swapped.cot.iter_mut().zip(&self.cot).for_each(|(own, with)| swap(own, with));
        let mut final_support = swapped.structured_reasoning.final_support;
        swap(&mut final_support, &self.structured_reasoning.final_support);
        swapped.structured_reasoning =
            StructuredReasoning { final_support, ..StructuredReasoning::default() };
        if let (Some(own), Some(with)) =
            (&mut swapped.counterfactual_check, &self.counterfactual_check)
        {
            swap(&mut own.if_chose_other, &with.if_chose_other);
        }
        swap(&mut swapped.debate_moves.risk_check, &self.debate_moves.risk_check);
        swapped
    }

    /// Parses an object with the key `answer`; anything else is no record.
    ///
    /// Every other field may be missing or of another type. Numbers, and lists or objects joined by `; `, are accepted as texts; a text,
    /// line by line, as a list; an object keyed by the option as `option_analysis` or `elimination`; a numeric string as a number.
    /// `letter` parses the answer.
    pub fn from_json(value: &Value, letter: impl Fn(&str) -> String) -> Option<Record> {
        let answer = value.as_object()?.get("answer")?;
        let (confidence, note) = confidence(&value["confidence"]);
        let [reasoning, check, moves] =
            ["structured_reasoning", "counterfactual_check", "debate_moves"].map(|key| &value[key]);
        Some(Record {
            // A short record's reasons are one text.
            cot: [texts(&value["cot"]), texts(&value["reasoning"])].concat(),
            answer: letter(&text(answer)),
            confidence,
            option_analysis: entries(&value["option_analysis"], "option", option_analysis),
            structured_reasoning: StructuredReasoning {
                question_focus: text(&reasoning["question_focus"]),
                key_clues: texts(&reasoning["key_clues"]),
                elimination: entries(&reasoning["elimination"], "dx_or_option", elimination),
                final_support: text(&reasoning["final_support"]),
            },
            counterfactual_check: check.is_object().then(|| CounterfactualCheck {
                if_chose_other: text(&check["if_chose_other"]),
                confidence_after_check: number(&check["confidence_after_check"]),
            }),
            debate_moves: DebateMoves {
                main_point: text(&moves["main_point"]),
                challenge: texts(&moves["challenge"]),
                accept: texts(&moves["accept"]),
                risk_check: text(&moves["risk_check"]),
            },
            notes: note.into_iter().collect(),
        })
    }
}

/// From 0 to 1 (App. B.2).
fn confidence(value: &Value) -> (f64, Option<Note>) {
    match clamped(value) {
        None => (0.0, Some(Note::ConfidenceNotNumeric)),
        Some(read) if number(value) == Some(read) => (read, None),
        Some(read) => (read, Some(Note::ConfidenceClamped)),
    }
}

fn option_analysis(key: &str, entry: &Value) -> OptionAnalysis {
    let written = match entry {
        Value::Object(object) => object.get("option").map_or(key.to_string(), text),
        plain if key.is_empty() => text(plain),
        _ => key.to_string(),
    };
    OptionAnalysis {
        option: leading_letter(&written).map_or(written, String::from),
        pros: text(&entry["pros"]),
        cons: text(&entry["cons"]),
        // `{"A": 4}` has the score alone.
        fit_score: number(&entry["fit_score"]).or_else(|| number(entry)),
    }
}

fn elimination(key: &str, entry: &Value) -> Elimination {
    let (dx_or_option, why_not) = match entry {
        Value::Object(object) => {
            (object.get("dx_or_option").map_or(key.to_string(), text), text(&entry["why_not"]))
        }
        plain if key.is_empty() => (text(plain), String::new()),
        plain => (key.to_string(), text(plain)),
    };
    Elimination { dx_or_option, why_not }
}

/// What is read of a list's elements, or of an object's values with their keys; an object with `own_key` is itself one element.
fn entries<T>(value: &Value, own_key: &str, read: fn(&str, &Value) -> T) -> Vec<T> {
    match value {
        Value::Array(list) => list.iter().map(|entry| read("", entry)).collect(),
        Value::Object(object) if object.contains_key(own_key) => vec![read("", value)],
        Value::Object(object) => object.iter().map(|(key, entry)| read(key, entry)).collect(),
        _ => Vec::new(),
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(list) => list.iter().map(text).collect(),
        other => {
            text(other).lines().filter(|line| !line.trim().is_empty()).map(String::from).collect()
        }
    }
}

/// Parses the record of a completion. Always succeeds: a debate does not stop for one bad text.
///
/// Where [`Fields::read`] finds no record, the minimal record of App. B.2 has the answer that the text says, if any, and is a
/// [`Parse::Fallback`]; its confidence is 0. A record whose confidence or answer does not
/// count as it is written is no [`Parse::Ok`], and one without an answer is [`Parse::Unread`].
pub fn parse(
    text: &str,
    finish_reason: FinishReason,
    options: &[Choice],
    settings: &Settings,
) -> (Record, Parse) {
    let reply = Fields::read(text, finish_reason, "answer");
    let (said, how) = reply.answer(options);
    if reply.parse == Parse::Fallback {
        let notes = (!said.is_empty()).then_some(Note::AnswerFromText).into_iter().collect();
        return (Record { answer: said, notes, ..Record::default() }, how);
    }
    let letter = |field: &str| match settings.answer_reading {
        AnswerReading::Plain => said.clone(),
        AnswerReading::Paper => normalise_answer(field),
    };
    let record = Record::from_json(&reply.fields, letter);
    let mut record = record.unwrap_or_default();
    // A short record asks for an option's text.
    let is_text = how == Parse::Repaired && settings.record == RecordForm::Full;
    let is_by_rule = record.answer != said;
    let is_stated = !reply.get("confidence").is_null() && !record.notes.is_empty();
    record.notes.extend(is_by_rule.then_some(Note::AnswerByRule));
    let parse = match reply.parse {
        Parse::Ok if is_text || is_by_rule || is_stated => Parse::Repaired,
        parse => parse,
    };
    let parse = parse.if_read(!record.answer.is_empty());
    (record, parse)
}

#[cfg(test)]
mod tests;
