//! The fields of a JSON body, which typed structs take: what a type refuses becomes an error of the API, and what no type knows is listed.

use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::data::json;
use crate::serve::error::{ApiError, Code};

/// The most characters of a client's text that an error repeats.
const QUOTED_CHARS: usize = 60;

/// Fields by their names, in the order of the body.
pub type Fields = Map<String, Value>;

/// The fields of a body; one that is null is not there.
///
/// # Errors
/// A body that is not a JSON object; a key that comes twice, at any depth: who sent it may mean either value.
pub fn parse(body: &[u8]) -> Result<Fields, ApiError> {
    let invalid = |problem: String| {
        ApiError::new(Code::INVALID_JSON, format!("the body is not valid JSON: {problem}"))
    };
    let text = str::from_utf8(body).map_err(|error| invalid(error.to_string()))?;
    match json::parse(text).map_err(|error| invalid(error.to_string()))? {
        Value::Object(mut fields) => {
            fields.retain(|_, value| !value.is_null());
            Ok(fields)
        }
        _ => Err(ApiError::new(Code::INVALID_TYPE, "the body is no JSON object")),
    }
}

/// A request whose fields are those of one type.
///
/// # Errors
/// Those of [`parse`] and of [`read`].
pub fn request<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    read(parse(body)?.into())
}

/// Takes what a part of a request knows; its `rest` is what is left of the fields.
///
/// # Errors
/// As [`read`].
pub fn take<T: DeserializeOwned>(
    fields: &mut Fields,
    rest: fn(&mut T) -> &mut Fields,
) -> Result<T, ApiError> {
    let mut part: T = read(Value::Object(std::mem::take(fields)))?;
    *fields = std::mem::take(rest(&mut part));
    Ok(part)
}

/// # Errors
/// A value that its type refuses; a field that is missing.
fn read<T: DeserializeOwned>(value: Value) -> Result<T, ApiError> {
    let read: Result<T, _> = serde_path_to_error::deserialize(value);
    read.map_err(|error| refused(&error.path().to_string(), &error.inner().to_string()))
}

/// The error of a value that its type refuses, without what was found, which may be the client's text.
fn refused(place: &str, problem: &str) -> ApiError {
    let named = |begin| problem.strip_prefix(begin).and_then(|rest: &str| rest.split('`').next());
    if let Some(name) = named("missing field `") {
        let place = if place == "." { name.to_owned() } else { format!("{place}.{name}") };
        return ApiError::missing(&place);
    }
    if let Some(name) = named("duplicate field `") {
        return ApiError::invalid(name, format!("{name} is given twice"));
    }
    if let Some(name) = named("unknown field `") {
        return ApiError::unsupported(&crate::text::ellipsis(name, QUOTED_CHARS));
    }
    let is_type = problem.starts_with("invalid type: ") || problem.starts_with(OTHER_TYPE);
    let code = if is_type { Code::INVALID_TYPE } else { Code::INVALID_VALUE };
    let message = match problem.rsplit_once(", expected ") {
        Some((_, expected)) => format!("{place}: expected {expected}"),
        None => format!("{place} {problem}"),
    };
    ApiError::of(code, place, message)
}

/// How the error of a value of none of several types begins.
const OTHER_TYPE: &str = "is of another type";

/// # Errors
/// A number that is given and not within these bounds.
pub fn within(name: &str, value: Option<f64>, bounds: RangeInclusive<f64>) -> Result<(), ApiError> {
    match value.filter(|value| !bounds.contains(value)) {
        None => Ok(()),
        Some(value) => {
            let (low, high) = bounds.into_inner();
            let message = format!("{name} is {value}; expected a number from {low} to {high}");
            Err(ApiError::invalid(name, message))
        }
    }
}

/// The most unknown fields that a response lists.
const MOST_LISTED: usize = 32;

/// The names of fields without effect as a response lists them: long ones shortened, and of many the first ones and how many more there are.
pub fn listed(ignored: &[String]) -> Vec<String> {
    let short = |name: &String| crate::text::ellipsis(name, QUOTED_CHARS);
    let mut names: Vec<String> = ignored.iter().take(MOST_LISTED).map(short).collect();
    if ignored.len() > MOST_LISTED {
        names.push(format!("and {} more", ignored.len() - MOST_LISTED));
    }
    names
}

