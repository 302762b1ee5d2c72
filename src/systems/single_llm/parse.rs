//! Parses the letter of a completion, by its meaning or as MedAgentBoard does.

use serde::Serialize;

use crate::data::Choice;
use crate::record::{FinishReason, Parse};
use crate::systems::case::Record;
use crate::systems::reading::answer::harness_letter;
use crate::systems::reading::record::plain_key;
use crate::systems::reading::reply::Fields;
use crate::systems::reading::{harness, said, text, without_thinking};

/// How a letter is asked for and read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Letter<'a> {
    /// Those of the record that holds it; `None`: it is all that is asked for.
    pub keys: Option<Keys<'a>>,
    /// Whether it is read and counted as MedAgentBoard does, bugs included.
    pub mab_compat: bool,
    /// Whether MedAgentBoard counts it without the white space around it.
    pub is_trimmed: bool,
}

/// The keys of a record with an answer.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    pub answer: &'a str,
    pub reason: &'a str,
}

/// A parsed completion.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reading {
    /// The reasons, where the prompt asked for some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
    /// One letter A–J, possibly beyond the options; empty where none was found.
    pub answer: String,
    /// The answer as written; only under `mab_compat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<String>,
    /// Whether its agent agrees, where the prompt asked for that and the completion says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreed: Option<bool>,
}

impl Record for Reading {
    fn answer(&mut self) -> Option<&mut String> {
        Some(&mut self.answer)
    }
}

impl Reading {
    /// What is counted: as MedAgentBoard reads, the answer as written, even an empty one; else the letter, where there is one.
    pub fn counted(&self) -> Option<&str> {
        self.written.as_deref().or(Some(self.answer.as_str()).filter(|answer| !answer.is_empty()))
    }
}

/// Parses a completion on a question with these options. Always succeeds.
pub fn parse(
    completion: &str,
    finish_reason: FinishReason,
    letter: Letter<'_>,
    options: &[Choice],
) -> (Reading, Parse) {
    let (mut reading, parse) = match letter.keys {
        Some(_) if letter.mab_compat => read_as_harness(completion),
        Some(keys) => read_thought(completion, finish_reason, keys, options),
        None => read_letter(completion, finish_reason, options),
    };
    if letter.mab_compat {
        let written = reading.written.as_deref().unwrap_or_default();
        let written = if letter.is_trimmed { written.trim() } else { written };
        reading.answer = harness_letter(written, options.iter().map(|option| option.letter));
    } else {
        reading.written = None;
    }
    let parse = parse.if_read(!reading.answer.is_empty());
    (reading, parse)
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
    (Reading { answer, written: Some(written.to_owned()), ..Reading::default() }, parse)
}

/// Parses a record, repaired where necessary; else searches the text.
fn read_thought(
    completion: &str,
    finish_reason: FinishReason,
    keys: Keys<'_>,
    options: &[Choice],
) -> (Reading, Parse) {
    let key = plain_key(keys.answer);
    let reply = Fields::read(completion, finish_reason, &key);
    let reason = match reply.parse {
        Parse::Fallback => "thought",
        _ => keys.reason,
    };
    let thought = Some(text(reply.get(&plain_key(reason))));
    let (answer, parse) = reply.letter(&key, options);
    (Reading { thought, answer, ..Reading::default() }, parse)
}

/// Parses as the harness does: a JSON object, else labelled lines.
fn read_as_harness(completion: &str) -> (Reading, Parse) {
    let completion = without_thinking(completion);
    let (thought, written, parse) = match harness::object(completion) {
        Some(object) => {
            let field = |keys: [&str; 2]| {
                let mut texts = keys.iter().filter_map(|key| object.get(*key)?.as_str());
                texts.find(|text| !text.is_empty()).unwrap_or_default().to_owned()
            };
            (field(["Thought", "thought"]), field(["Answer", "answer"]), Parse::Ok)
        }
        None => {
            let (thought, written) = lines(completion);
            (thought, written, Parse::Fallback)
        }
    };
    (Reading { thought: Some(thought), written: Some(written), ..Reading::default() }, parse)
}

