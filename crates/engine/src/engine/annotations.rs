//! Leaves out of a JSON schema what only annotates it: a `format` that the grammar does not know (JSON Schema 2020-12, Validation §7).

use serde_json::{Map, Value};

/// The formats that llguidance holds a string to.
const KNOWN: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];

/// Takes other formats out of a schema and those in it; values that only look like schemas stay as they are.
pub(super) fn strip(schema: &mut Value) {
    let is_known = |format: &Value| format.as_str().is_none_or(|name| KNOWN.contains(&name));
    each(schema, &mut |fields| fields.retain(|name, value| name != "format" || is_known(value)));
}

/// Visits a schema and those in it, values that only look like schemas left out.
pub(super) fn each(schema: &mut Value, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    match schema {
        Value::Object(fields) => {
            visit(fields);
            each_inside(fields, visit);
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(|schema| each(schema, visit)),
        _ => {}
    }
}

fn each_inside(fields: &mut Map<String, Value>, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("const" | "enum" | "default" | "examples" | "x-guidance", _) => {}
            // The names in it are the user's.
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(schemas),
            ) => schemas.values_mut().for_each(|schema| each(schema, visit)),
            (_, value) => each(value, visit),
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
