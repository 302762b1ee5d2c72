//! What a reply says under the keys that it was asked for: a JSON object, else one repaired, else lines of `key: value`.

use serde::Serialize;
use serde_json::{Map, Value};

use super::answer::{of_field, of_text};
use super::confidence::clamped;
use super::{joined, json, record, said};
use crate::data::{Choice, Question};
use crate::record::{FinishReason, Grammar, Parse};
use crate::systems::case::{One, Parsed};
use crate::systems::decoding::Decoding;
use crate::systems::form;

/// An answer and the reasons for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Explained {
    pub explanation: String,
    /// One letter A–J, also one beyond the options; empty where none was found.
    pub answer: String,
}

impl Explained {
    /// The answer of a reply on a question with these options, and the reasons for it.
    pub fn of(fields: &Fields, options: &[Choice]) -> (Explained, Parse) {
        let (answer, parse) = fields.answer(options);
        (Explained { explanation: fields.prose("explanation"), answer }, parse)
    }

    /// A reader of replies on this question.
    pub fn reader(question: &Question) -> impl Fn(&str, FinishReason) -> (Explained, Parse) {
        |text, reason| Explained::of(&Fields::read(text, reason, "answer"), &question.options)
    }

    /// The grammar of a reply on a question.
    pub fn grammar(question: &Question, decoding: &Decoding) -> Grammar {
        form::record(vec![("explanation", decoding.reasons()), ("answer", form::answer(question))])
    }
}

impl Parsed for Explained {
    fn answer(&mut self) -> Option<&mut String> {
        Some(&mut self.answer)
    }
}

/// All that a reply says.
pub fn passage(reply: &str) -> (One<String>, Parse) {
    let text = said(reply).to_owned();
    let parse = Parse::Ok.if_read(!text.is_empty());
    One::of("text", (text, parse))
}

/// The fields of a reply that was asked for keys, in lower case.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields {
    /// An object.
    pub fields: Value,
    pub parse: Parse,
    /// Without its `<think>` section.
    pub text: String,
}

impl Fields {
    /// Reads a text that was asked for as a JSON object with `key`. Without such an object, and for every text that was cut short,
    /// its lines count.
    pub fn read(text: &str, finish_reason: FinishReason, key: &str) -> Fields {
        let keyed = |fields: &record::Object| fields.contains_key(key).then(|| fields.clone());
        let found = record::read(text, finish_reason, keyed);
        let text = said(text).to_owned();
        // The list alone, where an object with the list was asked for.
        let list = || {
            let list = json::list(&text).filter(|_| key != "answer")?;
            Some((Map::from_iter([(key.to_owned(), list.into())]), Parse::Repaired))
        };
        // An object without the key is read for its other fields.
        let others = || record::exact(&text, &|fields: &record::Object| Some(fields.clone()));
        let others = || others().unwrap_or_else(|| record::labelled(&text));
        let (fields, parse) = found.or_else(list).unwrap_or_else(|| (others(), Parse::Fallback));
        Fields { fields: fields.into(), parse, text }
    }

    /// What stands under a key; `null` where nothing does.
    pub fn get(&self, key: &str) -> &Value {
        &self.fields[key]
    }

    /// The same as text; where no object was found and no line has the key, all there is.
    pub fn prose(&self, key: &str) -> String {
        let prose = text_of(self.get(key));
        if prose.is_empty() && self.parse == Parse::Fallback { self.text.clone() } else { prose }
    }

    /// The letter under `answer`, see [`Fields::letter`].
    pub fn answer(&self, options: &[Choice]) -> (String, Parse) {
        self.letter("answer", options)
    }

    /// The letter under a key, or where no object was found what the text says, and how it was read.
    pub fn letter(&self, key: &str, options: &[Choice]) -> (String, Parse) {
        match self.parse {
            Parse::Fallback => of_text(&self.text, options),
            parse => of_field(&text_of(self.get(key)), &self.text, options, parse),
        }
    }

    /// What stands under `confidence`; 0 where that is no number.
    pub fn confidence(&self) -> f64 {
        clamped(self.get("confidence")).unwrap_or(0.0)
    }
}

