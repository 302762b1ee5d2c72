//! The JSON schema of a record under the grammar (App. C.2).

use serde_json::{Value, json};

use super::settings::{Counterfactual, RecordForm, Settings};
use crate::data::Question;
use crate::systems::form::{array, confidence, object, root, string};

/// Elements of an array at most; `cot` has at least [`MIN_STEPS`].
const MAX_ITEMS: usize = 8;
const MIN_STEPS: usize = 3;

/// The schema of a record on an item with these option letters, its fields in C.2's order; bounded as [`root`] says, strings by
/// `record_chars` and arrays by `MAX_ITEMS`.
pub fn schema(question: &Question, settings: &Settings) -> Value {
    match settings.record {
        RecordForm::Full => full(&question.letters().collect::<Vec<_>>(), settings),
        RecordForm::Short => short(question, settings),
    }
}

/// Reasons first; then one of the options' texts, which says the same as its letter and cannot stand against it.
fn short(question: &Question, settings: &Settings) -> Value {
    let options: Vec<&str> = question.options.iter().map(|option| option.text.as_str()).collect();
    root(vec![
        ("reasoning", settings.decoding.reasons()),
        ("answer", json!({"enum": options})),
        ("confidence", confidence()),
    ])
}

fn full(letters: &[char], settings: &Settings) -> Value {
    let string = string(settings.decoding.record_chars);
    let strings = |min: usize| array(string.clone(), min, MAX_ITEMS);
    let option = |letter: &char| {
        object(vec![
            ("option", json!({"const": letter})),
            ("pros", string.clone()),
            ("cons", string.clone()),
            ("fit_score", json!({"enum": [1, 2, 3, 4, 5]})),
        ])
    };
    let elimination = object(vec![("dx_or_option", string.clone()), ("why_not", string.clone())]);
    let option_analysis = json!({
        "type": "array",
        "prefixItems": letters.iter().map(option).collect::<Vec<_>>(),
        "items": false,
        "minItems": letters.len(),
        "maxItems": letters.len(),
    });
    let reasoning = object(vec![
        ("question_focus", string.clone()),
        ("key_clues", strings(0)),
        ("elimination", array(elimination, 0, MAX_ITEMS)),
        ("final_support", string.clone()),
    ]);
    let check =
        object(vec![("if_chose_other", string.clone()), ("confidence_after_check", confidence())]);
    let moves = object(vec![
        ("main_point", string.clone()),
        ("challenge", strings(0)),
        ("accept", strings(0)),
        ("risk_check", string.clone()),
    ]);
    let mut fields = vec![
        ("cot", strings(MIN_STEPS)),
        ("answer", json!({"enum": letters})),
        ("confidence", confidence()),
        ("option_analysis", option_analysis),
        ("structured_reasoning", reasoning),
    ];
    let is_checked = settings.counterfactual != Counterfactual::Strict;
    fields.extend(is_checked.then_some(("counterfactual_check", check)));
    fields.push(("debate_moves", moves));
    root(fields)
}

