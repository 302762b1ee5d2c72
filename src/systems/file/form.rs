//! An answer on a note as a form of fields: written for exemplars, constrained by a grammar, and parsed from replies.

pub mod answer;
mod labels;

use itertools::Itertools;
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::labels::{labelled, other_names, plain};
use super::schema::{FieldOf, Is, ReplyKind, StageEntry, Style};
use crate::data::{Item, Note};
use crate::record::{FinishReason, Grammar, Parse};
use crate::systems::base_llm;
use crate::systems::decoding::Decoding;
use crate::systems::exemplars::Exemplar;
use crate::systems::form;
use crate::systems::reading::correction::{change, quoted};
use crate::systems::reading::verdict::names_error;
use crate::systems::reading::{is_nothing, record, said, text};
use crate::text::align;

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
    /// Whether it says that there is no error, and names one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub contradiction: bool,
}

/// Minimum similarity of a quotation and the sentence that it is matched with.
const LIKENESS: f64 = 0.6;
/// Minimum similarity of a correction without a label and the sentence that it corrects. Of two sentences of a note in a hundred pairs one is
/// as alike; of MEDEC's and MedErrBench's corrections nine in ten are.
pub const CHANGED: f64 = 0.4;
/// The value of a field without a sentence.
const NONE: &str = "NA";

impl StageEntry {
    pub fn field(&self, is: Is) -> Option<&FieldOf> {
        self.fields.iter().find(|field| field.is == is)
    }

    pub fn of_gold(&self, exemplar: &Exemplar, reason: &str) -> String {
        let error = exemplar.error();
        let text = |text: Option<&str>| text.map_or(NONE, str::trim).to_owned();
        let values = self.fields.iter().map(|field| {
            let value = match field.is {
                Is::Flag => field.word(error.is_some()).to_owned(),
                Is::SentenceId => {
                    let id = error.and_then(|error| error.sentence_id);
                    id.map_or("-1".to_owned(), |id| id.to_string())
                }
                Is::Sentence => text(error.and_then(|error| error.sentence.as_deref())),
                Is::Correction => text(error.and_then(|error| error.correction.as_deref())),
                _ => reason.to_owned(),
            };
            (field, value)
        });
        match self.style {
            Style::Lines => {
                let mut lines =
                    values.map(|(field, value)| format!("{}: {}", field.key, one_line(&value)));
                lines.join("\n")
            }
            Style::Json => {
                let mut pairs = values.map(|(field, value)| {
                    format!("{}: {}", json!(field.key), typed(field.is, &value))
                });
                format!("{{{}}}", pairs.join(", "))
            }
        }
    }

    /// The grammar of a reply on this item; of a note's fields, of those without an error or those with one.
    pub fn grammar(&self, item: &Item, decoding: &Decoding) -> Grammar {
        let fields = |is_wrong: bool| -> Vec<(&str, Value)> {
            let schema = |field: &FieldOf| match (field.is, item) {
                (Is::Answer, Item::Question(question)) => form::answer(question),
                (Is::Flag, _) => json!({"const": typed(field.is, field.word(is_wrong))}),
                (Is::SentenceId, _) if !is_wrong => json!({"const": -1}),
                (Is::SentenceId, Item::Note(note)) => {
                    json!({"enum": (0..note.sentences.len()).collect::<Vec<_>>()})
                }
                (Is::Sentence | Is::Correction, _) if !is_wrong => json!({"const": NONE}),
                (Is::Sentence, Item::Note(note)) => json!({"enum": note.sentences}),
                (Is::Correction, Item::Note(note)) => form::string(decoding.sentence_chars(note)),
                _ => decoding.reasons(),
            };
            self.fields.iter().map(|field| (field.key.as_str(), schema(field))).collect()
        };
        let lines = |is_wrong| {
            let line = |(key, schema)| format!("{}: {}", regex::escape(key), on_a_line(&schema));
            fields(is_wrong).into_iter().map(line).join("\n")
        };
        match (self.reply, item, self.style) {
            (ReplyKind::Letter, Item::Question(question), _) => {
                Grammar::Regex(form::letter(question))
            }
            (ReplyKind::Medec, Item::Note(note), _) => base_llm::grammar(note, decoding),
            (_, Item::Question(_), _) => form::record(fields(true)),
            (_, _, Style::Json) => form::either([false, true].map(fields)),
            (_, _, Style::Lines) => Grammar::Regex(one_of([false, true].map(lines))),
        }
    }

