//! The fields that say what a text looks like: OpenAI's `response_format`, vLLM's `structured_outputs` and its older `guided_…`, and
//! llama.cpp's `json_schema`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::fields::{Fields, kind, read, take, unknown};
use crate::data::json as unique;
use crate::record::Grammar;
use crate::serve::error::{ApiError, Code};

const MOST_SCHEMA_BYTES: usize = 64 << 10;
const MOST_REGEX_BYTES: usize = 4 << 10;

/// The grammar of a completion.
#[derive(Clone, Debug, PartialEq)]
pub struct Format {
    /// The field that gives it, such as `structured_outputs.regex`.
    pub field: String,
    pub grammar: Grammar,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Formats {
    response_format: Option<ResponseFormat>,
    #[schemars(with = "Option<Guide>")]
    structured_outputs: Fields,
    json_schema: Option<Value>,
    #[serde(flatten)]
    rest: Fields,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ResponseFormat {
    #[serde(rename = "type")]
    kind: Kind,
    json_schema: Option<NamedSchema>,
    schema: Option<Value>,
    #[serde(flatten)]
    rest: Fields,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Text,
    JsonObject,
    JsonSchema,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NamedSchema {
    schema: Option<Value>,
    #[serde(flatten)]
    rest: Fields,
}

/// One of vLLM's forms.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Guide {
    Json(Value),
    Regex(String),
    Choice(Vec<String>),
    /// In Lark.
    Grammar(String),
    JsonObject(bool),
}

/// The format that the fields of [`Formats`] give, if any; `ignored` gets what is unknown inside.
///
/// # Errors
/// Several formats; an unsupported one; a grammar that is too long.
pub fn take_only(
    fields: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<Option<Format>, ApiError> {
    let formats = take(fields, |own: &mut Formats| &mut own.rest)?;
    let mut found: Vec<Format> = Vec::new();
    let mut add = |field: &str, grammar: Option<Grammar>| {
        found.extend(grammar.map(|grammar| Format { field: field.to_owned(), grammar }));
    };
    if let Some(format) = formats.response_format {
        add("response_format", format.grammar(ignored)?);
    }
    let newer = formats.structured_outputs.into_iter().filter(|(_, value)| !value.is_null());
    let newer = newer.map(|(kind, value)| (format!("structured_outputs.{kind}"), kind, value));
    let older = ["json", "regex", "choice", "grammar", "json_object"].into_iter();
    let older = older.map(|kind| (format!("guided_{kind}"), kind));
    let older = older.filter_map(|(name, kind)| {
        let value = fields.shift_remove(&name)?;
        Some((name, kind.to_owned(), value))
    });
    for (name, kind, value) in newer.chain(older) {
        let guide: Guide = read(&name, Map::from_iter([(kind, value)]).into())?;
        add(&name, guide.grammar(&name)?);
    }
    if let Some(schema) = formats.json_schema {
        add("json_schema", Some(json_schema("json_schema", &schema)?));
    }
    if let [Format { field: first, .. }, Format { field: second, .. }, ..] = found.as_slice() {
        let message = format!("{first} and {second} both say what the text looks like; give one");
        return Err(ApiError::invalid(second, message));
    }
    Ok(found.pop())
}

impl ResponseFormat {
    fn grammar(self, ignored: &mut Vec<String>) -> Result<Option<Grammar>, ApiError> {
        const INNER: &str = "response_format.json_schema";
        const OUTER: &str = "response_format.schema";
        ignored.extend(unknown("response_format", &self.rest));
        let (inner, outer) = (self.json_schema, self.schema);
        let mut passed_over = |is_given: bool, name: &str| {
            ignored.extend(is_given.then(|| name.to_owned()));
        };
        match self.kind {
            Kind::Text => {
                passed_over(inner.is_some(), INNER);
                passed_over(outer.is_some(), OUTER);
                Ok(None)
            }
            Kind::JsonObject => {
                passed_over(inner.is_some(), INNER);
                let schema = outer.map(|schema| json_schema(OUTER, &schema)).transpose()?;
                Ok(Some(schema.unwrap_or(Grammar::JsonObject)))
            }
            Kind::JsonSchema => {
                let (own, mut rest) =
                    inner.map(|inner| (inner.schema, inner.rest)).unwrap_or_default();
                passed_over(own.is_some() && outer.is_some(), OUTER);
                // What it is called, and that it is kept to, which it is without.
                rest.retain(|name, _| name != "name" && name != "strict");
                ignored.extend(unknown(INNER, &rest));
                let missing = || {
                    let message = format!("{INNER}.schema is missing");
                    ApiError::of(Code::MissingParameter, INNER, message)
                };
                Ok(Some(json_schema(INNER, &own.or(outer).ok_or_else(missing)?)?))
            }
        }
    }
}

impl Guide {
    fn grammar(self, name: &str) -> Result<Option<Grammar>, ApiError> {
        Ok(Some(match self {
            // vLLM also accepts a schema as a string.
            Guide::Json(Value::String(text)) => {
                let text = bounded(name, text, MOST_SCHEMA_BYTES)?;
                let schema = unique::parse(&text).map_err(|error| {
                    ApiError::of(Code::InvalidSchema, name, format!("{name} is no JSON: {error}"))
                })?;
                json_schema(name, &schema)?
            }
            Guide::Json(schema) => json_schema(name, &schema)?,
            Guide::Regex(regex) => Grammar::Regex(bounded(name, regex, MOST_REGEX_BYTES)?),
            Guide::Grammar(lark) => Grammar::Lark(bounded(name, lark, MOST_SCHEMA_BYTES)?),
            Guide::Choice(choices) => {
                if choices.is_empty() || choices.iter().any(String::is_empty) {
                    let message = format!("{name} has no choice, or an empty one");
                    return Err(ApiError::invalid(name, message));
                }
                let alternatives: Vec<String> =
                    choices.iter().map(|choice| json!(choice).to_string()).collect();
                let lark = format!("start: {}", alternatives.join(" | "));
                Grammar::Lark(bounded(name, lark, MOST_SCHEMA_BYTES)?)
            }
            Guide::JsonObject(is_wanted) => return Ok(is_wanted.then_some(Grammar::JsonObject)),
        }))
    }
}

fn json_schema(name: &str, schema: &Value) -> Result<Grammar, ApiError> {
    if !schema.is_object() && !schema.is_boolean() {
        let message = format!("{name} is {}; expected a JSON schema", kind(schema));
        return Err(ApiError::of(Code::InvalidType, name, message));
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
    use super::super::fields::parse;
    use super::*;

    fn grammar(body: Value) -> Result<Option<Grammar>, ApiError> {
        Ok(with_ignored(body)?.0)
    }

    fn with_ignored(body: Value) -> Result<(Option<Grammar>, Vec<String>), ApiError> {
        let mut ignored = Vec::new();
        let mut fields = parse(body.to_string().as_bytes()).unwrap();
        let read = take_only(&mut fields, &mut ignored)?;
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
                vec!["response_format.schema", "response_format.json_schema.foo"],
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
