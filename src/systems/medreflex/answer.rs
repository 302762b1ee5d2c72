//! Parses the reply of the agent `parser`: the final answer, and the note's sentence that it means.

use serde::Serialize;
use serde_json::{Map, Value};

use super::step::Action;
use crate::data::Note;
use crate::record::{FinishReason, Parse};
use crate::systems::case::Parsed;
use crate::systems::file::form::most_similar;
use crate::systems::reading::correction::change;
use crate::systems::reading::verdict::{names_error, verdict};
use crate::systems::reading::{self, is_nothing, number, record};

/// The final answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// Whether the note has an error; `None` where nothing could be parsed.
    pub is_error: Option<bool>,
    pub reasoning: String,
    /// The sentence's id as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_id: Option<i64>,
    pub error_sentence: String,
    pub corrected_sentence: String,
    /// The note's sentence; `None` where none is meant.
    pub sentence_id: Option<usize>,
    /// `None` where none was given.
    pub correction: Option<String>,
    /// Whether id and text are those of different sentences; the id counts.
    pub mismatch: bool,
    /// Whether the correction equals the sentence.
    pub unchanged: bool,
    /// Whether it says that there is no error, and names one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub contradiction: bool,
}

impl Parsed for Answer {
    fn correction(&mut self) -> Option<&mut Option<String>> {
        Some(&mut self.correction)
    }
}

/// Parses the reply; where it has no answer, the answer is made of the arguments of `action`.
pub fn read(
    text: &str,
    finish_reason: FinishReason,
    note: &Note,
    action: Option<&Action>,
) -> (Answer, Parse) {
    let said = record::read_or_lines(text, finish_reason, |object| of_object(object, note));
    match (said, action) {
        (Some((answer, parse)), _) => {
            let (mut answer, is_repaired) = placed(answer, note);
            if answer.is_error == Some(false) && names_error(reading::said(text)) {
                (answer.is_error, answer.contradiction) = (None, true);
            }
            let parse = match (is_repaired, parse) {
                _ if answer.is_error.is_none() => Parse::Unread,
                (true, Parse::Ok) => Parse::Repaired,
                (_, parse) => parse,
            };
            (answer, parse)
        }
        // The reply itself was not read.
        (None, action) => {
            let answer = action.and_then(|action| of_action(action, note));
            (answer.unwrap_or_default(), Parse::Unread)
        }
    }
}

/// The answer that an action gives by itself; `None` of a search.
pub fn of_action(action: &Action, note: &Note) -> Option<Answer> {
    let Action::FinalMistake { sentence, correction } = action else { return None };
    let said = Answer {
        is_error: Some(!is_nothing(sentence)),
        error_sentence: sentence.clone(),
        corrected_sentence: correction.clone(),
        ..Answer::default()
    };
    Some(placed(said, note).0)
}

fn of_object(object: &Map<String, Value>, note: &Note) -> Option<Answer> {
    let letters = |key: &str| -> String { key.chars().filter(|c| c.is_alphabetic()).collect() };
    let field = |names: &[&str]| {
        let is_named = |key: &str| names.contains(&letters(key).as_str());
        object.iter().find(|(key, _)| is_named(key)).map(|(_, value)| value)
    };
    let text =
        |names: &[&str]| field(names).map(reading::text).unwrap_or_default().trim().to_owned();
    let error_sentence = text(&["errorsentence", "sentence", "incorrectsentence"]);
    let corrected_sentence = text(&["correctedsentence", "correction", "corrected"]);
    let given_id =
        field(&["sentenceid", "id", "errorsentenceid", "sentencenumber"]).and_then(number);
    let given_id = given_id.filter(|id| id.fract() == 0.0).map(|id| id as i64);
    let stated = field(&["iserror", "error", "haserror", "errorflag"]).and_then(truth);
    // What the other fields say: «The note holds no mistake.» in the sentence's place says that there is none.
    let meant = most_similar(note, &error_sentence);
    let is_sentence = meant.is_some();
    let is_change =
        !is_nothing(&corrected_sentence) && change(&corrected_sentence, meant, note).is_some();
    let placed = match given_id {
        Some(id) if id >= 0 => Some(true),
        Some(_) if is_sentence => None,
        Some(_) => Some(false),
        None if is_nothing(&error_sentence) => Some(false),
        None if is_sentence => Some(true),
        None => None,
    };
    let quoted = verdict(&error_sentence).flag.filter(|has_error| !has_error && !is_sentence);
    let changed = (is_sentence && is_change).then_some(true);
    let said: Vec<bool> = [stated, placed, quoted, changed].into_iter().flatten().collect();
    let (first, is_one) = (said.first().copied(), said.windows(2).all(|pair| pair[0] == pair[1]));
    // A flag beside fields that say nothing yet is one; fields that say another are none.
    first.map(|flag| Answer {
        is_error: is_one.then_some(flag),
        contradiction: !is_one,
        reasoning: text(&["reasoning", "reason", "rationale"]),
        given_id,
        error_sentence,
        corrected_sentence,
        ..Answer::default()
    })
}

fn truth(value: &Value) -> Option<bool> {
    match reading::text(value).trim().to_lowercase().as_str() {
        "true" | "yes" | "1" | "error" => Some(true),
        "false" | "no" | "0" | "none" | "na" => Some(false),
        _ => None,
    }
}

