//! Records from whatever was written.

use serde_json::json;

use super::*;
use crate::random::SplitMix64;
use crate::systems::reading::answer::normalise_answer;
use crate::systems::scripted::{question, settings};

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
    parse(text, FinishReason::Stop, &question(5).options, &settings(&[]))
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
    assert_eq!(answer(r#"{"answer": ""}"#), ("".into(), Parse::Unread));
}

#[test]
fn an_options_text_is_that_option_and_the_papers_rule_is_a_setting() {
    let by = |reading: &str, field: &str| {
        let text = json!({"answer": field, "confidence": 0.9}).to_string();
        let settings = settings(&[&format!("answer_reading={reading}")]);
        let mut options = question(5).options;
        options[3].text = "Add propranolol".to_owned();
        let (record, parse) = parse(&text, FinishReason::Stop, &options, &settings);
        (record.answer, parse, record.notes)
    };
    let read = |letter: &str, parse, notes| (letter.to_owned(), parse, notes);
    for field in
        ["Add propranolol", "I would add propranolol to the regimen.", "1. Add propranolol"]
    {
        assert_eq!(by("plain", field), read("D", Parse::Repaired, vec![]), "{field}");
        let by_rule = by("paper", field);
        assert_eq!((by_rule.1, by_rule.2), (Parse::Repaired, vec![Note::AnswerByRule]), "{field}");
    }
    assert_eq!(by("paper", "Add propranolol").0, "A");
    for field in ["B or D", "None", "Do not add propranolol", "Option B or add propranolol"] {
        assert_eq!(by("plain", field), read("", Parse::Unread, vec![]), "{field}");
    }
    assert_eq!(by("paper", "B or D"), read("B", Parse::Repaired, vec![Note::AnswerByRule]));
    for reading in ["plain", "paper"] {
        assert_eq!(by(reading, "(b) option B"), read("B", Parse::Ok, vec![]));
    }
}

#[test]
fn thinking_is_cut() {
    let thought = "<think>\nIt could be {\"answer\": \"A\"}.\n</think>\n\n";
    assert_eq!(parsed(&format!("{thought}{GOOD}")), parsed(GOOD));
    assert_eq!(parsed(&format!("so A </think>{GOOD}")), parsed(GOOD));
    assert_eq!(answer("<think> A or B, I think C"), ("".into(), Parse::Unread));
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
        answer(r#""cot": ["oops"], "answer" : "D", "confidence": 1}"#),
        ("D".into(), Parse::Fallback)
    );
    assert_eq!(answer(r#""answer":B"#), ("B".into(), Parse::Fallback));
    let (record, parse) = parsed("The best option is C.");
    assert_eq!((record.answer.as_str(), parse), ("C", Parse::Fallback));
    assert_eq!(record.notes, [Note::AnswerFromText]);
    assert_eq!(record.confidence, 0.0);
    // A record without an answer has none.
    assert_eq!(answer(r#"{"cot": ["E"]}"#), ("".into(), Parse::Unread));
    assert_eq!(answer("A patient with a fever: I would wait."), ("".into(), Parse::Unread));
    assert_eq!(answer(""), ("".into(), Parse::Unread));
    assert_eq!(parsed("42").0, Record::default());
}

#[test]
fn a_completion_cut_by_max_tokens_keeps_what_it_said() {
    let options = question(5).options;
    let (record, how) = parse(GOOD, FinishReason::Length, &options, &settings(&[]));
    assert_eq!(how, Parse::Repaired);
    assert_eq!(record, parsed(GOOD).0);
    let rambling = format!("{GOOD}\n\nLet me know if you want more on this");
    assert_eq!(
        parse(&rambling, FinishReason::Length, &options, &settings(&[])),
        (record, Parse::Repaired)
    );
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
    assert_eq!(parsed(&closers).1, Parse::Unread);
}

fn from_json(value: &Value) -> Option<Record> {
    Record::from_json(value, normalise_answer)
}

fn read(value: Value) -> Record {
    from_json(&value).unwrap()
}

#[test]
fn a_full_record_is_read_as_written() {
    let value = json!({
        "cot": ["one", "two", "three"],
        "answer": "B",
        "confidence": 0.85,
        "option_analysis": [{"option": "A", "pros": "p", "cons": "c", "fit_score": 2.0}],
        "structured_reasoning": {
            "question_focus": "f",
            "key_clues": ["k"],
            "elimination": [{"dx_or_option": "A", "why_not": "w"}],
            "final_support": "s"
        },
        "counterfactual_check": {"if_chose_other": "i", "confidence_after_check": 0.8},
        "debate_moves": {"main_point": "m", "challenge": ["x"], "accept": [], "risk_check": "r"}
    });
    let record = read(value.clone());
    assert_eq!(record.notes, []);
    assert_eq!(serde_json::to_value(&record).unwrap(), value);
}

#[test]
fn an_answer_alone_is_a_record() {
    let record = read(json!({"answer": "(c)"}));
    let expected =
        Record { answer: "C".into(), notes: vec![Note::ConfidenceNotNumeric], ..Record::default() };
    assert_eq!(record, expected);
    assert_eq!(from_json(&json!({"Answer": "C"})), None);
    assert_eq!(from_json(&json!("C")), None);
    assert_eq!(from_json(&json!([{"answer": "C"}])), None);
    assert_eq!(read(json!({"answer": null})).answer, "");
    assert_eq!(read(json!({"answer": ["D"]})).answer, "D");
    assert_eq!(read(json!({"answer": {"letter": "D"}})).answer, "D");
    assert_eq!(read(json!({"answer": 3})).answer, "");
    assert_eq!(read(json!({"answer": "J"})).answer, "J");
}

#[test]
fn confidence_is_a_number_from_0_to_1() {
    let confidence = |value: Value| {
        let record = read(json!({"answer": "A", "confidence": value}));
        (record.confidence, record.notes)
    };
    assert_eq!(confidence(json!(0.7)), (0.7, vec![]));
    assert_eq!(confidence(json!(1)), (1.0, vec![]));
    assert_eq!(confidence(json!(" 0.9 ")), (0.9, vec![]));
    assert_eq!(confidence(json!(95)), (1.0, vec![Note::ConfidenceClamped]));
    assert_eq!(confidence(json!(1.2)), (1.0, vec![Note::ConfidenceClamped]));
    assert_eq!(confidence(json!(-0.1)), (0.0, vec![Note::ConfidenceClamped]));
    for odd in [json!("high"), json!(null), json!("NaN"), json!("inf"), json!([]), json!(true)] {
        assert_eq!(confidence(odd), (0.0, vec![Note::ConfidenceNotNumeric]));
    }
    assert!(confidence(json!(-0.0)).0.is_sign_positive());
}

#[test]
fn other_types_are_taken_where_they_say_the_same() {
    let record = read(json!({
        "answer": "A",
        "cot": "first\n\nsecond",
        "option_analysis": {"A": {"pros": ["x", "y"], "fit_score": "4"}, "B": 2, "vague": "?"},
        "structured_reasoning": {
            "key_clues": "one clue",
            "elimination": {"B": "too slow", "C": {"why_not": "rare"}}
        },
        "counterfactual_check": "none",
        "debate_moves": {"challenge": "why B?", "risk_check": 7}
    }));
    assert_eq!(record.cot, ["first", "second"]);
    let options: Vec<_> = record
        .option_analysis
        .iter()
        .map(|analysis| (analysis.option.as_str(), analysis.fit_score))
        .collect();
    assert_eq!(options, [("A", Some(4.0)), ("B", Some(2.0)), ("vague", None)]);
    assert_eq!(record.option_analysis[0].pros, "x; y");
    let reasoning = record.structured_reasoning;
    assert_eq!(reasoning.key_clues, ["one clue"]);
    assert_eq!(reasoning.elimination[0].why_not, "too slow");
    assert_eq!(reasoning.elimination[1].dx_or_option, "C");
    assert_eq!(reasoning.elimination[1].why_not, "rare");
    assert_eq!(record.counterfactual_check, None);
    assert_eq!(record.debate_moves.challenge, ["why B?"]);
    assert_eq!(record.debate_moves.risk_check, "7");
}

#[test]
fn list_entries_may_be_plain() {
    let record = read(json!({
        "answer": "A",
        "option_analysis": [{"option": "B: aspirin", "fit_score": 4.5}, "C is wrong", "Aspirin"],
        "structured_reasoning": {"elimination": ["C: no fever", {"dx_or_option": "D"}]}
    }));
    let options: Vec<_> =
        record.option_analysis.iter().map(|analysis| analysis.option.as_str()).collect();
    assert_eq!(options, ["B", "C", "Aspirin"]);
    let eliminated: Vec<_> = record
        .structured_reasoning
        .elimination
        .iter()
        .map(|elimination| elimination.dx_or_option.as_str())
        .collect();
    assert_eq!(eliminated, ["C: no fever", "D"]);
    let single = read(json!({"answer": "A", "option_analysis": {"option": "B", "fit_score": 3}}));
    assert_eq!(single.option_analysis.len(), 1);
    assert_eq!(single.option_analysis[0].option, "B");
}

/// The paper's rule: 90 weighs as 1 does, and a word is no number.
#[test]
fn the_papers_rule_clamps_a_confidence_and_says_so() {
    let clamped = |value: Value| {
        let text = json!({"answer": "A", "confidence": value}).to_string();
        let (record, parse) = parsed(&text);
        (record.confidence, record.notes, parse)
    };
    assert_eq!(clamped(json!(0.9)), (0.9, vec![], Parse::Ok));
    assert_eq!(clamped(json!(90)), (1.0, vec![Note::ConfidenceClamped], Parse::Repaired));
    assert_eq!(clamped(json!(2.5)), (1.0, vec![Note::ConfidenceClamped], Parse::Repaired));
    for odd in [json!("high"), json!("85 %")] {
        let expected = (0.0, vec![Note::ConfidenceNotNumeric], Parse::Repaired);
        assert_eq!(clamped(odd), expected);
    }
    // The minimal record has none.
    assert_eq!(parsed("The answer is B. Confidence: 0.8").0.confidence, 0.0);
}
