//! From a completion's text to a record: as it stands, else repaired, else the answer alone.

use crate::record::{FinishReason, Parse};

use super::record::{Note, Record};
use crate::systems::answer::{answer_field, normalise_answer};
use crate::systems::json_object::{self, without_thinking};

/// Reads the record that a completion holds. Always succeeds: a debate never stops for one bad text.
///
/// A `<think>` section is cut first. What remains is [`Parse::Ok`] where all of it is one JSON object
/// with an `answer`; [`Parse::Repaired`] where such an object stands in it, perhaps fenced, with
/// trailing commas or its last brackets open (words are never deleted); else [`Parse::Fallback`],
/// a record with an answer alone, as is every completion cut short by `max_tokens`.
pub fn parse(text: &str, finish_reason: FinishReason) -> (Record, Parse) {
    match json_object::read(text, finish_reason, Record::from_json) {
        Some(found) => found,
        None => (minimal(without_thinking(text).trim()), Parse::Fallback),
    }
}

/// The minimal record: the value after `"answer":`, else any letter of the text (App. B.2).
fn minimal(text: &str) -> Record {
    if let Some(letter) = answer_field(text, "answer") {
        return Record { answer: letter.to_string(), ..Record::default() };
    }
    let answer = normalise_answer(text);
    let notes = match answer.as_str() {
        "" => Vec::new(),
        _ => vec![Note::AnswerFromText],
    };
    Record { answer, notes, ..Record::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    const GOOD: &str = concat!(
        r#"{"cot": ["the \"worst\" headache — 10/10", "b", "c"], "answer": "B", "confidence": 0.85, "#,
        r#""option_analysis": [{"option": "A", "pros": "{x}", "cons": "]", "fit_score": 2}, "#,
        r#"{"option": "B", "pros": "", "cons": "é\\", "fit_score": 5}], "#,
        r#""structured_reasoning": {"question_focus": "f", "key_clues": [], "#,
        r#""elimination": [{"dx_or_option": "A", "why_not": "w"}], "final_support": "s"}, "#,
        r#""counterfactual_check": {"if_chose_other": "i", "confidence_after_check": 0.8}, "#,
        r#""debate_moves": {"main_point": "m", "challenge": ["x"], "accept": [], "risk_check": "r"}}"#,
    );

    fn parsed(text: &str) -> (Record, Parse) {
        parse(text, FinishReason::Stop)
    }

    fn answer(text: &str) -> (String, Parse) {
        let (record, parse) = parsed(text);
        (record.answer, parse)
    }

    #[test]
    fn a_record_alone_is_ok() {
        let (record, parse) = parsed(&format!("\n{GOOD}\n"));
        assert_eq!(parse, Parse::Ok);
        assert_eq!(record.answer, "B");
        assert_eq!(record.cot[0], "the \"worst\" headache — 10/10");
        assert_eq!(record.debate_moves.risk_check, "r");
        assert_eq!(answer(r#"{"answer": ""}"#), ("".into(), Parse::Ok));
    }

    #[test]
    fn thinking_is_cut() {
        let thought = "<think>\nIt could be {\"answer\": \"A\"}.\n</think>\n\n";
        assert_eq!(parsed(&format!("{thought}{GOOD}")), parsed(GOOD));
        assert_eq!(parsed(&format!("so A </think>{GOOD}")), parsed(GOOD));
        assert_eq!(answer("<think> A or B, I think C"), ("".into(), Parse::Fallback));
        let quoting = GOOD.replace("\"m\"", "\"</think>\"");
        assert_eq!(answer(&quoting), ("B".into(), Parse::Ok));
    }

    #[test]
    fn what_surrounds_a_record_is_stripped() {
        let good = parsed(GOOD).0;
        for text in [
            format!("```json\n{GOOD}\n```"),
            format!("Here it is:\n{GOOD}\nHope {{this}} helps."),
            format!("Given {{the case}}, {GOOD}"),
            format!("[{GOOD}]"),
        ] {
            assert_eq!(parsed(&text), (good.clone(), Parse::Repaired), "{text}");
        }
    }

    #[test]
    fn commas_and_brackets_are_repaired() {
        let repaired = |text: &str| {
            let (record, parse) = parsed(text);
            assert_eq!(parse, Parse::Repaired, "{text}");
            record
        };
        let record = repaired(r#"{"answer": "C", "cot": ["a,]", "b", ], "confidence": 0.5, }"#);
        assert_eq!(record.cot, ["a,]", "b"]);
        assert_eq!(record.confidence, 0.5);
        let record = repaired(r#"{"answer": "C", "cot": ["a", "b"#);
        assert_eq!(record.cot, ["a", "b"]);
        let record = repaired(r#"{"answer": "C", "debate_moves": {"accept": ["x"}, "cot": ["a"]}"#);
        assert_eq!(record.debate_moves.accept, ["x"]);
        assert_eq!(record.cot, ["a"]);
    }

    #[test]
    fn the_answer_alone_is_the_fallback() {
        assert_eq!(
            answer(r#"{"cot": [oops], "answer" : "D", "confidence": 1}"#),
            ("D".into(), Parse::Fallback)
        );
        assert_eq!(answer(r#""answer":B"#), ("B".into(), Parse::Fallback));
        let (record, parse) = parsed("The best option is C.");
        assert_eq!((record.answer.as_str(), parse), ("C", Parse::Fallback));
        assert_eq!(record.notes, [Note::AnswerFromText]);
        assert_eq!(record.confidence, 0.0);
        assert_eq!(answer(r#"{"cot": ["E"]}"#), ("E".into(), Parse::Fallback));
        assert_eq!(answer(""), ("".into(), Parse::Fallback));
        assert_eq!(parsed("42").0, Record::default());
    }

    #[test]
    fn a_completion_cut_by_max_tokens_is_a_fallback() {
        let (record, parse) = parse(GOOD, FinishReason::Length);
        assert_eq!(parse, Parse::Fallback);
        assert_eq!((record.answer.as_str(), record.confidence), ("B", 0.0));
        assert_eq!(record.cot, [""; 0]);
    }

    #[test]
    fn a_record_cut_anywhere_keeps_its_answer() {
        let answered = GOOD.find("\"B\"").unwrap() + 2;
        for cut in (0..GOOD.len()).filter(|cut| GOOD.is_char_boundary(*cut)) {
            let (record, parse) = parsed(&GOOD[..cut]);
            assert_ne!(parse, Parse::Ok, "{cut}");
            if cut >= answered {
                assert_eq!(record.answer, "B", "{cut}");
            }
            if parse == Parse::Repaired && cut > GOOD.find("0.85").unwrap() + 4 {
                assert_eq!(record.confidence, 0.85, "{cut}");
            }
        }
    }

    #[test]
    fn hostile_text_never_panics() {
        const PIECES: [&str; 16] = [
            "{",
            "}",
            "[",
            "]",
            "\"",
            ",",
            ":",
            "\\",
            "\"answer\"",
            "\"B\"",
            "é",
            " ",
            "\n",
            "0.5",
            "<think>",
            "</think>",
        ];
        let mut random = SplitMix64::new(1);
        for _ in 0..20_000 {
            let text: String = (0..random.below(40))
                .map(|_| PIECES[random.below(PIECES.len() as u64) as usize])
                .collect();
            let (record, _) = parsed(&text);
            assert!((0.0..=1.0).contains(&record.confidence), "{text}");
            assert!(record.answer.len() <= 1, "{text}");
        }
        let deep = "{\"answer\":[".repeat(20_000);
        assert_eq!(answer(&deep).0, "");
        let closers = format!("{}{}", "{[".repeat(50_000), "]}".repeat(50_000));
        assert_eq!(parsed(&closers).1, Parse::Fallback);
    }
}
