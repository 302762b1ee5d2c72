//! Parses the fields of constrained decoding, in the forms of OpenAI, vLLM and llama.cpp.

use serde_json::{Value, json};

use crate::data::json as unique;

use super::fields::{Fields, flag, object, text, unknown, wrong_type};
use crate::record::Grammar;
use crate::serve::error::{ApiError, Code};

const RESPONSE: &str = "response_format";
const MOST_SCHEMA_BYTES: usize = 64 << 10;
const MOST_REGEX_BYTES: usize = 4 << 10;

/// The grammar of a completion.
#[derive(Clone, Debug, PartialEq)]
pub struct Format {
    /// The field that gives it, such as `structured_outputs.regex`.
    pub field: String,
    pub grammar: Grammar,
}

/// The format that the fields give, if any; `ignored` gets what is unknown inside, `without_effect` what is known and has none.
///
/// # Errors
/// Several formats; an unsupported one; a grammar that is too long.
pub fn read(
    fields: &mut Fields,
    ignored: &mut Vec<String>,
    without_effect: &mut Vec<&'static str>,
) -> Result<Option<Format>, ApiError> {
    let mut found: Vec<Format> = Vec::new();
    let mut add = |field: String, grammar: Option<Grammar>| {
        found.extend(grammar.map(|grammar| Format { field, grammar }));
    };
    if let Some(format) = fields.take(RESPONSE) {
        add(RESPONSE.to_owned(), response_format(format, ignored, without_effect)?);
    }
    if let Some(options) = fields.inner("structured_outputs")? {
        for (kind, value) in options.into_iter().filter(|(_, value)| !value.is_null()) {
            let name = format!("structured_outputs.{kind}");
            add(name.clone(), guided(&kind, &name, value)?);
        }
    }
    for kind in ["json", "regex", "choice", "grammar", "json_object"] {
        let name = format!("guided_{kind}");
        if let Some(value) = fields.take(&name) {
            add(name.clone(), guided(kind, &name, value)?);
        }
    }
    if let Some(schema) = fields.take("json_schema") {
        add("json_schema".to_owned(), Some(json_schema("json_schema", &schema)?));
    }
    if fields.take("grammar").is_some() {
        return Err(ApiError::of(
            Code::UnsupportedParameter,
            "grammar",
            "grammar is in llama.cpp's GBNF, which is not supported; write it in Lark as structured_outputs.grammar",
        ));
    }
    if let [Format { field: first, .. }, Format { field: second, .. }, ..] = found.as_slice() {
        let message = format!("{first} and {second} both say what the text looks like; give one");
        return Err(ApiError::invalid(second, message));
    }
    Ok(found.pop())
}

fn response_format(
    format: Value,
    ignored: &mut Vec<String>,
    without_effect: &mut Vec<&'static str>,
) -> Result<Option<Grammar>, ApiError> {
    const INNER: &str = "response_format.json_schema";
    const DESCRIPTION: &str = "response_format.json_schema.description";
    let mut fields = object(RESPONSE, format)?;
    let kind = fields.shift_remove("type");
    let mut take = |name: &str| fields.shift_remove(name).filter(|value| !value.is_null());
    let grammar = match kind.as_ref().and_then(Value::as_str) {
        Some("text") => None,
        Some("json_object") => Some(match take("schema") {
            Some(schema) => json_schema("response_format.schema", &schema)?,
            None => Grammar::JsonObject,
        }),
        Some("json_schema") => {
            let inner = take("json_schema").map(|inner| object(INNER, inner)).transpose()?;
            let mut inner = inner.unwrap_or_default();
            // What it is called, and that it is kept to, which it is without.
            inner.retain(|name, _| name != "name" && name != "strict");
            without_effect.extend(inner.shift_remove("description").map(|_| DESCRIPTION));
            let own = inner.shift_remove("schema").filter(|schema| !schema.is_null());
            let schema = own.or_else(|| take("schema")).ok_or_else(|| {
                ApiError::of(Code::MissingParameter, INNER, format!("{INNER}.schema is missing"))
            })?;
            ignored.extend(unknown(INNER, inner));
            Some(json_schema(INNER, &schema)?)
        }
        _ => {
            let message = "response_format.type is none of text, json_object, json_schema";
            return Err(ApiError::invalid("response_format.type", message));
        }
    };
    ignored.extend(unknown(RESPONSE, fields));
    Ok(grammar)
}

