//! The fields that say what a text looks like: OpenAI's `response_format`, and vLLM's `structured_outputs`.

use serde::Deserialize;
use serde_json::{Value, json};

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
#[serde(
    tag = "type",
    rename_all = "snake_case",
    expecting = "an object with the type `text`, `json_object` or `json_schema`"
)]
pub enum ResponseFormat {
    Text,
    /// Other servers take a schema beside it.
    JsonObject {
        schema: Option<Value>,
    },
    /// Its name says nothing, and it is kept to without `strict`.
    JsonSchema {
        json_schema: NamedSchema,
    },
}

#[derive(Clone, Debug, Deserialize)]
pub struct NamedSchema {
    schema: Option<Value>,
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

/// The format that the fields give, if any.
///
/// # Errors
/// Several formats; an unsupported one; a grammar that is too long.
pub fn only(
    response_format: Option<ResponseFormat>,
    structured_outputs: Option<Guide>,
) -> Result<Option<Format>, ApiError> {
    let first = response_format.map(ResponseFormat::read).transpose()?.flatten();
    let second = structured_outputs.map(Guide::read).transpose()?;
    if let (Some(_), Some(Format { field, .. })) = (&first, &second) {
        let message =
            format!("response_format and {field} both say what the text looks like; give one");
        return Err(ApiError::invalid(field, message));
    }
    Ok(first.or(second))
}

impl ResponseFormat {
    fn read(self) -> Result<Option<Format>, ApiError> {
        const SCHEMA: &str = "response_format.json_schema.schema";
        let field = "response_format";
        match self {
            ResponseFormat::Text => Ok(None),
            ResponseFormat::JsonObject { schema: Some(_) } => {
                Err(ApiError::unsupported("response_format.schema"))
            }
            ResponseFormat::JsonObject { schema: None } => {
                Ok(Some(Format { field, grammar: Grammar::JsonObject }))
            }
            ResponseFormat::JsonSchema { json_schema: NamedSchema { schema } } => {
                let schema = schema.ok_or_else(|| ApiError::missing(SCHEMA))?;
                Ok(Some(Format { field, ..json_schema(SCHEMA, &schema)? }))
            }
        }
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
        let mut fields = parse(body.to_string().as_bytes()).unwrap();
        Ok(Decoding::take(&mut fields)?.format.map(|format| format.grammar))
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
                "response_format",
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