    /// Parses the fields of a reply on this note. Without a valid number the sentence is the one most similar to the quotation, or to the
    /// correction.
    pub fn read_fields(
        &self,
        reply: &str,
        finish_reason: FinishReason,
        note: &Note,
    ) -> (Judgement, Parse) {
        // Where no field says whether there is an error, the reply has none of the fields that were asked for.
        let decides = |is: Is| !matches!(is, Is::Reason | Is::Sentence);
        let decisive = |object: &Map<String, Value>| {
            let mut fields = self.fields.iter().filter(|field| decides(field.is));
            fields.any(|field| value(object, field).is_some()).then(|| object.clone())
        };
        let found = match (record::read(reply, finish_reason, decisive), self.style) {
            (Some((object, parse)), Style::Json) => Some((object, parse)),
            (Some((object, _)), Style::Lines) => Some((object, Parse::Repaired)),
            (None, style) => decisive(&labelled(said(reply), &self.fields)).map(|object| {
                let has_all = self.fields.iter().all(|field| value(&object, field).is_some());
                let is_whole = style == Style::Lines && has_all;
                (object, if is_whole { Parse::Ok } else { Parse::Repaired })
            }),
        };
        let Some((object, parse)) = found else { return in_prose(reply, note) };
        let (mut judgement, is_plain) = self.judge(&object, note);
        if judgement.flag == Some(false) && names_error(said(reply)) {
            (judgement.flag, judgement.contradiction) = (None, true);
        }
        let parse = match parse {
            _ if judgement.flag.is_none() => Parse::Unread,
            Parse::Ok if !is_plain => Parse::Repaired,
            parse => parse,
        };
        (judgement, parse)
    }

    /// The judgement of an object's values, and whether each was used as it is, without inference from others.
    fn judge(&self, object: &Map<String, Value>, note: &Note) -> (Judgement, bool) {
        let value = |wanted: Is| value(object, self.field(wanted)?);
        let words = self.field(Is::Flag);
        let has = |wanted: Is| self.field(wanted).is_some();
        let written_flag = value(Is::Flag);
        let said_flag = words.zip(written_flag.as_deref());
        let said_flag = said_flag.and_then(|(words, said)| flag(said, words));
        let is_unclear =
            said_flag.is_none() && written_flag.is_some_and(|said| !said.trim().is_empty());
        let number = value(Is::SentenceId).map(|said| Number::read(&said));
        let quoted = value(Is::Sentence).and_then(|said| sentence(&said));
        let correction = value(Is::Correction).unwrap_or_default();
        let is_answered = !correction.trim().is_empty();
        let meant = |words: &Option<String>| most_similar(note, words.as_deref()?);
        let numbered = match number {
            Some(Number::Some(id)) if id < note.sentences.len() => Some(id),
            _ => None,
        };
        let written = sentence(&correction);
        let place = numbered.or_else(|| meant(&written));
        let correction = written.as_deref().and_then(|text| change(text, place, note));
        // A correction beside words where a number should stand is of the note's sentence that it is like.
        let is_placed = place.is_some() || !matches!(number, Some(Number::Unclear));
        let names_one =
            numbered.is_some() || correction.is_some() && is_placed || meant(&quoted).is_some();
        let implied = match number {
            // A sentence that is named and stays as it is.
            Some(Number::Some(_)) if is_answered && correction.is_none() => None,
            Some(Number::NoSentence) if correction.is_none() => Some(false),
            _ if names_one => Some(true),
            _ => (is_answered && written.is_none()).then_some(false),
        };
        let reason = value(Is::Reason).unwrap_or_default().trim().to_owned();
        let contradiction = said_flag == Some(false) && names_one;
        let flag = said_flag.or(implied.filter(|_| !is_unclear)).filter(|_| !contradiction);
        let mut is_plain = words.is_none() || said_flag.is_some();
        if flag != Some(true) {
            return (Judgement { reason, flag, contradiction, ..Judgement::default() }, is_plain);
        }
        let sentence_id = match numbered {
            None if has(Is::SentenceId) || has(Is::Sentence) => {
                is_plain &= !has(Is::SentenceId);
                meant(&quoted).or_else(|| meant(&written))
            }
            numbered => numbered,
        };
        let mismatch = numbered.is_some() && meant(&quoted).is_some_and(|id| Some(id) != numbered);
        let correction = written.and_then(|text| change(&text, sentence_id.or(place), note));
        (Judgement { reason, flag, sentence_id, correction, mismatch, contradiction }, is_plain)
    }
}

