//! Reads an answer to a question, by its meaning or as MedAgentBoard does: of fields, or a letter alone.

use serde::Serialize;
use serde_json::Value;

use super::Form;
use crate::data::Choice;
use crate::record::{FinishReason, Parse};
use crate::systems::case::{Record, Verdict};
use crate::systems::file::schema::{FieldOf, Is};
use crate::systems::reading::answer::harness_letter;
use crate::systems::reading::record::plain_key;
use crate::systems::reading::reply::Fields;
use crate::systems::reading::words::{consents, one_of};
use crate::systems::reading::{json, said, text, without_thinking};
use crate::systems::vote::most;

/// A parsed completion.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reading {
    /// The reasons, where the prompt asked for some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
    /// One letter A–J, possibly beyond the options; empty where none was found.
    pub answer: String,
    /// The answer as written, which MedAgentBoard counts; only where its way is followed.
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
    fn counted(&self) -> Option<&str> {
        self.written.as_deref().or(Some(self.answer.as_str()).filter(|answer| !answer.is_empty()))
    }
}

impl Form<'_> {
    /// Reads an answer to a question with these options; without a field for it, all that is asked for is a letter. `harness`: as
    /// MedAgentBoard does it, bugs included, of so many samples. Always succeeds.
    pub fn answer(
        &self,
        completion: &str,
        finish_reason: FinishReason,
        options: &[Choice],
        harness: Option<u32>,
    ) -> (Reading, Parse) {
        let key = self.key(Is::Answer).map(plain_key);
        let (mut reading, parse) = match (&key, harness) {
            (Some(_), Some(_)) => read_as_harness(completion),
            (Some(key), None) => self.of_fields(completion, finish_reason, key, options),
            (None, _) => read_letter(completion, finish_reason, options),
        };
        match harness {
            Some(samples) => {
                let written = reading.written.as_deref().unwrap_or_default();
                // Of several replies it counts letters with the white space around them.
                let is_trimmed = key.is_none() && samples < 2;
                let written = if is_trimmed { written.trim() } else { written };
                reading.answer = harness_letter(written, options.iter().map(|one| one.letter));
            }
            None => reading.written = None,
        }
        if let (Some(field), Some(key)) = (self.field(Is::Agreed), &key) {
            let own = plain_key(&field.key);
            let reply = Fields::read(completion, finish_reason, &own);
            reading.agreed = agrees(reply.get(&own), field);
            // Of two things that are asked for, each stands under its own key: one «yes» is not both.
            if parse == Parse::Fallback && reply.get(key).is_null() {
                reading.answer.clear();
            }
        }
        let parse = parse.if_read(!reading.answer.is_empty());
        (reading, parse)
    }

    /// Parses a record, repaired where necessary; else searches the text.
    fn of_fields(
        &self,
        completion: &str,
        finish_reason: FinishReason,
        key: &str,
        options: &[Choice],
    ) -> (Reading, Parse) {
        let reply = Fields::read(completion, finish_reason, key);
        let reason = match reply.parse {
            Parse::Fallback => "thought",
            _ => self.key(Is::Reason).unwrap_or_default(),
        };
        let thought = Some(text(reply.get(&plain_key(reason))));
        let (answer, parse) = reply.letter(key, options);
        (Reading { thought, answer, ..Reading::default() }, parse)
    }
}

/// Whether a value says that an agent agrees: one of the field's two words, else what it says.
fn agrees(value: &Value, field: &FieldOf) -> Option<bool> {
    let words = [field.word(false), field.word(true)];
    match value {
        Value::Bool(agreed) => Some(*agreed),
        Value::String(said) => {
            let is = |word: &&str| said.trim().eq_ignore_ascii_case(word);
            let word = words.into_iter().find(is).or_else(|| one_of(said, &words));
            word.map_or_else(|| consents(said), |word| Some(word == words[1]))
        }
        _ => None,
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
    (Reading { answer, written: Some(written.to_owned()), ..Reading::default() }, parse)
}

/// Parses as the harness does: a JSON object, else labelled lines.
fn read_as_harness(completion: &str) -> (Reading, Parse) {
    let completion = without_thinking(completion);
    let (thought, written, parse) = match json::harness_object(completion) {
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

/// The most common letter, the first of several; empty answers have no vote. The harness counts answers as written, and takes the letter of
/// the one that won.
pub fn verdict(readings: &[Reading]) -> Verdict {
    let counted: Vec<&str> = readings.iter().filter_map(Reading::counted).collect();
    let (winner, tie) = most(&counted).map_or(("", false), |(winner, _, tie)| (winner, tie));
    let won = readings.iter().find(|one| one.counted() == Some(winner));
    let answer = won.map_or("", |one| &one.answer);
    let supporters = || readings.iter().filter(|one| one.answer == answer);
    let thoughts = supporters().filter_map(|one| one.thought.as_deref());
    let rationale: Vec<&str> = thoughts.filter(|thought| !thought.is_empty()).collect();
    Verdict {
        answer: answer.to_owned(),
        team_confidence: supporters().count() as f64 / readings.len() as f64,
        rationale: rationale.join("\n"),
        tie,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::scripted::question;
    use crate::systems::table::SystemEntry;

    /// A system with a single stage, and how many samples it draws.
    type Alone = (&'static str, u32);
    const ZERO_SHOT: Alone = ("zero-shot", 1);
    const SELF_CONSISTENCY: Alone = ("self-consistency", 5);
    const COT: Alone = ("cot", 1);

    fn form(name: &str) -> Form<'static> {
        SystemEntry::named(name).unwrap().file.unwrap().stages[0].form()
    }

    fn read((name, samples): Alone, mab_compat: bool, text: &str) -> (Reading, Parse) {
        let harness = mab_compat.then_some(samples);
        form(name).answer(text, FinishReason::Stop, &question(5).options, harness)
    }

    fn letter(text: &str) -> (String, Parse) {
        let (reading, parse) = read(ZERO_SHOT, false, text);
        (reading.answer, parse)
    }

    fn thought(text: &str) -> (String, String, Parse) {
        let (reading, parse) = read(COT, false, text);
        (reading.thought.unwrap(), reading.answer, parse)
    }

    fn harness(alone: Alone, text: &str) -> String {
        read(alone, true, text).0.answer
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
            let (reading, parse) = form(letter).answer(text, FinishReason::Length, &options, None);
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
