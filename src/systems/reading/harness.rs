//! How MedAgentBoard reads replies, for `mab_compat`: JSON that Python's `json.loads` takes, else lines of `key: value`, else nothing.

use serde_json::{Map, Value};

use super::number;
use crate::data::Choice;
use crate::text::Pattern;

/// A comma before a closing bracket.
static TRAILING_COMMA: Pattern = Pattern::new(r",\s*([}\]])");

/// The JSON of a reply, keys as they are written: without its fences, without the word json wherever it stands, without commas before a
/// closing bracket. `None` for what is no JSON; what is JSON but no object has no key, and the harness fails on it too.
pub fn object(text: &str) -> Option<Map<String, Value>> {
    let text = text.replace("```", "").replace("json", "");
    let value: Value = serde_json::from_str(&TRAILING_COMMA.replace_all(text.trim(), "$1")).ok()?;
    Some(value.as_object().cloned().unwrap_or_default())
}

/// What stands before the first colon of each line, in lower case, and what after; the last of equal keys counts.
pub fn lines(text: &str) -> Map<String, Value> {
    let pairs = text.trim().lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(key, value)| (key.trim().to_lowercase(), value.trim().into())).collect()
}

/// The letter of an answer that is an option's letter and nothing else, as the harness compares it with the right one.
pub fn exact_letter(written: &str, options: &[Choice]) -> String {
    let is_option = options.iter().any(|option| written == option.letter.to_string());
    if is_option { written.to_owned() } else { String::new() }
}

/// Python's `float`, from 0 to 1; 0 for what it refuses.
pub fn confidence(value: &Value) -> f64 {
    let truth = value.as_bool().map(|is_true| f64::from(u8::from(is_true)));
    truth.or_else(|| number(value)).map_or(0.0, |number| number.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::systems::scripted::question;

    #[test]
    fn json_is_read_as_python_does_after_the_harness_has_cleaned_it() {
        let read = |text: &str| object(text).map(Value::Object);
        for text in [
            "{\"answer\": \"B\"}",
            "```json\n{\"answer\": \"B\",}\n```",
            " ```{\"answer\": \"B\"}``` ",
            "json {\"answer\": \"B\"\n, }",
        ] {
            assert_eq!(read(text), Some(json!({"answer": "B"})), "{text}");
        }
        assert_eq!(read("{\"a\": [1, 2,]}"), Some(json!({"a": [1, 2]})));
        assert_eq!(read("[\"B\"]"), Some(json!({})));
        for text in ["{'answer': 'B'}", "Sure: {\"answer\": \"B\"}", "{\"answer\": \"B\"", "B", ""]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn the_letter_counts_alone() {
        let options = &question(5).options;
        assert_eq!(exact_letter("B", options), "B");
        for written in ["b", " B", "B: aspirin", "F", "", "(B)"] {
            assert_eq!(exact_letter(written, options), "", "{written}");
        }
    }

    #[test]
    fn confidence_is_cut_and_not_converted() {
        let given = [json!(0.7), json!(90), json!("0.5"), json!("90%"), json!(null), json!(-1)];
        assert_eq!(given.each_ref().map(confidence), [0.7, 1.0, 0.5, 0.0, 0.0, 0.0]);
    }
}
