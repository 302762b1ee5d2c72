//! What a constrained text looks like: JSON schemas of bounded records, a letter, a word, a passage.

use serde_json::{Map, Value, json};

use crate::data::Question;

/// Between elements and after keys: as Python's `json.dumps` writes, so that the text looks as prompts print it. No spaces would save
/// about a quarter of a MED-MAD record's tokens (251 instead of 327 with Qwen3's vocabulary and five options), but tokens that
/// the grammar dictates anyway.
const ITEM_SEPARATOR: &str = ", ";
const KEY_SEPARATOR: &str = ": ";

/// A record of these fields, in this order and no others. Everything is bounded: strings, arrays, numbers by their few values,
/// whitespace by the two separators; and `\uXXXX` escapes, which no character needs, are off.
pub fn root(fields: Vec<(&str, Value)>) -> Value {
    spaced(object(fields))
}

/// A record that is one of these, each as [`root`] has it.
pub fn either(records: [Vec<(&str, Value)>; 2]) -> Value {
    spaced(json!({"anyOf": records.map(object)}))
}

fn spaced(mut schema: Value) -> Value {
    schema["x-guidance"] = json!({
        "whitespace_flexible": false,
        "item_separator": ITEM_SEPARATOR,
        "key_separator": KEY_SEPARATOR,
        "json_allowed_escapes": "nrt\"\\",
    });
    schema
}

pub fn object(fields: Vec<(&str, Value)>) -> Value {
    let required: Vec<&str> = fields.iter().map(|(key, _)| *key).collect();
    let required = json!(required);
    let properties: Map<String, Value> =
        fields.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

pub fn array(items: Value, min_items: usize, max_items: usize) -> Value {
    json!({"type": "array", "items": items, "minItems": min_items, "maxItems": max_items})
}

pub fn string(chars: usize) -> Value {
    json!({"type": "string", "maxLength": chars})
}

/// One of these texts.
pub fn choice(texts: &[&str]) -> Value {
    json!({"enum": texts})
}

/// One of the question's letters.
pub fn answer(question: &Question) -> Value {
    json!({"enum": question.letters().collect::<Vec<_>>()})
}

/// 0, 0.01, …, 0.99, 1, each as its shortest decimal: `multipleOf` would take any number of zeros after the last digit.
pub fn confidence() -> Value {
    let hundredths = (0..=100).map(|hundredths| match hundredths {
        0 | 100 => json!(hundredths / 100),
        _ => json!(f64::from(hundredths) / 100.0),
    });
    json!({"enum": hundredths.collect::<Vec<_>>()})
}

/// A regex: one of the question's letters and nothing else.
pub fn letter(question: &Question) -> String {
    format!("[{}]", question.letters().collect::<String>())
}

/// A regex: any text of one to `chars` characters.
pub fn passage(chars: usize) -> String {
    format!("(?s:.{{1,{chars}}})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Choice;
    use llguidance::api::TopLevelGrammar;
    use llguidance::toktrie::ApproximateTokEnv;
    use llguidance::{Matcher, ParserFactory};

    fn accepts(regex: String, text: &str) -> bool {
        let tokens = ApproximateTokEnv::single_byte_env();
        let factory = ParserFactory::new_simple(&tokens).unwrap();
        let grammar = TopLevelGrammar::from_regex(&regex);
        let mut matcher = Matcher::new(factory.create_parser(grammar));
        let bytes: Vec<u32> = text.bytes().map(u32::from).collect();
        matcher.validate_tokens(&bytes).unwrap() == bytes.len() && {
            matcher.consume_tokens(&bytes).unwrap();
            matcher.is_accepting().unwrap()
        }
    }

    #[test]
    fn the_small_forms_take_what_they_say() {
        let choice = |letter| Choice { letter, text: "x".into() };
        let question = Question {
            id: "q".into(),
            question: "Which?".into(),
            options: "ABC".chars().map(choice).collect(),
            gold: None,
            image: None,
        };
        assert!(accepts(letter(&question), "C"));
        assert!(!accepts(letter(&question), "D"));
        assert!(!accepts(letter(&question), "AB"));
        assert!(accepts(passage(5), "a\n\"é"));
        assert!(!accepts(passage(5), ""));
        assert!(!accepts(passage(5), "abcdef"));
        assert_eq!(answer(&question), json!({"enum": ["A", "B", "C"]}));
    }
}