/// One of vLLM's forms.
fn guided(kind: &str, name: &str, value: Value) -> Result<Option<Grammar>, ApiError> {
    let text = |value: Value| text(name, value);
    Ok(Some(match kind {
        "json" => match value {
            // vLLM also accepts a schema as a string.
            Value::String(text) => {
                let text = bounded(name, text, MOST_SCHEMA_BYTES)?;
                let schema = unique::parse(&text).map_err(|error| {
                    ApiError::of(Code::InvalidSchema, name, format!("{name} is no JSON: {error}"))
                })?;
                json_schema(name, &schema)?
            }
            schema => json_schema(name, &schema)?,
        },
        "regex" => Grammar::Regex(bounded(name, text(value)?, MOST_REGEX_BYTES)?),
        "grammar" => Grammar::Lark(bounded(name, text(value)?, MOST_SCHEMA_BYTES)?),
        "choice" => {
            let Value::Array(choices) = value else {
                return Err(wrong_type(name, &value, "an array of strings"));
            };
            let choices: Vec<String> = choices.into_iter().map(text).collect::<Result<_, _>>()?;
            if choices.is_empty() || choices.iter().any(String::is_empty) {
                let message = format!("{name} has no choice, or an empty one");
                return Err(ApiError::invalid(name, message));
            }
            let alternatives: Vec<String> =
                choices.iter().map(|choice| json!(choice).to_string()).collect();
            let lark = format!("start: {}", alternatives.join(" | "));
            Grammar::Lark(bounded(name, lark, MOST_SCHEMA_BYTES)?)
        }
        "json_object" => return Ok(flag(name, &value)?.then_some(Grammar::JsonObject)),
        _ => {
            let message = format!(
                "{name} is not supported; json, regex, choice, grammar and json_object are"
            );
            return Err(ApiError::of(Code::UnsupportedParameter, name, message));
        }
    }))
}

fn json_schema(name: &str, schema: &Value) -> Result<Grammar, ApiError> {
    if !schema.is_object() && !schema.is_boolean() {
        return Err(wrong_type(name, schema, "a JSON schema"));
    }
    Ok(Grammar::JsonSchema(bounded(name, schema.to_string(), MOST_SCHEMA_BYTES)?))
}

fn bounded(name: &str, text: String, most: usize) -> Result<String, ApiError> {
    if text.len() <= most {
        return Ok(text);
    }
    let message = format!("{name} has {} bytes; at most {most} are taken", text.len());
    Err(ApiError::of(Code::InvalidSchema, name, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grammar(body: Value) -> Result<Option<Grammar>, ApiError> {
        Ok(with_ignored(body)?.0)
    }

    fn with_ignored(body: Value) -> Result<(Option<Grammar>, Vec<String>), ApiError> {
        let (mut ignored, mut without_effect) = (Vec::new(), Vec::new());
        let mut fields = Fields::parse(body.to_string().as_bytes()).unwrap();
        let read = read(&mut fields, &mut ignored, &mut without_effect)?;
        ignored.extend(without_effect.into_iter().map(str::to_owned));
        Ok((read.map(|format| format.grammar), ignored))
    }

    #[test]
    fn what_is_not_known_inside_is_listed() {
        let schema = json!({"type": "integer"});
        let inner = json!({"name": "n", "strict": true, "schema": schema, "foo": 1, "bar": null});
        for (format, names) in [
            (json!({"type": "json_object", "foo": 1, "bar": null}), vec!["response_format.foo"]),
            (json!({"type": "text", "schema": schema}), vec!["response_format.schema"]),
            (
                json!({"type": "json_object", "json_schema": inner}),
                vec!["response_format.json_schema"],
            ),
            (
                json!({"type": "json_schema", "json_schema": inner, "schema": schema}),
                vec!["response_format.json_schema.foo", "response_format.schema"],
            ),
            (json!({"type": "json_schema", "json_schema": {}, "schema": schema}), vec![]),
            (
                json!({"type": "json_schema", "json_schema": {"schema": schema, "description": "d"}}),
                vec!["response_format.json_schema.description"],
            ),
        ] {
            let read = with_ignored(json!({"response_format": format})).unwrap();
            assert_eq!(read.1, names, "{format}");
        }
    }

    #[test]
    fn every_form_is_read() {
        let schema = json!({"type": "integer"});
        let expected = Some(Grammar::JsonSchema(schema.to_string()));
        for body in [
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": null, "schema": schema}}}),
            json!({"response_format": {"type": "json_object", "schema": schema}}),
            json!({"structured_outputs": {"json": schema}}),
            json!({"guided_json": schema.to_string()}),
            json!({"json_schema": schema}),
        ] {
            assert_eq!(grammar(body.clone()).unwrap(), expected, "{body}");
        }
        assert_eq!(grammar(json!({"response_format": {"type": "text"}})).unwrap(), None);
        let object = json!({"response_format": {"type": "json_object"}});
        assert_eq!(grammar(object).unwrap(), Some(Grammar::JsonObject));
        let choice = json!({"structured_outputs": {"choice": ["yes", "a \"no\""]}});
        let lark = Grammar::Lark(r#"start: "yes" | "a \"no\"""#.to_owned());
        assert_eq!(grammar(choice).unwrap(), Some(lark));
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        let cases = [
            (json!({"grammar": "root ::= \"a\""}), "unsupported_parameter", "grammar"),
            (json!({"response_format": {"type": "xml"}}), "invalid_value", "response_format.type"),
            (json!({"response_format": 1}), "invalid_type", "response_format"),
            (
                json!({"response_format": {"type": "json_schema", "json_schema": 1}}),
                "invalid_type",
                "response_format.json_schema",
            ),
            (json!({"guided_regex": "a", "json_schema": {}}), "invalid_value", "json_schema"),
            (json!({"guided_regex": "a".repeat(5000)}), "invalid_schema", "guided_regex"),
            (json!({"guided_choice": []}), "invalid_value", "guided_choice"),
        ];
        for (body, code, param) in cases {
            let error = grammar(body.clone()).unwrap_err();
            assert_eq!((error.code.name(), error.param.as_deref()), (code, Some(param)), "{body}");
        }
    }
}