/// The answer with its sentence in the note, and whether that had to be found by its text.
fn placed(mut answer: Answer, note: &Note) -> (Answer, bool) {
    if answer.is_error != Some(true) {
        return (answer, false);
    }
    let same = |one: &str, other: &str| one.split_whitespace().eq(other.split_whitespace());
    let in_range = answer.given_id.and_then(|id| usize::try_from(id).ok());
    let in_range = in_range.filter(|id| *id < note.sentences.len());
    let exact = note.sentences.iter().position(|sentence| same(sentence, &answer.error_sentence));
    let by_text = || {
        let is_given = !answer.error_sentence.is_empty() && !is_nothing(&answer.error_sentence);
        most_similar(note, &answer.error_sentence).filter(|_| is_given)
    };
    let is_repaired = in_range.is_none();
    answer.sentence_id = in_range.or(exact).or_else(by_text);
    if let Some(id) = in_range {
        let is_same = same(&note.sentences[id], &answer.error_sentence);
        answer.mismatch = !is_same && by_text().is_some_and(|meant| meant != id);
    }
    let corrected = &answer.corrected_sentence;
    let is_given = !corrected.is_empty() && !is_nothing(corrected);
    let is_same = |id: usize| is_given && same(corrected, &note.sentences[id]);
    answer.unchanged = answer.sentence_id.is_some_and(is_same);
    answer.correction = change(corrected, answer.sentence_id, note).filter(|_| is_given);
    (answer, is_repaired)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::scripted::{WRONG, note};

    fn read_text(text: &str, action: Option<&Action>) -> (Answer, Parse) {
        read(text, FinishReason::Stop, &note(), action)
    }

    fn said(id: &str, sentence: &str, corrected: &str) -> (Answer, Parse) {
        let json = format!(
            r#"{{"is_error": true, "reasoning": "r", "sentence_id": {id}, "error_sentence": "{sentence}", "corrected_sentence": "{corrected}"}}"#
        );
        read_text(&json, None)
    }

    #[test]
    fn an_id_counts_and_what_it_lacks_is_found_by_the_text() {
        let place = |answer: &(Answer, Parse)| (answer.0.sentence_id, answer.0.mismatch, answer.1);
        assert_eq!(place(&said("1", WRONG, "C")), (Some(1), false, Parse::Ok));
        assert_eq!(
            place(&said("0", "A 30-year-old woman came with wheezing.", "C")),
            (Some(0), false, Parse::Ok)
        );
        assert_eq!(place(&said("2", WRONG, "C")), (Some(2), true, Parse::Ok));
        for id in ["7", "-1", "null", r#""second""#] {
            assert_eq!(place(&said(id, WRONG, "C")), (Some(1), false, Parse::Repaired), "{id}");
        }
        assert_eq!(place(&said("9", "NA", "C")), (None, false, Parse::Repaired));
    }

    #[test]
    fn a_missing_correction_and_an_unchanged_one_are_none() {
        let (answer, _) = said("1", WRONG, "NA");
        assert_eq!((answer.is_error, answer.correction), (Some(true), None));
        let (answer, _) = said("1", WRONG, WRONG);
        assert_eq!((answer.unchanged, answer.correction), (true, None));
        let both = r#"{"is_error": false, "reasoning": "The dose is wrong.", "sentence_id": -1}"#;
        let (answer, parse) = read_text(both, None);
        assert_eq!((answer.is_error, answer.contradiction, parse), (None, true, Parse::Unread));
    }

    #[test]
    fn words_that_deny_an_error_are_no_sentence_of_the_note() {
        let denied = "The note holds no mistake.";
        let (answer, parse) = said("null", denied, "NA");
        assert_eq!((answer.is_error, answer.sentence_id, parse), (None, None, Parse::Unread));
        let text = format!(r#"{{"sentence_id": -1, "error_sentence": "{denied}"}}"#);
        assert_eq!(read_text(&text, None).0.is_error, Some(false));
        // Nor is what is like none of them.
        let (answer, _) = said("null", "Zzz qqq xxx.", "C");
        assert_eq!((answer.is_error, answer.sentence_id), (Some(true), None));
    }

    #[test]
    fn what_cannot_be_read_falls_back_on_the_action() {
        let action = Action::FinalMistake { sentence: WRONG.into(), correction: "C".into() };
        let (answer, parse) = read_text("It is the second sentence.", Some(&action));
        assert_eq!(
            (answer.sentence_id, answer.correction.as_deref(), parse),
            (Some(1), Some("C"), Parse::Unread)
        );
        let none = Action::FinalMistake { sentence: "NA".into(), correction: "NA".into() };
        let (answer, parse) = read_text("", Some(&none));
        assert_eq!(
            (answer.is_error, answer.sentence_id, parse),
            (Some(false), None, Parse::Unread)
        );
        assert_eq!(read_text("", None), (Answer::default(), Parse::Unread));
        let (answer, parse) = read_text(r#"{"is_error": "No", "sentence_id": -1}"#, Some(&action));
        assert_eq!((answer.is_error, parse), (Some(false), Parse::Ok));
        let (answer, _) = read_text(r#"{"sentence_id": -1, "error_sentence": "NA"}"#, None);
        assert_eq!(answer.is_error, Some(false));
    }
}
