//! Lenient reading of a model's record: any shape is readable, what is missing is empty.

use std::borrow::Cow;

use serde_json::Value;

/// A field's text; a number or a structure as compact JSON, a missing field or `null` as nothing.
pub fn text<'a>(record: &'a Value, field: &str) -> Cow<'a, str> {
    record.get(field).map(plain).unwrap_or_default()
}

/// A list's entries; a lone value counts as a list of one.
pub fn entries(value: &Value) -> &[Value] {
    match value {
        Value::Null => &[],
        Value::Array(entries) => entries,
        lone => std::slice::from_ref(lone),
    }
}

/// Any value as one text.
pub fn plain(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Any value as text for a reader: one line per entry of a list, an object's fields one after another.
pub fn told(value: &Value) -> Cow<'_, str> {
    let told_entries = |entries: &[Value], between: &str| {
        let entries: Vec<_> = entries.iter().map(told).collect();
        entries.join(between)
    };
    match value {
        Value::Array(entries) if entries.iter().any(|entry| !entry.is_string()) => {
            told_entries(entries, "\n").into()
        }
        Value::Array(entries) => told_entries(entries, ", ").into(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}: {}", told(value)));
            fields.collect::<Vec<_>>().join("; ").into()
        }
        other => plain(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_any_shape() {
        let record = json!({"a": "x", "b": 4, "c": null, "d": ["p", 2, "", null], "e": {"k": [1]}});
        assert_eq!(text(&record, "a"), "x");
        assert_eq!(text(&record, "b"), "4");
        assert_eq!(text(&record, "c"), "");
        assert_eq!(text(&record, "missing"), "");
        assert_eq!(text(&record, "e"), r#"{"k":[1]}"#);
        assert_eq!(entries(&record["d"]).len(), 4);
        assert_eq!(entries(&record["a"]), [json!("x")]);
        assert!(entries(&record["c"]).is_empty());
    }

    #[test]
    fn tells_lists_and_objects_in_words() {
        let experts = json!([{"role": "Cardiologist", "knows": ["hearts", "vessels"]}, {"role": "GP", "lead": true}]);
        assert_eq!(
            told(&experts),
            "role: Cardiologist; knows: hearts, vessels\nrole: GP; lead: true"
        );
        assert_eq!(told(&json!("x")), "x");
        assert_eq!(told(&json!(null)), "");
    }
}
