//! The fields that say what a text looks like: OpenAI's `response_format`, and vLLM's `structured_outputs`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::fields::{Fields, unknown};
use crate::record::Grammar;
use crate::serve::error::{ApiError, Code};

const MOST_SCHEMA_BYTES: usize = 64 << 10;
const MOST_REGEX_BYTES: usize = 4 << 10;

/// The grammar of a completion.
#[derive(Clone, Debug, PartialEq)]
pub struct Format {
    /// The field that gives it, such as `structured_outputs.regex`.
    pub field: &'static str,
    pub grammar: Grammar,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ResponseFormat {
    #[serde(rename = "type")]
    kind: Kind,
    json_schema: Option<NamedSchema>,
    #[serde(flatten)]
    rest: Fields,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Text,
    JsonObject,
    JsonSchema,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct NamedSchema {
    schema: Option<Value>,
    #[serde(flatten)]
    rest: Fields,
}

/// One of vLLM's forms.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guide {
    Json(Value),
    Regex(String),
    Choice(Vec<String>),
    /// In Lark.
    Grammar(String),
}

/// The format that the fields give, if any; `ignored` gets what is unknown inside.
///
/// # Errors
/// Several formats; an unsupported one; a grammar that is too long.
pub fn only(
    response_format: Option<ResponseFormat>,
    structured_outputs: Option<Guide>,
    ignored: &mut Vec<String>,
) -> Result<Option<Format>, ApiError> {
    let first = response_format.map(|format| format.read(ignored)).transpose()?.flatten();
    let second = structured_outputs.map(Guide::read).transpose()?;
    if let (Some(_), Some(Format { field, .. })) = (&first, &second) {
        let message =
            format!("response_format and {field} both say what the text looks like; give one");
        return Err(ApiError::invalid(field, message));
    }
    Ok(first.or(second))
}

impl ResponseFormat {
    fn read(self, ignored: &mut Vec<String>) -> Result<Option<Format>, ApiError> {
        const INNER: &str = "response_format.json_schema";
        let field = "response_format";
        // Other servers take it beside `json_object`.
        if self.rest.get("schema").is_some_and(|schema| !schema.is_null()) {
            return Err(ApiError::unsupported("response_format.schema"));
        }
        ignored.extend(unknown(field, &self.rest));
        if self.kind != Kind::JsonSchema {
            ignored.extend(self.json_schema.map(|_| INNER.to_owned()));
            let is_object = self.kind == Kind::JsonObject;
            return Ok(is_object.then_some(Format { field, grammar: Grammar::JsonObject }));
        }
        let NamedSchema { schema, mut rest } = self.json_schema.unwrap_or_default();
        // What it is called, and that it is kept to, which it is without.
        rest.retain(|name, _| name != "name" && name != "strict");
        ignored.extend(unknown(INNER, &rest));
        let schema = schema.ok_or_else(|| ApiError::missing("response_format.json_schema.schema"));
        Ok(Some(Format { field, ..json_schema(INNER, &schema?)? }))
    }
}

impl Guide {
    fn read(self) -> Result<Format, ApiError> {
        match self {
            Guide::Json(schema) => json_schema("structured_outputs.json", &schema),
            Guide::Regex(regex) => {
                bounded("structured_outputs.regex", MOST_REGEX_BYTES, regex, Grammar::Regex)
            }
            Guide::Grammar(lark) => {
                bounded("structured_outputs.grammar", MOST_SCHEMA_BYTES, lark, Grammar::Lark)
            }
            Guide::Choice(choices) => {
                let field = "structured_outputs.choice";
                if choices.is_empty() || choices.iter().any(String::is_empty) {
                    let message = format!("{field} has no choice, or an empty one");
                    return Err(ApiError::invalid(field, message));
                }
                let choices: Vec<String> =
                    choices.iter().map(|choice| json!(choice).to_string()).collect();
                let lark = format!("start: {}", choices.join(" | "));
                bounded(field, MOST_SCHEMA_BYTES, lark, Grammar::Lark)
            }
        }
    }
}

fn json_schema(field: &'static str, schema: &Value) -> Result<Format, ApiError> {
    if !schema.is_object() && !schema.is_boolean() {
        let message = format!("{field} is no JSON schema");
        return Err(ApiError::of(Code::INVALID_TYPE, field, message));
    }
    bounded(field, MOST_SCHEMA_BYTES, schema.to_string(), Grammar::JsonSchema)
}

fn bounded(
    field: &'static str,
    most: usize,
    text: String,
    grammar: fn(String) -> Grammar,
) -> Result<Format, ApiError> {
    if text.len() <= most {
        return Ok(Format { field, grammar: grammar(text) });
    }
    let message = format!("{field} has {} bytes; at most {most} are taken", text.len());
    Err(ApiError::of(Code::INVALID_SCHEMA, field, message))
}

#[cfg(test)]
mod tests {
    use super::super::decoding::Decoding;
    use super::super::fields::parse;
    use super::*;

    fn grammar(body: Value) -> Result<Option<Grammar>, ApiError> {
        Ok(with_ignored(body)?.0)
    }

    fn with_ignored(body: Value) -> Result<(Option<Grammar>, Vec<String>), ApiError> {
        let mut fields = parse(body.to_string().as_bytes()).unwrap();
        let mut ignored = Vec::new();
        let read = Decoding::take(&mut fields, &mut ignored)?;
        Ok((read.format.map(|format| format.grammar), ignored))
    }

    #[test]
    fn what_is_not_known_inside_is_listed() {
        let schema = json!({"type": "integer"});
        let inner = json!({"name": "n", "strict": true, "schema": schema, "foo": 1, "bar": null});
        for (format, names) in [
            (json!({"type": "json_object", "foo": 1, "bar": null}), vec!["response_format.foo"]),
            (json!({"type": "text", "json_schema": inner}), vec!["response_format.json_schema"]),
            (
                json!({"type": "json_object", "json_schema": inner}),
                vec!["response_format.json_schema"],
            ),
            (
                json!({"type": "json_schema", "json_schema": inner, "schema": null}),
                vec!["response_format.json_schema.foo"],
            ),
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
            json!({"structured_outputs": {"json": schema}}),
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
        let object = json!({"type": "json_object"});
        let cases = [
            (json!({"response_format": {"type": "xml"}}), "invalid_value", "response_format.type"),
            (json!({"response_format": 1}), "invalid_type", "response_format"),
            (
                json!({"response_format": {"type": "json_schema", "json_schema": 1}}),
                "invalid_type",
                "response_format.json_schema",
            ),
            (
                json!({"response_format": {"type": "json_object", "schema": {}}}),
                "unsupported_parameter",
                "response_format.schema",
            ),
            (
                json!({"response_format": object, "structured_outputs": {"regex": "a"}}),
                "invalid_value",
                "structured_outputs.regex",
            ),
            (
                json!({"structured_outputs": {"regex": "a".repeat(5000)}}),
                "invalid_schema",
                "structured_outputs.regex",
            ),
            (
                json!({"structured_outputs": {"choice": []}}),
                "invalid_value",
                "structured_outputs.choice",
            ),
        ];
        for (body, code, param) in cases {
            let error = grammar(body.clone()).unwrap_err();
            assert_eq!((error.code.name, error.param.as_deref()), (code, Some(param)), "{body}");
        }
    }
}