#[cfg(test)]
#[path = "../../../tests/common/json_schema.rs"]
mod json_schema;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;
    use crate::record::{FinishReason, Parse};
    use crate::systems::medmad::record::parse;
    use crate::systems::scripted::{matcher, question, settings};
    use llguidance::api::TopLevelGrammar;

    const LETTERS: [char; 10] = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J'];

    /// Walks the grammar byte by byte; `choose` picks among the bytes that may follow.
    fn walk(schema: &Value, mut choose: impl FnMut(&[u8]) -> u8) -> String {
        let mut matcher = matcher(TopLevelGrammar::from_json_schema(schema.clone()));
        let mut text = Vec::new();
        while !matcher.is_stopped() {
            let mask = matcher.compute_mask().unwrap();
            let allowed: Vec<u8> =
                (0..=255).filter(|byte| mask.is_allowed(u32::from(*byte))).collect();
            let byte = choose(&allowed);
            matcher.consume_token(u32::from(byte)).unwrap();
            text.push(byte);
        }
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_short_record_reasons_first_and_answers_with_an_options_text() {
        let question = question(3);
        let schema = schema(&question, &settings(&["record=short"]));
        let fields: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(fields, ["reasoning", "answer", "confidence"]);
        let text = r#"{"reasoning": "It fits.", "answer": "option B", "confidence": 0.8}"#;
        let (record, how) =
            parse(text, FinishReason::Stop, &question.options, &settings(&["record=short"]));
        assert_eq!((record.answer.as_str(), record.confidence, how), ("B", 0.8, Parse::Ok));
        assert_eq!(record.cot, ["It fits."]);
    }

    #[test]
    fn any_walk_gives_a_valid_record() {
        let mut random = SplitMix64::new(3);
        for round in 0..12 {
            let (letters, settings) = match round % 3 {
                0 => (&LETTERS[..2], settings(&["record_chars=4"])),
                1 => (&LETTERS[..4], settings(&["record_chars=6"])),
                _ => (&LETTERS[..10], settings(&["record_chars=3", "counterfactual=strict"])),
            };
            let schema = full(letters, &settings);
            let text = walk(&schema, |allowed| {
                let closes = allowed.contains(&b'"') && random.below(4) == 0;
                match closes {
                    true => b'"',
                    false => allowed[random.below(allowed.len() as u64) as usize],
                }
            });
            let value: Value = serde_json::from_str(&text).unwrap();
            assert!(json_schema::is_valid(&schema, &value), "{text}");
            let keys: Vec<_> = value.as_object().unwrap().keys().collect();
            let fields: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
            assert_eq!(keys, fields);
            let (record, parse) =
                parse(&text, FinishReason::Stop, &question(letters.len()).options, &settings);
            assert_eq!((parse, record.notes), (Parse::Ok, vec![]), "{text}");
            let options: Vec<_> =
                record.option_analysis.iter().map(|one| one.option.clone()).collect();
            assert_eq!(options, letters.iter().map(char::to_string).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_order_is_the_papers() {
        let fields = |pairs: &[&str]| -> Vec<String> {
            let schema = full(&LETTERS[..3], &settings(pairs));
            schema["properties"].as_object().unwrap().keys().cloned().collect()
        };
        let order = [
            "cot",
            "answer",
            "confidence",
            "option_analysis",
            "structured_reasoning",
            "counterfactual_check",
            "debate_moves",
        ];
        assert_eq!(fields(&[]), order);
        assert_eq!(fields(&["counterfactual=paper"]), order);
    }

    #[test]
    fn an_answer_is_one_of_the_items_letters() {
        let schema = full(&LETTERS[..3], &settings(&[]));
        assert_eq!(schema["properties"]["answer"]["enum"], json!(["A", "B", "C"]));
    }

    #[test]
    fn the_grammar_takes_what_the_schema_says_and_no_more() {
        let settings: Settings = settings(&["record_chars=8", "counterfactual=strict"]);
        let schema = full(&LETTERS[..2], &settings);
        let matcher = matcher(TopLevelGrammar::from_json_schema(schema));
        let good = concat!(
            r#"{"cot": ["a\n\"b", "c", "é"], "answer": "B", "confidence": 0.95, "option_analysis": ["#,
            r#"{"option": "A", "pros": "", "cons": "12345678", "fit_score": 5}, "#,
            r#"{"option": "B", "pros": "", "cons": "", "fit_score": 1}], "#,
            r#""structured_reasoning": {"question_focus": "", "key_clues": [], "elimination": [], "#,
            r#""final_support": ""}, "#,
            r#""debate_moves": {"main_point": "", "challenge": [], "accept": ["x"], "risk_check": ""}}"#,
        );
        let accepted = |text: &str| {
            let bytes: Vec<u32> = text.bytes().map(u32::from).collect();
            matcher.deep_clone().validate_tokens(&bytes).unwrap() == bytes.len()
        };
        assert!(accepted(good));
        for (from, to) in [
            ("0.95", "0.950"),
            ("0.95", "1.0"),
            ("0.95", "1.01"),
            ("0.95", "-0.5"),
            ("\"answer\": \"B\"", "\"answer\": \"C\""),
            ("\": 5", "\": 6"),
            ("12345678", "123456789"),
            ("\"c\", \"é\"", "\"c\""),
            ("\"x\"", "\"\\u0041\""),
            ("\"option\": \"B\"", "\"option\": \"C\""),
            ("\"answer\": ", "\"answer\":  "),
            ("}}", "}\n}"),
        ] {
            assert!(good.contains(from));
            assert!(!accepted(&good.replacen(from, to, 1)), "{from} -> {to}");
        }
    }
}
