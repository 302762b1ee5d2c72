//! Building blocks of grammars for constrained decoding: JSON schemas of bounded objects, and regexes of a letter and of prose.

use serde_json::{Map, Value, json};

use crate::data::Question;
use crate::record::Grammar;

/// The separators of Python's `json.dumps`, so that completions look like the JSON in prompts. Without spaces a MED-MAD record would have
/// about a quarter fewer tokens (251 instead of 327 with Qwen3's vocabulary and five options), but only tokens that the grammar forces
/// anyway.
const ITEM_SEPARATOR: &str = ", ";
const KEY_SEPARATOR: &str = ": ";

/// The grammar of a JSON object of these fields, see [`root`].
pub fn record(fields: Vec<(&str, Value)>) -> Grammar {
    Grammar::JsonSchema(root(fields).to_string())
}

/// An object of exactly these fields, in this order. Everything is bounded: strings and arrays in length, numbers to a few values,
/// whitespace to the two separators; escapes by code point, which no character needs, are off.
pub fn root(fields: Vec<(&str, Value)>) -> Value {
    spaced(object(fields))
}

/// One of two objects, each as by [`root`].
pub fn either(records: [Vec<(&str, Value)>; 2]) -> Grammar {
    Grammar::JsonSchema(spaced(json!({"anyOf": records.map(object)})).to_string())
}

/// A schema with one spelling of white space and escapes.
pub fn spaced(mut schema: Value) -> Value {
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
    let properties: Map<String, Value> =
        fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
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

/// 0, 0.01, …, 0.99, 1, each as its shortest decimal; `multipleOf` would allow any number of zeros after the last digit.
pub fn confidence() -> Value {
    let hundredths = (0..=100).map(|hundredths| match hundredths {
        0 | 100 => json!(hundredths / 100),
        _ => json!(f64::from(hundredths) / 100.0),
    });
    json!({"enum": hundredths.collect::<Vec<_>>()})
}

/// A regex of one of the question's letters.
pub fn letter(question: &Question) -> String {
    format!("[{}]", question.letters().collect::<String>())
}

/// A regex of any text of one to `chars` characters.
pub fn passage(chars: usize) -> String {
    format!("(?s:.{{1,{chars}}})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Choice;
    use crate::systems::scripted;
    use llguidance::api::TopLevelGrammar;

    fn accepts(regex: String, text: &str) -> bool {
        scripted::accepts(TopLevelGrammar::from_regex(&regex), text)
    }

    #[test]
    fn the_small_forms_take_what_they_say() {
        let choice = |letter| Choice { letter, text: "x".into() };
        let question = Question {
            id: "q".into(),
            question: "Which?".into(),
            options: "ABC".chars().map(choice).collect(),
            gold: None,
            ..Question::default()
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