/// Whether a value asks for nothing: an empty list, object or string, false, or a choice of tools where there are none.
pub fn asks_for_nothing(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::String(text) => ["", "none", "auto"].contains(&text.as_str()),
        Value::Bool(flag) => !flag,
        Value::Null | Value::Number(_) => false,
    }
}

/// A client's text in quotes, shortened for an error message.
pub fn quoted(word: &str) -> String {
    format!("`{}`", crate::text::ellipsis(word, QUOTED_CHARS))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Numbers {
        whole: Option<u32>,
        real: Option<f32>,
        list: Option<Vec<bool>>,
        #[serde(flatten)]
        rest: Fields,
    }

    fn read(text: &str) -> Result<(Numbers, Fields), ApiError> {
        let mut fields = parse(text.as_bytes())?;
        Ok((take(&mut fields, |numbers: &mut Numbers| &mut numbers.rest)?, fields))
    }

    fn code<T: std::fmt::Debug>(result: Result<T, ApiError>) -> &'static str {
        result.unwrap_err().code.name
    }

    #[test]
    fn bodies_that_are_no_objects_are_refused() {
        assert_eq!(code(parse(b"")), "invalid_json");
        assert_eq!(code(parse(b"{\"a\": NaN}")), "invalid_json");
        assert_eq!(code(parse(b"{\"a\": \"\xff\"}")), "invalid_json");
        assert_eq!(code(parse("[".repeat(200).as_bytes())), "invalid_json");
        assert_eq!(code(parse(b"[]")), "invalid_type");
    }

    #[test]
    fn values_are_read_by_type_and_range() {
        let (numbers, rest) = read(r#"{"whole": 16, "real": 1, "zeta": 2, "eta": null}"#).unwrap();
        assert_eq!((numbers.whole, numbers.real), (Some(16), Some(1.0)));
        assert_eq!(rest.keys().collect::<Vec<_>>(), ["zeta"]);
        let none = read(r#"{"whole": null}"#).unwrap().0;
        assert!(none.whole.is_none() && none.list.is_none());
        for (body, code, name) in [
            (r#"{"whole": 1.5}"#, "invalid_type", "whole"),
            (r#"{"whole": 18446744073709551615}"#, "invalid_value", "whole"),
            (r#"{"real": "1"}"#, "invalid_type", "real"),
            (r#"{"list": [true, 1]}"#, "invalid_type", "list[1]"),
            (r#"{"list": 1}"#, "invalid_type", "list"),
        ] {
            let error = read(body).unwrap_err();
            assert_eq!((error.code.name, error.param.as_deref()), (code, Some(name)), "{body}");
        }
        let within = |value| within("real", Some(value), 0.0..=1.0);
        assert!(within(1.0).is_ok());
        assert_eq!(within(3.0).unwrap_err().message, "real is 3; expected a number from 0 to 1");
    }

    /// Prompts stand in no error, and so in no log.
    #[test]
    fn an_error_has_no_text_of_the_client() {
        let secret = r#"pain", expected in `chest`"#;
        for body in [
            serde_json::json!({"whole": secret}),
            serde_json::json!({"list": {secret: secret}}),
            serde_json::json!({"list": [secret]}),
        ] {
            let error = read(&body.to_string()).unwrap_err();
            assert!(!error.message.contains("pain"), "{}", error.message);
            assert!(!error.message.contains("chest"), "{}", error.message);
        }
    }

    #[test]
    fn a_list_of_what_had_no_effect_is_short_however_much_was_sent() {
        let names: Vec<String> =
            (0..10_000).map(|number| format!("{number}{}", "a".repeat(900))).collect();
        let list = listed(&names);
        assert_eq!((list.len(), list[32].as_str()), (33, "and 9968 more"));
        assert!(list.join(",").len() < 3000 && listed(&names[..1]).len() == 1);
    }

    #[test]
    fn a_key_that_comes_twice_is_refused_by_its_name() {
        for text in [r#"{"a": 1, "zeta": 2, "a": 3}"#, r#"{"b": [{"a": 1, "\u0061": 1}]}"#] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.code, Code::INVALID_JSON);
            assert!(error.message.contains("the key `a` comes twice"), "{}", error.message);
        }
    }
}
