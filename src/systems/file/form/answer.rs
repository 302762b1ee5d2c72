//! Reads an answer to a question: of fields, or a letter alone.

use serde::Serialize;

use crate::data::Choice;
use crate::record::{FinishReason, Parse};
use crate::systems::case::Verdict;
use crate::systems::file::schema::{Is, StageEntry};
use crate::systems::reading::record::plain_key;
use crate::systems::reading::reply::Fields;
use crate::systems::reading::{said, text, without_thinking};
use crate::systems::vote::{WHOLE, vote};

/// A parsed completion.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reading {
    /// The reasons, where the prompt asked for some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
    /// One letter A–J, possibly beyond the options; empty where none was found.
    pub answer: String,
}

impl StageEntry {
    /// Reads an answer to a question with these options: a record, repaired where necessary, else the text; without a field for the answer
    /// all that is asked for is a letter.
    pub fn read_answer(
        &self,
        completion: &str,
        finish_reason: FinishReason,
        options: &[Choice],
    ) -> (Reading, Parse) {
        let Some(key) = self.field(Is::Answer).map(|field| plain_key(&field.key)) else {
            return read_letter(completion, finish_reason, options);
        };
        let reply = Fields::read(completion, finish_reason, &key);
        let reason = match reply.parse {
            Parse::Fallback => "thought",
            _ => self.field(Is::Reason).map_or("", |field| &field.key),
        };
        let thought = Some(text(reply.get(&plain_key(reason))));
        let (answer, parse) = reply.letter(&key, options);
        (Reading { thought, answer }, parse)
    }
}

/// A letter alone is [`Parse::Ok`], one with marks around it, such as `(B).`, [`Parse::Repaired`]; any other text is searched for its answer.
fn read_letter(
    completion: &str,
    finish_reason: FinishReason,
    options: &[Choice],
) -> (Reading, Parse) {
    let written = without_thinking(completion);
    let (answer, _) = Fields::read(completion, finish_reason, "answer").answer(options);
    let letters = said(completion).chars().filter(|c| c.is_alphanumeric()).count();
    let parse = match (finish_reason, letters) {
        (FinishReason::Length, _) => Parse::Fallback,
        (_, 1) if written.trim().len() == 1 => Parse::Ok,
        (_, 1) => Parse::Repaired,
        _ => Parse::Fallback,
    };
    let parse = parse.if_read(!answer.is_empty());
    (Reading { thought: None, answer }, parse)
}

/// The most common letter, the first of several; empty answers have no vote.
pub fn verdict(readings: &[Reading]) -> Verdict {
    let answers: Vec<&str> = readings.iter().map(|one| one.answer.as_str()).collect();
    let vote = vote(&answers, &vec![WHOLE; answers.len()]);
    let supporters = || readings.iter().filter(|one| one.answer == vote.answer);
    let thoughts = supporters().filter_map(|one| one.thought.as_deref());
    let rationale: Vec<&str> = thoughts.filter(|thought| !thought.is_empty()).collect();
    let team_confidence = supporters().count() as f64 / readings.len() as f64;
    Verdict { team_confidence, rationale: rationale.join("\n"), ..vote }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::scripted::question;
    use crate::systems::table::SystemEntry;

    fn stage(name: &str) -> &'static StageEntry {
        &SystemEntry::named(name).unwrap().file.unwrap().stages[0]
    }

    fn read(name: &str, text: &str) -> (Reading, Parse) {
        stage(name).read_answer(text, FinishReason::Stop, &question(5).options)
    }

    fn letter(text: &str) -> (String, Parse) {
        let (reading, parse) = read("zero-shot", text);
        (reading.answer, parse)
    }

    fn thought(text: &str) -> (String, String, Parse) {
        let (reading, parse) = read("cot", text);
        (reading.thought.unwrap(), reading.answer, parse)
    }

    #[test]
    fn a_letter_alone_is_ok_one_with_marks_repaired_and_any_other_text_searched() {
        assert_eq!(letter("B"), ("B".into(), Parse::Ok));
        assert_eq!(letter(" c\n"), ("C".into(), Parse::Ok));
        assert_eq!(letter("**(D)**."), ("D".into(), Parse::Repaired));
        assert_eq!(letter("B: option B"), ("B".into(), Parse::Fallback));
        assert_eq!(letter("The answer is D."), ("D".into(), Parse::Fallback));
        // A letter beyond the options is kept, and wrong.
        assert_eq!(letter("J"), ("J".into(), Parse::Ok));
        assert_eq!(letter("5"), ("".into(), Parse::Unread));
        assert_eq!(letter(""), ("".into(), Parse::Unread));
        assert_eq!(letter("?!"), ("".into(), Parse::Unread));
    }

    #[test]
    fn thinking_is_cut_from_a_letter() {
        assert_eq!(letter("<think>A or C?</think>\n\nE"), ("E".into(), Parse::Ok));
        assert_eq!(letter("<think>A or"), ("".into(), Parse::Unread));
    }

    #[test]
    fn what_max_tokens_cut_is_never_ok() {
        for (letter, text, expected) in [
            ("zero-shot", "B", Parse::Fallback),
            ("cot", r#"{"Thought": "t", "Answer": "B"}"#, Parse::Repaired),
        ] {
            let options = question(5).options;
            let (reading, parse) = stage(letter).read_answer(text, FinishReason::Length, &options);
            assert_eq!((reading.answer.as_str(), parse), ("B", expected));
        }
    }

    #[test]
    fn a_thought_is_read_by_either_spelling_of_its_keys() {
        let expected = ("t".to_owned(), "B".to_owned(), Parse::Ok);
        assert_eq!(thought(r#"{"Thought": "t", "Answer": "B"}"#), expected);
        assert_eq!(thought(r#"{"thought": "t", "answer": "(b) option B"}"#), expected);
        assert_eq!(
            thought("```json\n{\"Thought\": \"t\", \"Answer\": \"B\",}\n```"),
            ("t".into(), "B".into(), Parse::Repaired)
        );
        assert_eq!(
            thought(r#"{"Thought": ["s", "t"], "Answer": null}"#),
            ("s; t".into(), "".into(), Parse::Unread)
        );
    }

    #[test]
    fn a_malformed_record_gives_what_its_lines_say_and_else_what_the_text_does() {
        let fallback = |thought: &str, answer: &str| -> (String, String, Parse) {
            (thought.into(), answer.into(), Parse::Fallback)
        };
        let unread = || (String::new(), String::new(), Parse::Unread);
        let lines = "Thought: a case of B\nAnswer: option D";
        assert_eq!(thought(lines), fallback("a case of B", "D"));
        // A quote inside of the thought breaks the record, not the field.
        let broken = r#"{"Thought": "the "A" sign", "Answer" : "D"}"#;
        assert_eq!(thought(broken).1, "D");
        assert_eq!(thought("Not E, nor D"), unread());
        assert_eq!(thought("The answer must be E"), fallback("", "E"));
        assert_eq!(thought(r#"{"Thought": "t"}"#).2, Parse::Unread);
        assert_eq!(thought("I cannot help."), unread());
        assert_eq!(thought(""), unread());
    }

    #[test]
    fn records_have_the_answer_and_the_thought_where_there_is_one() {
        let record = |name, text| serde_json::to_string(&read(name, text).0).unwrap();
        let cot = record("cot", r#"{"Thought": "t", "Answer": "b"}"#);
        assert_eq!(cot, r#"{"thought":"t","answer":"B"}"#);
        assert_eq!(record("zero-shot", "b"), r#"{"answer":"B"}"#);
    }
}