/// A text as it is, a list a line an element.
pub fn text_of(value: &Value) -> String {
    joined(value, "\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;
    use crate::systems::scripted::question;

    fn read(text: &str) -> Fields {
        Fields::read(text, FinishReason::Stop, "answer")
    }

    #[test]
    fn an_object_is_read_whatever_the_case_of_its_keys() {
        let reply = read(r#"{"Explanation": " fits ", "ANSWER": "(b)", "confidence": "0.7"}"#);
        assert_eq!(reply.parse, Parse::Ok);
        assert_eq!((reply.answer(&question(5).options).0.as_str(), reply.confidence()), ("B", 0.7));
        assert_eq!(reply.prose("explanation"), "fits");
        assert_eq!(reply.prose("reasoning"), "");
        let fenced = read("```json\n{\"answer\": \"C\", \"explanation\": [\"x\", \"y\"],}\n```");
        assert_eq!(
            (fenced.parse, fenced.answer(&question(5).options).0.as_str()),
            (Parse::Repaired, "C")
        );
        assert_eq!(fenced.prose("explanation"), "x\ny");
    }

    #[test]
    fn a_placeholder_says_nothing() {
        let reply = read(r#"{"explanation": "...", "answer": "<letter>"}"#);
        assert_eq!(reply.prose("explanation"), "");
        assert_eq!(reply.answer(&question(5).options).0, "");
    }

    #[test]
    fn lines_count_where_there_is_no_object() {
        let reply = read("**Explanation:** it fits: well\n- Answer: D\nConfidence: 0.9");
        assert_eq!(reply.parse, Parse::Fallback);
        assert_eq!(reply.prose("explanation"), "it fits: well");
        assert_eq!((reply.answer(&question(5).options).0.as_str(), reply.confidence()), ("D", 0.9));
        let last = read("answer: A\nanswer: E");
        // Two that nothing joins are no answer.
        assert_eq!(last.answer(&question(5).options).0, "");
        let taken_back = read("answer: A\nNo, wait.\nanswer: E");
        assert_eq!(taken_back.answer(&question(5).options).0, "");
        let broken = read("{\n  \"explanation\": oops,\n  \"answer\": \"C\",\n");
        assert_eq!(
            (broken.parse, broken.answer(&question(5).options).0.as_str()),
            (Parse::Repaired, "C")
        );
        assert_eq!(broken.prose("explanation"), "oops");
    }

    #[test]
    fn the_text_counts_where_there_is_neither() {
        let reply = read("The best option is C.");
        assert_eq!(
            (reply.answer(&question(5).options).0.as_str(), reply.parse),
            ("C", Parse::Fallback)
        );
        assert_eq!(reply.prose("explanation"), "The best option is C.");
        let refusal = read("My policy forbids it.");
        assert_eq!(
            (refusal.answer(&question(5).options).0.as_str(), refusal.confidence()),
            ("", 0.0)
        );
        assert_eq!(read("Sorry, no.").answer(&question(5).options).0, "");
        assert_eq!(read("").answer(&question(5).options).0, "");
    }

    #[test]
    fn a_text_that_was_cut_short_keeps_what_it_said() {
        let cut = r#"{"explanation": "A is out", "answer": "C", "confidence": 0."#;
        let reply = Fields::read(cut, FinishReason::Length, "answer");
        assert_eq!(
            (reply.parse, reply.answer(&question(5).options).0.as_str()),
            (Parse::Repaired, "C")
        );
        assert_eq!(reply.prose("explanation"), "A is out");
    }

    #[test]
    fn an_object_without_the_key_is_none() {
        let reply = read(r#"{"explanation": "because"}"#);
        assert_eq!(reply.parse, Parse::Fallback);
        assert_eq!(reply.prose("explanation"), "because");
        let empty = read(r#"{"answer": null, "explanation": "A or B"}"#);
        assert_eq!((empty.parse, empty.answer(&question(5).options).0.as_str()), (Parse::Ok, ""));
    }

    #[test]
    fn confidence_lies_between_0_and_1() {
        let confidence = |value: &str| {
            read(&format!(r#"{{"answer": "A", "confidence": {value}}}"#)).confidence()
        };
        let cases = [
            ("95", 1.0),
            ("-0.5", 0.0),
            ("-0.0", 0.0),
            ("\"85%\"", 0.0),
            ("\"NaN\"", 0.0),
            ("\" 0.25 \"", 0.25),
            ("null", 0.0),
            ("[0.9]", 0.0),
        ];
        for (given, expected) in cases {
            assert_eq!(confidence(given), expected, "{given}");
            assert!(confidence(given).is_sign_positive());
        }
    }

    #[test]
    fn hostile_text_never_panics() {
        const PIECES: [&str; 12] =
            ["{", "}", "\"", ":", ",", "answer", "é", "\n", "<think>", "</think>", "B", "["];
        let mut random = SplitMix64::new(3);
        for _ in 0..20_000 {
            let text: String = (0..random.below(30))
                .map(|_| PIECES[random.below(PIECES.len() as u64) as usize])
                .collect();
            let reply = read(&text);
            assert!(reply.answer(&question(5).options).0.len() <= 1, "{text}");
            reply.prose("explanation");
        }
    }
}
