//! What one agent says in one round (App. C.2), read leniently from whatever JSON it wrote.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::systems::answer::{leading_letter, normalise_answer};
use crate::systems::json_object::text;

/// One agent's record. Texts are kept as written; what is missing is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    pub cot: Vec<String>,
    /// One letter A–J, also one beyond the item's options; empty where none was found.
    pub answer: String,
    /// 0 to 1.
    pub confidence: f64,
    pub option_analysis: Vec<OptionAnalysis>,
    pub structured_reasoning: StructuredReasoning,
    /// `None` where the record has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counterfactual_check: Option<CounterfactualCheck>,
    pub debate_moves: DebateMoves,
    /// What was odd about the text; not the agent's words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OptionAnalysis {
    /// The option's letter, or the text as written where it does not begin with one.
    pub option: String,
    pub pros: String,
    pub cons: String,
    /// 1 to 5 as asked for; as written otherwise, `None` where it is no number.
    pub fit_score: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StructuredReasoning {
    pub question_focus: String,
    pub key_clues: Vec<String>,
    pub elimination: Vec<Elimination>,
    pub final_support: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Elimination {
    pub dx_or_option: String,
    pub why_not: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterfactualCheck {
    pub if_chose_other: String,
    /// Logged, never used in a vote (App. B.4).
    pub confidence_after_check: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DebateMoves {
    pub main_point: String,
    pub challenge: Vec<String>,
    pub accept: Vec<String>,
    pub risk_check: String,
}

/// Something that reading a record had to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// `confidence` is missing or no number; it counts as 0.
    ConfidenceNotNumeric,
    /// `confidence` lay outside of 0 to 1.
    ConfidenceClamped,
    /// The answer is a letter found somewhere in free text, where words such as "A" and "I" match too.
    AnswerFromText,
}

impl Record {
    /// Reads an object that has the key `answer`; anything else is no record.
    ///
    /// Every other field may be missing or of another type. Texts take numbers, and lists or fields
    /// joined by `; `; lists take a single text, line by line; `option_analysis` and `elimination`
    /// take an object keyed by the option instead of a list; numbers take numeric strings.
    pub fn from_json(value: &Value) -> Option<Record> {
        let answer = value.as_object()?.get("answer")?;
        let (confidence, note) = confidence(&value["confidence"]);
        Some(Record {
            cot: texts(&value["cot"]),
            answer: normalise_answer(&text(answer)),
            confidence,
            option_analysis: entries(&value["option_analysis"], "option")
                .into_iter()
                .map(|(key, entry)| option_analysis(key, entry))
                .collect(),
            structured_reasoning: structured_reasoning(&value["structured_reasoning"]),
            counterfactual_check: counterfactual_check(&value["counterfactual_check"]),
            debate_moves: debate_moves(&value["debate_moves"]),
            notes: note.into_iter().collect(),
        })
    }
}

/// Clamped to 0–1 (App. B.2).
fn confidence(value: &Value) -> (f64, Option<Note>) {
    match number(value) {
        None => (0.0, Some(Note::ConfidenceNotNumeric)),
        Some(confidence) if (0.0..=1.0).contains(&confidence) => (confidence.abs(), None),
        Some(confidence) => (confidence.clamp(0.0, 1.0), Some(Note::ConfidenceClamped)),
    }
}

fn option_analysis(key: &str, entry: &Value) -> OptionAnalysis {
    let written = match entry {
        Value::Object(object) => object.get("option").map_or(key.to_string(), text),
        plain if key.is_empty() => text(plain),
        _ => key.to_string(),
    };
    OptionAnalysis {
        option: leading_letter(&written).map_or(written, String::from),
        pros: text(&entry["pros"]),
        cons: text(&entry["cons"]),
        // `{"A": 4}` gives the score alone.
        fit_score: number(&entry["fit_score"]).or_else(|| number(entry)),
    }
}

fn structured_reasoning(value: &Value) -> StructuredReasoning {
    StructuredReasoning {
        question_focus: text(&value["question_focus"]),
        key_clues: texts(&value["key_clues"]),
        elimination: entries(&value["elimination"], "dx_or_option")
            .into_iter()
            .map(|(key, entry)| elimination(key, entry))
            .collect(),
        final_support: text(&value["final_support"]),
    }
}

fn elimination(key: &str, entry: &Value) -> Elimination {
    let (dx_or_option, why_not) = match entry {
        Value::Object(object) => {
            (object.get("dx_or_option").map_or(key.to_string(), text), text(&entry["why_not"]))
        }
        plain if key.is_empty() => (text(plain), String::new()),
        plain => (key.to_string(), text(plain)),
    };
    Elimination { dx_or_option, why_not }
}

fn counterfactual_check(value: &Value) -> Option<CounterfactualCheck> {
    value.is_object().then(|| CounterfactualCheck {
        if_chose_other: text(&value["if_chose_other"]),
        confidence_after_check: number(&value["confidence_after_check"]),
    })
}

fn debate_moves(value: &Value) -> DebateMoves {
    DebateMoves {
        main_point: text(&value["main_point"]),
        challenge: texts(&value["challenge"]),
        accept: texts(&value["accept"]),
        risk_check: text(&value["risk_check"]),
    }
}

/// A list's elements, or an object's values with their keys; an object that has `own_key` is one element.
fn entries<'a>(value: &'a Value, own_key: &str) -> Vec<(&'a str, &'a Value)> {
    match value {
        Value::Array(list) => list.iter().map(|entry| ("", entry)).collect(),
        Value::Object(object) if object.contains_key(own_key) => vec![("", value)],
        Value::Object(object) => object.iter().map(|(key, entry)| (key.as_str(), entry)).collect(),
        _ => Vec::new(),
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(list) => list.iter().map(text).collect(),
        other => {
            text(other).lines().filter(|line| !line.trim().is_empty()).map(String::from).collect()
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Record {
        Record::from_json(&value).unwrap()
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
        assert_eq!(serde_json::from_value::<Record>(value).unwrap(), record);
    }

    #[test]
    fn an_answer_alone_is_a_record() {
        let record = read(json!({"answer": "(c)"}));
        let expected = Record {
            answer: "C".into(),
            notes: vec![Note::ConfidenceNotNumeric],
            ..Record::default()
        };
        assert_eq!(record, expected);
        assert_eq!(Record::from_json(&json!({"Answer": "C"})), None);
        assert_eq!(Record::from_json(&json!("C")), None);
        assert_eq!(Record::from_json(&json!([{"answer": "C"}])), None);
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
        assert_eq!(confidence(json!(-0.1)), (0.0, vec![Note::ConfidenceClamped]));
        for odd in
            [json!("high"), json!(null), json!("NaN"), json!("inf"), json!([0.9]), json!(true)]
        {
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
        let single =
            read(json!({"answer": "A", "option_analysis": {"option": "B", "fit_score": 3}}));
        assert_eq!(single.option_analysis.len(), 1);
        assert_eq!(single.option_analysis[0].option, "B");
    }
}
