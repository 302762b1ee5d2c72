//! Whether a value is valid under a JSON schema: a second reading, by the standard's words, of what grammars are made from.
//!
//! It knows the keywords that our schemas use and panics on any other, so that none is passed over.

use serde_json::Value;

pub fn is_valid(schema: &Value, value: &Value) -> bool {
    let Value::Object(keywords) = schema else {
        return schema.as_bool().expect("a schema is an object or a boolean");
    };
    keywords.iter().all(|(keyword, wanted)| {
        let at_least = |found: usize| found >= wanted.as_u64().unwrap() as usize;
        let at_most = |found: usize| found <= wanted.as_u64().unwrap() as usize;
        match keyword.as_str() {
            "type" => match wanted {
                Value::Array(types) => {
                    types.iter().any(|wanted| is_of_type(wanted.as_str().unwrap(), value))
                }
                one => is_of_type(one.as_str().unwrap(), value),
            },
            "minimum" => value.as_f64() >= wanted.as_f64() || !value.is_number(),
            "maximum" => value.as_f64() <= wanted.as_f64() || !value.is_number(),
            "anyOf" | "oneOf" => {
                wanted.as_array().unwrap().iter().any(|schema| is_valid(schema, value))
            }
            "const" => wanted == value,
            "enum" => wanted.as_array().unwrap().contains(value),
            "minLength" => value.as_str().is_none_or(|text| at_least(text.chars().count())),
            "maxLength" => value.as_str().is_none_or(|text| at_most(text.chars().count())),
            "minItems" => value.as_array().is_none_or(|list| at_least(list.len())),
            "maxItems" => value.as_array().is_none_or(|list| at_most(list.len())),
            "prefixItems" => value.as_array().is_none_or(|list| {
                let pairs = wanted.as_array().unwrap().iter().zip(list);
                pairs.into_iter().all(|(schema, item)| is_valid(schema, item))
            }),
            "items" => value.as_array().is_none_or(|list| {
                let prefix = schema.get("prefixItems").and_then(Value::as_array);
                let rest = list.iter().skip(prefix.map_or(0, Vec::len));
                rest.into_iter().all(|item| is_valid(wanted, item))
            }),
            "required" => value.as_object().is_none_or(|fields| {
                let names = wanted.as_array().unwrap();
                names.iter().all(|name| fields.contains_key(name.as_str().unwrap()))
            }),
            "properties" => value.as_object().is_none_or(|fields| {
                let known = wanted.as_object().unwrap();
                let pairs =
                    fields.iter().filter_map(|(name, field)| Some((known.get(name)?, field)));
                pairs.into_iter().all(|(schema, field)| is_valid(schema, field))
            }),
            "additionalProperties" => value.as_object().is_none_or(|fields| {
                let known = schema.get("properties").and_then(Value::as_object);
                let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
                let others = fields.iter().filter(|(name, _)| !is_known(name.as_str()));
                others.into_iter().all(|(_, field)| is_valid(wanted, field))
            }),
            // Lark's own, and words for people: none of the value's business.
            "x-guidance" | "$schema" | "title" | "description" | "default" | "format" => true,
            other => panic!("keyword {other} is not known here"),
        }
    })
}

fn is_of_type(wanted: &str, value: &Value) -> bool {
    let is_whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
    wanted == type_of(value) || (wanted == "integer" && is_whole)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
