//! Parses the replies of each step: the plan, the follow-up questions, a critique.

use std::collections::HashSet;

use serde_json::Value;

use crate::record::{FinishReason, Parse};
use crate::systems::reading::reply::Fields;
use crate::systems::reading::words::{list_items, one_of};
use crate::systems::reading::{json, plain, said, sentences, text};

pub const INQUIRY: &str = "INQUIRY";
pub const DIAGNOSE: &str = "DIAGNOSE";

/// Parses the plan, [`INQUIRY`] or [`DIAGNOSE`]: the one of the two words that is said, in any case; without either, DIAGNOSE.
pub fn plan(completion: &str, finish_reason: FinishReason) -> (&'static str, Parse) {
    let text = said(completion);
    let found = one_of(text, &[INQUIRY, DIAGNOSE]);
    let action = found.unwrap_or(DIAGNOSE);
    let parse = match finish_reason {
        _ if found.is_none() => Parse::Unread,
        FinishReason::Length => Parse::Fallback,
        _ if text.to_uppercase() == action => Parse::Ok,
        _ => Parse::Repaired,
    };
    (action, parse)
}

/// A question, also one in an object with the key `question`.
fn question(value: &Value) -> String {
    value.get("question").map_or_else(|| text(value), text)
}

/// Parses the follow-up questions, none of them empty; none where the text has no list of them.
pub fn follow_ups(completion: &str, finish_reason: FinishReason) -> (Vec<String>, Parse) {
    let reply = Fields::read(completion, finish_reason, "questions");
    let owned = |lines: Vec<&str>| lines.into_iter().map(str::to_owned).collect();
    let mut questions: Vec<String> = match (reply.get("questions"), reply.parse) {
        (_, Parse::Fallback) => {
            let items = list_items(&reply.text).into_iter();
            owned(items.filter(|item| item.contains(['?', '？'])).collect())
        }
        (Value::Array(list), _) => list.iter().map(question).collect(),
        (Value::String(text), _) => match list_items(text) {
            items if items.is_empty() => owned(text.lines().collect()),
            items => owned(items),
        },
        _ => Vec::new(),
    };
    let is_list = reply.get("questions").is_array() && reply.parse != Parse::Fallback;
    let parse = reply.parse.if_read(is_list || !questions.is_empty());
    questions.retain(|question| !question.trim().is_empty());
    // The last question of a reply that was cut short may be incomplete.
    let is_whole = |question: &mut String| question.trim_end().ends_with(['?', '？', '؟', '.']);
    if finish_reason == FinishReason::Length {
        questions.pop_if(|question| !is_whole(question));
    }
    (questions, parse)
}

/// Parses a critique: its whole text is the feedback; none where hardly a word of it is not what it reviews.
pub fn critique(completion: &str, finish_reason: FinishReason, reviewed: &str) -> (String, Parse) {
    let mut feedback = said(completion).to_owned();
    if plain(reviewed).contains(&plain(&feedback)) || repeats(&feedback, reviewed) {
        feedback.clear();
    }
    let parse = match finish_reason {
        _ if feedback.is_empty() => Parse::Unread,
        FinishReason::Length => Parse::Fallback,
        _ => Parse::Ok,
    };
    (feedback, parse)
}

