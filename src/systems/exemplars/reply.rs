//! An answer on a note as a form of fields: written for exemplars, constrained by a grammar, and parsed from replies.

mod ending;
mod labels;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::labels::{labelled, other_names, plain};
use super::Exemplar;
use crate::data::Note;
use crate::record::{FinishReason, Parse};
use crate::systems::base_llm;
use crate::systems::case;
use crate::systems::decoding::{Decoding, Shape};
use crate::systems::form::{either, string};
use crate::systems::reading::correction::corrected;
use crate::systems::reading::quotation::quoted;
use crate::systems::reading::verdict::verdict;
use crate::systems::reading::{plain as words_of, record, refuses, said, text};
use crate::text::{Aligner, align};

/// The meaning of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Reason,
    /// Whether there is an error: the word for no error, and the word for one.
    Flag([&'static str; 2]),
    Id,
    Sentence,
    Correction,
}

/// How fields are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    #[default]
    Json,
    /// A line `Label: value` for each field.
    Lines,
}

/// The fields of an answer, in order.
#[derive(Debug, PartialEq)]
pub struct Form {
    pub style: Style,
    pub fields: &'static [(&'static str, Field)],
}

/// A parsed answer on a note.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Judgement {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether the note has an error; `None` where the answer does not say.
    pub flag: Option<bool>,
    pub sentence_id: Option<usize>,
    pub correction: Option<String>,
    /// Whether it quotes another sentence than it gives the number of.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mismatch: bool,
}

impl case::Record for Judgement {}

/// Minimum similarity of a quotation and the sentence that it is matched with.
const LIKENESS: f64 = 0.6;
/// Minimum similarity of a correction without a label and the sentence that it corrects. Of two sentences of a note in a hundred pairs one is
/// as alike; of MEDEC's and MedErrBench's corrections nine in ten are.
pub const CHANGED: f64 = 0.4;
/// The value of a field without a sentence.
const NONE: &str = "NA";

