//! How MedAgentBoard reads a record, for `mab_compat`: JSON that Python's `json.loads` takes.

use serde_json::{Map, Value};

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