/// Whether nine tenths of a critique are sentences of what it reviews, or of the fields of a record there.
fn repeats(feedback: &str, reviewed: &str) -> bool {
    let fields = json::objects(reviewed).into_iter().flat_map(|found| found.object.into_values());
    let fields: Vec<String> = fields.map(|field| text(&field)).collect();
    let told = sentences(reviewed).chain(fields.iter().flat_map(|field| sentences(field)));
    let known: HashSet<String> = told.map(plain).collect();
    let (mut all, mut new) = (0, 0);
    for sentence in sentences(feedback).map(plain) {
        all += sentence.len();
        new += if known.contains(&sentence) { 0 } else { sentence.len() };
    }
    10 * new < all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::reading::reply::Explained;
    use crate::systems::scripted::question;

    const STOP: FinishReason = FinishReason::Stop;

    fn conclusion(text: &str, finish_reason: FinishReason) -> (Explained, Parse) {
        Explained::of(&Fields::read(text, finish_reason, "answer"), &question(5).options)
    }

    fn concluded(text: &str) -> (String, String, Parse) {
        let (conclusion, parse) = conclusion(text, STOP);
        (conclusion.explanation, conclusion.answer, parse)
    }

    #[test]
    fn the_word_decides_wherever_it_stands() {
        let plan = |text| plan(text, STOP);
        assert_eq!(plan("DIAGNOSE"), ("DIAGNOSE", Parse::Ok));
        assert_eq!(plan(" inquiry\n"), ("INQUIRY", Parse::Ok));
        assert_eq!(plan("I choose INQUIRY."), ("INQUIRY", Parse::Repaired));
        assert_eq!(plan("INQUIRY, no DIAGNOSE"), ("DIAGNOSE", Parse::Unread));
        assert_eq!(plan("Hm."), ("DIAGNOSE", Parse::Unread));
        assert_eq!(plan(""), ("DIAGNOSE", Parse::Unread));
        assert_eq!(plan("<think>INQUIRY?</think>DIAGNOSE"), ("DIAGNOSE", Parse::Ok));
    }

    #[test]
    fn a_plan_that_denies_a_word_often_is_read_in_linear_time() {
        let started = std::time::Instant::now();
        let text = format!("{}DIAGNOSE", "no INQUIRY; ".repeat(50_000));
        assert_eq!(plan(&text, STOP).0, "DIAGNOSE");
        assert!(started.elapsed().as_secs() < 20);
    }

    #[test]
    fn follow_ups_are_a_list_or_none() {
        let read = |text| follow_ups(text, STOP);
        let both = vec!["How long?".to_owned(), "How strong?".to_owned()];
        assert_eq!(
            read(r#"{"questions": ["How long?", "How strong?", " "]}"#),
            (both.clone(), Parse::Ok)
        );
        assert_eq!(
            read(r#"Sure: {"questions": ["How long?", "How strong?",]}"#),
            (both.clone(), Parse::Repaired)
        );
        assert_eq!(read(r#"{"questions": "How long?\nHow strong?"}"#), (both, Parse::Ok));
        assert_eq!(read(r#"{"questions": 3}"#), (vec![], Parse::Unread));
        assert_eq!(read("How long?"), (vec![], Parse::Unread));
    }

    #[test]
    fn a_conclusion_is_read_and_a_missing_answer_is_none() {
        assert_eq!(
            concluded(r#"{"explanation": "e", "answer": "b) option B"}"#),
            ("e".into(), "B".into(), Parse::Ok)
        );
        assert_eq!(
            concluded("```json\n{\"explanation\": \"e\", \"answer\": \"B\"}\n```"),
            ("e".into(), "B".into(), Parse::Repaired)
        );
        assert_eq!(concluded(r#"{"answer": "J"}"#).1, "J");
        assert_eq!(
            concluded(r#"{"explanation": "A or B"}"#),
            ("A or B".into(), "".into(), Parse::Unread)
        );
        assert_eq!(concluded(r#"{"conclusion": "B"}"#).1, "");
        assert_eq!(concluded(r#"{"answer": null}"#).1, "");
    }

    #[test]
    fn a_text_without_a_record_gives_its_letter() {
        let fallback = |text: &str| {
            let (explanation, answer, parse) = concluded(text);
            assert_eq!(explanation, text);
            (answer, parse)
        };
        assert_eq!(fallback("The answer must be D."), ("D".into(), Parse::Fallback));
        assert_eq!(fallback("[\"C\"]"), ("C".into(), Parse::Fallback));
        assert_eq!(fallback(""), ("".into(), Parse::Unread));
        let cut = r#"{"explanation": "A case", "answer": "D"}"#;
        let (conclusion, parse) = conclusion(cut, FinishReason::Length);
        assert_eq!((conclusion.answer.as_str(), parse), ("D", Parse::Repaired));
    }

    #[test]
    fn a_critique_is_all_of_its_text() {
        let (read, parse) = critique("<think>x</think>\n Add a {warning}. ", STOP, "B.");
        assert_eq!((read.as_str(), parse), ("Add a {warning}.", Parse::Ok));
        assert_eq!(critique(" ", STOP, "").1, Parse::Unread);
        assert_eq!(critique("Add", FinishReason::Length, "").1, Parse::Fallback);
        let (read, parse) =
            critique("It is B: heparin", STOP, "So it is **B**: heparin. It stops the clot.");
        assert_eq!((read.as_str(), parse), ("", Parse::Unread));
        // A draft that is a record says its sentences in a field.
        let draft = r#"{"explanation": "It is B: heparin.\nIt stops the clot.", "answer": "B"}"#;
        let (read, parse) = critique("1. It stops the clot.\nIt is B: heparin.", STOP, draft);
        assert_eq!((read.as_str(), parse), ("", Parse::Unread));
        assert_eq!(critique("It stops the clot. Mind the dose.", STOP, draft).1, Parse::Ok);
    }
}