/// The value of a field, found by its key or another name for it.
fn value(object: &Map<String, Value>, field: &FieldOf) -> Option<String> {
    let key = plain(&field.key);
    let mut names = std::iter::once(key.as_str()).chain(other_names(field).iter().copied());
    names.find_map(|name| object.get(name)).map(text)
}

/// Parses a reply without fields: a sentence's number with the sentence, or words that say whether there is an error.
fn in_prose(reply: &str, note: &Note) -> (Judgement, Parse) {
    let (reading, parse) = base_llm::read(reply, note);
    let parse = match parse {
        Parse::Unread => Parse::Unread,
        _ => Parse::Fallback,
    };
    let base_llm::Reading { flag, sentence_id, correction, contradiction } = reading;
    let correction = correction.as_deref().and_then(sentence);
    let said = Judgement { flag, sentence_id, correction, contradiction, ..Judgement::default() };
    (said, parse)
}

/// The sentence of the note that words are quoted from, or the most similar one, where it is similar enough.
pub fn most_similar(note: &Note, words: &str) -> Option<usize> {
    alike(note, words, LIKENESS)
}

/// The only sentence of the note that words are a part of, else the one most like them, where it is so much like them.
pub fn alike(note: &Note, words: &str, likeness: f64) -> Option<usize> {
    let likest = || {
        let found = align(&note.sentences, words, note.language)?;
        (found.ratio >= likeness).then_some(found.index)
    };
    quoted(&note.sentences, words).or_else(likest)
}

/// A field's value as JSON: numbers, `true` and `false` without quotes.
fn typed(is: Is, value: &str) -> Value {
    match (is, value) {
        (Is::Flag, "true") => json!(true),
        (Is::Flag, "false") => json!(false),
        (Is::SentenceId, id) => id.parse::<i64>().map_or(json!(-1), Value::from),
        (_, text) => json!(text),
    }
}

/// The regex of what a field of this schema holds, on one line.
fn on_a_line(schema: &Value) -> String {
    let word = |value: &Value| match value {
        Value::String(text) => regex::escape(&one_line(text)),
        other => other.to_string(),
    };
    match (&schema["const"], schema["enum"].as_array()) {
        (_, Some(all)) => one_of(all.iter().map(word)),
        (Value::Null, None) => format!(r"[^\n]{{1,{}}}", schema["maxLength"]),
        (only, None) => word(only),
    }
}

fn one_of(alternatives: impl IntoIterator<Item = String>) -> String {
    format!("(?:{})", alternatives.into_iter().join("|"))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().join(" ")
}

/// Whether there is an error, by the field's words or common other ones; `None` where neither is said.
fn flag(said: &str, field: &FieldOf) -> Option<bool> {
    let [none, error] = [false, true].map(|is_wrong| field.word(is_wrong));
    let said = said.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let first = said.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is = |word: &str| first == word.to_lowercase();
    let means_error = matches!(error.to_lowercase().as_str(), "yes" | "true" | "1");
    let mut words = said.split(|c: char| !c.is_alphanumeric());
    let is_either = said.contains(" or ")
        && (words.clone().nth(1) == Some("or")
            || words.clone().any(|word| word == none.to_lowercase())
                && words.any(|word| word == error.to_lowercase()));
    match first {
        // The prompt's own words: «0 or 1», or a guess at them.
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
        let before = &text[..text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len())];
        // As in «**-1**», not in «sentence-1»; «the number or -1» is the prompt's.
        let before = before.strip_suffix(['-', '−']);
        let before = before.filter(|before| !before.ends_with(char::is_alphanumeric));
        let digits = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        let numbers: Vec<&str> = digits.collect();
        match numbers[..] {
            _ if is_nothing(&text) => Number::NoSentence,
            _ if before.is_some_and(|before| before.contains(char::is_alphabetic)) => {
                Number::Unclear
            }
            _ if before.is_some() => Number::NoSentence,
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
    let is_none = is_nothing(text) || plain(text) == "no" || !text.contains(char::is_alphabetic);
    (!is_none).then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