impl Form {
    /// An exemplar's gold as an answer.
    pub fn of_gold(&self, exemplar: &Exemplar, reason: &str) -> String {
        let error = exemplar.error();
        let values = self.fields.iter().map(|(key, field)| {
            let value = match field {
                Field::Reason => reason.to_owned(),
                Field::Flag(words) => words[usize::from(error.is_some())].to_owned(),
                Field::Id => error.map_or("-1".to_owned(), |error| error.sentence_id.to_string()),
                Field::Sentence => error.map_or(NONE, |error| error.sentence.trim()).to_owned(),
                Field::Correction => error.map_or(NONE, |error| error.correction.trim()).to_owned(),
            };
            (*key, *field, value)
        });
        match self.style {
            Style::Lines => {
                let lines = values.map(|(key, _, value)| format!("{key}: {}", one_line(&value)));
                lines.collect::<Vec<_>>().join("\n")
            }
            Style::Json => {
                let pairs = values
                    .map(|(key, field, value)| format!("{}: {}", json!(key), typed(field, &value)));
                format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// The grammar of an answer on this note: one without an error, or one with an error.
    pub fn shape(&self, note: &Note, decoding: &Decoding) -> Shape {
        let chars = decoding.sentence_chars(note);
        match self.style {
            Style::Json => Shape::under(&either([false, true].map(|is_wrong| {
                let field = |(key, field): &(&'static str, Field)| {
                    let value = match field {
                        Field::Reason => decoding.reasons(),
                        Field::Flag(words) => {
                            json!({"const": typed(*field, words[usize::from(is_wrong)])})
                        }
                        Field::Id if !is_wrong => json!({"const": -1}),
                        Field::Id => json!({"enum": (0..note.sentences.len()).collect::<Vec<_>>()}),
                        Field::Sentence | Field::Correction if !is_wrong => json!({"const": NONE}),
                        Field::Sentence => json!({"enum": note.sentences}),
                        Field::Correction => string(chars),
                    };
                    (*key, value)
                };
                self.fields.iter().map(field).collect()
            }))),
            Style::Lines => {
                let alternatives = [false, true].map(|is_wrong| {
                    let line = |(key, field): &(&'static str, Field)| {
                        let value = match field {
                            Field::Reason => format!(r"[^\n]{{1,{}}}", decoding.reason_chars()),
                            Field::Flag(words) => regex::escape(words[usize::from(is_wrong)]),
                            Field::Id if !is_wrong => "-1".to_owned(),
                            Field::Id => one_of((0..note.sentences.len()).map(|id| id.to_string())),
                            Field::Sentence | Field::Correction if !is_wrong => NONE.to_owned(),
                            Field::Sentence => one_of(
                                note.sentences.iter().map(|one| regex::escape(&one_line(one))),
                            ),
                            Field::Correction => format!(r"[^\n]{{1,{chars}}}"),
                        };
                        format!("{}: {value}", regex::escape(key))
                    };
                    self.fields.iter().map(line).collect::<Vec<_>>().join("\n")
                });
                Shape::regex(one_of(alternatives))
            }
        }
    }

    /// Parses a reply on this note. Without a valid number the sentence is the one most similar to the quotation, or to the correction.
    pub fn read(
        &self,
        reply: &str,
        finish_reason: FinishReason,
        note: &Note,
    ) -> (Judgement, Parse) {
        // Where no field says whether there is an error, the reply has none of the form's fields.
        let decides = |field: Field| !matches!(field, Field::Reason | Field::Sentence);
        let of_fields = |fields: &Map<String, Value>| {
            let values = self.values(fields);
            let mut pairs = self.fields.iter().zip(&values);
            pairs.any(|((_, field), value)| decides(*field) && value.is_some()).then_some(values)
        };
        let of_object = |value: &Value| of_fields(value.as_object()?);
        let found = match (record::read(reply, finish_reason, of_object), self.style) {
            (Some((values, parse)), Style::Json) => Some((values, parse)),
            (Some((values, _)), Style::Lines) => Some((values, Parse::Repaired)),
            (None, style) => of_fields(&labelled(said(reply), self)).map(|values| {
                let is_whole = style == Style::Lines && values.iter().all(Option::is_some);
                (values, if is_whole { Parse::Ok } else { Parse::Repaired })
            }),
        };
        let Some((values, parse)) = found else {
            return match self.fields {
                [(_, Field::Correction)] => alone(reply, note),
                _ => in_prose(reply, note),
            };
        };
        let (judgement, is_plain) = self.judge(&values, note);
        let parse = match parse {
            _ if judgement.flag.is_none() => Parse::Unread,
            Parse::Ok if !is_plain => Parse::Repaired,
            parse => parse,
        };
        (judgement, parse)
    }

    /// The value of each field, found by its key or another name for it.
    fn values(&self, object: &Map<String, Value>) -> Vec<Option<String>> {
        let value = |(key, field): &(&'static str, Field)| {
            let key = plain(key);
            let names = std::iter::once(key.as_str()).chain(other_names(*field).iter().copied());
            names.into_iter().find_map(|name| object.get(name)).map(text)
        };
        self.fields.iter().map(value).collect()
    }

    /// The judgement of the fields' values, and whether each value was used as it is, without inference from others.
    fn judge(&self, values: &[Option<String>], note: &Note) -> (Judgement, bool) {
        let value = |wanted: fn(Field) -> bool| {
            let mut pairs = self.fields.iter().zip(values);
            pairs.find(|((_, field), _)| wanted(*field)).and_then(|(_, value)| value.as_deref())
        };
        let words = self.fields.iter().find_map(|(_, field)| match field {
            Field::Flag(words) => Some(*words),
            _ => None,
        });
        let has = |wanted: Field| self.fields.iter().any(|(_, field)| *field == wanted);
        let written_flag = value(|field| matches!(field, Field::Flag(_)));
        let said_flag = words.zip(written_flag).and_then(|(words, said)| flag(said, words));
        let is_unclear =
            said_flag.is_none() && written_flag.is_some_and(|said| !said.trim().is_empty());
        let number = value(|field| field == Field::Id).map(Number::read);
        let quoted = value(|field| field == Field::Sentence).and_then(sentence);
        let correction = value(|field| field == Field::Correction);
        let is_answered = correction.is_some_and(|correction| !correction.trim().is_empty());
        let correction = correction.and_then(sentence);
        let repeats = |correction: &String| {
            note.sentences.iter().any(|sentence| words_of(sentence) == words_of(correction))
        };
        let meant = |words: &Option<String>| most_similar(note, words.as_deref()?);
        let implied = match number {
            // A sentence as it stands corrects nothing.
            Some(Number::NoSentence) if correction.as_ref().is_some_and(repeats) => Some(false),
            _ if is_answered => Some(correction.is_some()),
            Some(Number::Some(_)) => Some(true),
            Some(Number::NoSentence) => Some(false),
            Some(Number::Unclear) | None => meant(&quoted).map(|_| true),
        };
        let reason = value(|field| field == Field::Reason).unwrap_or_default().trim().to_owned();
        let flag = said_flag.or(implied.filter(|_| !is_unclear));
        let mut is_plain = words.is_none() || said_flag.is_some();
        if flag != Some(true) {
            return (Judgement { reason, flag, ..Judgement::default() }, is_plain);
        }
        let numbered = match number {
            Some(Number::Some(id)) if id < note.sentences.len() => Some(id),
            _ => None,
        };
        let sentence_id = match numbered {
            None if has(Field::Id) || has(Field::Sentence) => {
                is_plain &= !has(Field::Id);
                meant(&quoted).or_else(|| meant(&correction))
            }
            numbered => numbered,
        };
        let mismatch = numbered.is_some() && meant(&quoted).is_some_and(|id| Some(id) != numbered);
        let correction = correction.map(|text| without_number(&text, sentence_id, note));
        (Judgement { reason, flag, sentence_id, correction, mismatch }, is_plain)
    }
}

/// Parses a reply without fields: a closing sentence, a sentence's number with the sentence, or words that say whether there is an error.
fn in_prose(reply: &str, note: &Note) -> (Judgement, Parse) {
    if let Some(judgement) = ending::read(said(reply), note) {
        return (judgement, Parse::Repaired);
    }
    let (reading, parse) = base_llm::read(reply, note, false);
    let parse = match parse {
        Parse::Unread => Parse::Unread,
        _ => Parse::Fallback,
    };
    let base_llm::Reading { flag, sentence_id, correction } = reading;
    let correction = correction.as_deref().and_then(sentence);
    (Judgement { flag, sentence_id, correction, ..Judgement::default() }, parse)
}

/// The sentence of the note that words are quoted from, or the most similar one, where it is similar enough.
pub fn most_similar(note: &Note, words: &str) -> Option<usize> {
    let likest = || {
        let found = align(&note.sentences, words, note.language, Aligner::default())?;
        (found.ratio >= LIKENESS).then_some(found.index)
    };
    quoted(&note.sentences, words).or_else(likest)
}

/// Parses a reply that should be a correction and nothing else.
fn alone(reply: &str, note: &Note) -> (Judgement, Parse) {
    let text = corrected(said(reply));
    let is_sentence = !text.contains('\n') && verdict(text).is_none() && !refuses(text);
    let found = align(&note.sentences, text, note.language, Aligner::default());
    let is_like = found.is_some_and(|found| found.ratio >= CHANGED);
    let correction = sentence(text).filter(|_| is_sentence && is_like);
    let parse = Parse::Fallback.if_read(correction.is_some());
    let flag = correction.as_ref().map(|_| true);
    (Judgement { flag, correction, ..Judgement::default() }, parse)
}

/// A field's value as JSON: numbers, `true` and `false` without quotes.
fn typed(field: Field, value: &str) -> Value {
    match (field, value) {
        (Field::Flag(_), "true") => json!(true),
        (Field::Flag(_), "false") => json!(false),
        (Field::Id, id) => id.parse::<i64>().map_or(json!(-1), Value::from),
        (_, text) => json!(text),
    }
}

fn one_of(alternatives: impl IntoIterator<Item = String>) -> String {
    let alternatives: Vec<String> = alternatives.into_iter().collect();
    format!("(?:{})", alternatives.join("|"))
}

/// Text on one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether there is an error, by the form's words or common other ones; `None` where neither is said.
fn flag(said: &str, [none, error]: [&str; 2]) -> Option<bool> {
    let said = said.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let first = said.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is = |word: &str| first == word.to_lowercase();
    let means_error = matches!(error.to_lowercase().as_str(), "yes" | "true" | "1");
    let mut words = said.split(|c: char| !c.is_alphanumeric());
    let is_either = said.contains(" or ")
        && words.clone().any(|word| word == none.to_lowercase())
        && words.any(|word| word == error.to_lowercase());
    match first {
        // The prompt's own words: «0 or 1».
        _ if is_either => None,
        _ if is(none) => Some(false),
        _ if is(error) => Some(true),
        "yes" | "true" | "1" => Some(means_error),
        "no" | "false" | "0" => Some(!means_error),
        "correct" | "none" | "na" => Some(false),
        "incorrect" | "error" | "wrong" => Some(true),
        _ => None,
    }
}

/// The value of a field for a sentence's number.
#[derive(Clone, Copy)]
enum Number {
    Some(usize),
    /// −1, or that there is none.
    NoSentence,
    /// Nothing, several numbers, or other words.
    Unclear,
}

impl Number {
    fn read(said: &str) -> Number {
        let text = base_llm::with_ascii_digits(said.trim());
        let is_none = matches!(plain(&text).as_str(), "na" | "n_a" | "none" | "null" | "no_error");
        let before = &text[..text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len())];
        // As in «**-1**», not in «sentence-1».
        let is_negative = before
            .strip_suffix(['-', '−'])
            .is_some_and(|before| !before.ends_with(char::is_alphanumeric));
        let digits = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        let numbers: Vec<&str> = digits.collect();
        match numbers[..] {
            _ if is_none || is_negative => Number::NoSentence,
            [one] => one.parse().map_or(Number::Unclear, Number::Some),
            _ => Number::Unclear,
        }
    }
}

/// A sentence without quotes around it; `None` for a value that means that there is none.
fn sentence(said: &str) -> Option<String> {
    let quotes: &[char] = &['"', '“', '”', '`', '*'];
    let text = said.trim().trim_matches(quotes).trim();
    // A number, such as -1, is no sentence either.
    let none = ["na", "n_a", "none", "null", "no_error", "no_correction", "no_correction_needed"];
    let is_word = |c: char| c.is_alphabetic();
    (!none.contains(&plain(text).as_str()) && text.chars().any(is_word)).then(|| text.to_owned())
}

/// A correction without its sentence's number in the prompt, which models repeat.
pub fn without_number(text: &str, sentence_id: Option<usize>, note: &Note) -> String {
    let number = sentence_id.map(|id| id.to_string()).unwrap_or_default();
    let rest = text.strip_prefix(&number).filter(|_| !number.is_empty());
    let rest = rest.map(|rest| rest.trim_start_matches(['.', ':', ')']));
    let rest = rest.filter(|rest| rest.starts_with(char::is_whitespace));
    let is_own = sentence_id.is_some_and(|id| note.sentences[id].starts_with(&number));
    rest.filter(|_| !is_own).map_or(text.to_owned(), |rest| rest.trim().to_owned())
}

#[cfg(test)]
mod tests;