/// The text after the first colon of the last line that contains "thought", and of the last other line that contains "answer".
fn lines(said: &str) -> (String, String) {
    let (mut thought, mut answer) = ("", "");
    for line in said.lines() {
        let Some((_, value)) = line.split_once(':') else { continue };
        let lower = line.to_lowercase();
        if lower.contains("thought") {
            thought = value.trim();
        } else if lower.contains("answer") {
            answer = value.trim();
        }
    }
    (thought.to_owned(), answer.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::scripted::question;

    const ZERO_SHOT: Letter<'_> = Letter { keys: None, mab_compat: false, is_trimmed: true };
    const SELF_CONSISTENCY: Letter<'_> = Letter { is_trimmed: false, ..ZERO_SHOT };
    const COT: Letter<'_> =
        Letter { keys: Some(Keys { answer: "Answer", reason: "Thought" }), ..SELF_CONSISTENCY };

    fn read(letter: Letter<'_>, mab_compat: bool, text: &str) -> (Reading, Parse) {
        parse(text, FinishReason::Stop, Letter { mab_compat, ..letter }, &question(5).options)
    }

    fn letter(text: &str) -> (String, Parse) {
        let (reading, parse) = read(ZERO_SHOT, false, text);
        (reading.answer, parse)
    }

    fn thought(text: &str) -> (String, String, Parse) {
        let (reading, parse) = read(COT, false, text);
        (reading.thought.unwrap(), reading.answer, parse)
    }

    fn harness(letter: Letter<'_>, text: &str) -> String {
        read(letter, true, text).0.answer
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
            (ZERO_SHOT, "B", Parse::Fallback),
            (COT, r#"{"Thought": "t", "Answer": "B"}"#, Parse::Repaired),
        ] {
            let (reading, parse) = parse(text, FinishReason::Length, letter, &question(5).options);
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
    fn the_harness_reads_almost_any_text_as_its_first_option() {
        assert_eq!(harness(ZERO_SHOT, "The answer is D"), "A");
        assert_eq!(harness(ZERO_SHOT, "D"), "D");
        assert_eq!(harness(ZERO_SHOT, "D."), "D");
        assert_eq!(harness(COT, r#"{"Answer": "D: rash"}"#), "A");
        assert_eq!(harness(COT, r#"{"Answer": "D"}"#), "D");
    }

    #[test]
    fn the_harness_trims_where_it_does() {
        assert_eq!(harness(ZERO_SHOT, "d\n"), "");
        assert_eq!(harness(SELF_CONSISTENCY, "d\n"), "D");
    }

    #[test]
    fn the_harness_finds_no_answer_where_neither_record_nor_line_has_one() {
        assert_eq!(harness(COT, r#"{"Thought": "B"}"#), "");
        assert_eq!(harness(COT, "It must be B"), "");
        assert_eq!(harness(COT, "Thought: x\nAnswer: D"), "D");
        // One line with both words is a thought.
        assert_eq!(harness(COT, "\"Thought\": the answer is: D"), "");
    }

    #[test]
    fn records_have_the_answer_and_the_thought_where_there_is_one() {
        let record = |letter, mab_compat, text| {
            serde_json::to_string(&read(letter, mab_compat, text).0).unwrap()
        };
        let cot = record(COT, false, r#"{"Thought": "t", "Answer": "b"}"#);
        assert_eq!(cot, r#"{"thought":"t","answer":"B"}"#);
        assert_eq!(record(ZERO_SHOT, false, "b"), r#"{"answer":"B"}"#);
        let written = record(ZERO_SHOT, true, "c.");
        assert_eq!(written, r#"{"answer":"C","written":"c."}"#);
    }
}
