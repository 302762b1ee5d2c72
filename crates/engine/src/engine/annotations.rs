//! Leaves out of a JSON schema what only annotates it: a `format` that the grammar does not know (JSON Schema 2020-12, Validation §7).

use serde_json::{Map, Value};

/// The formats that llguidance holds a string to.
const KNOWN: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];

/// Takes other formats out of a schema and those in it; values that only look like schemas stay as they are.
pub(super) fn strip(schema: &mut Value) {
    match schema {
        Value::Object(fields) => strip_fields(fields),
        Value::Array(schemas) => schemas.iter_mut().for_each(strip),
        _ => {}
    }
}

fn strip_fields(fields: &mut Map<String, Value>) {
    let is_known = |format: &Value| format.as_str().is_none_or(|name| KNOWN.contains(&name));
    fields.retain(|name, value| name != "format" || is_known(value));
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("const" | "enum" | "default" | "examples", _) => {}
            // The names in it are the user's.
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(schemas),
            ) => schemas.values_mut().for_each(strip),
            (_, value) => strip(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_formats_go_and_whatever_else_is_called_format_stays() {
        let mut schema = json!({
            "type": "object",
            "format": "grid",
            "properties": {
                "format": {"type": "string", "format": "iri"},
                "enum": {"type": "string", "format": "int-or-string"},
                "day": {"type": "string", "format": "date"},
                "fixed": {"const": {"format": "csv"}, "default": {"format": "x"}},
            },
            "anyOf": [{"format": "x"}, {"items": {"format": "binary"}}],
            "$defs": {"default": {"type": "string", "format": "password"}},
        });
        strip(&mut schema);
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "format": {"type": "string"},
                    "enum": {"type": "string"},
                    "day": {"type": "string", "format": "date"},
                    "fixed": {"const": {"format": "csv"}, "default": {"format": "x"}},
                },
                "anyOf": [{}, {"items": {}}],
                "$defs": {"default": {"type": "string"}},
            })
        );
    }
}
