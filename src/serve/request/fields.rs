//! The fields of a JSON body: parsers take the fields they know, and those that are left are unknown.

use std::ops::RangeInclusive;

use axum::http::HeaderValue;
use serde_json::{Map, Value};

use crate::data::json;
use crate::serve::error::{ApiError, Code};
use crate::serve::guard::is_plain_id;

/// The most characters of a client's text that an error repeats.
const QUOTED_CHARS: usize = 60;

/// Flags that ask for something where they are false.
const ON_UNTIL_FALSE: [&str; 2] = ["add_generation_prompt", "enable_thinking"];

/// The fields that are not taken yet.
#[derive(Debug)]
pub struct Fields {
    map: Map<String, Value>,
    /// The names of the fields that were taken, without those whose value asks for nothing.
    pub given: Vec<String>,
}

impl Fields {
    /// # Errors
    /// A body that is not a JSON object; a key that comes twice, at any depth: who sent it may mean either value.
    pub fn parse(body: &[u8]) -> Result<Fields, ApiError> {
        let invalid = |problem: String| {
            ApiError::new(Code::InvalidJson, format!("the body is not valid JSON: {problem}"))
        };
        let text = str::from_utf8(body).map_err(|error| invalid(error.to_string()))?;
        match json::parse(text).map_err(|error| invalid(error.to_string()))? {
            Value::Object(map) => Ok(Fields { map, given: Vec::new() }),
            other => Err(ApiError::new(
                Code::InvalidType,
                format!("the body is {}; expected a JSON object", kind(&other)),
            )),
        }
    }

    /// Takes the value of a field; `None` if it is absent or null.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let value = self.map.shift_remove(name).filter(|value| !value.is_null())?;
        if !asks_for_nothing(&value) || ON_UNTIL_FALSE.contains(&name) {
            self.given.push(name.to_owned());
        }
        Some(value)
    }

    pub fn flag(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        self.take(name).map(|value| flag(name, &value)).transpose()
    }

    pub fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        self.take(name).map(|value| text(name, value)).transpose()
    }

    /// Takes an inner object.
    pub fn inner(&mut self, name: &str) -> Result<Option<Map<String, Value>>, ApiError> {
        self.take(name).map(|value| object(name, value)).transpose()
    }

    /// An id that can be used in a header.
    ///
    /// # Errors
    /// A value that is no string, or one with other characters.
    pub fn id(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        let id = self.text(name)?;
        if id.as_ref().is_none_or(|id| is_plain_id(id.as_bytes())) {
            return Ok(id);
        }
        let message = format!("{name} is not up to 64 letters, digits, `.`, `_` and `-`");
        Err(ApiError::invalid(name, message))
    }

    pub fn number(
        &mut self,
        name: &str,
        range: RangeInclusive<f64>,
    ) -> Result<Option<f64>, ApiError> {
        self.take(name).map(|value| number(name, &value, &range)).transpose()
    }

    pub fn integer(
        &mut self,
        name: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<i64>, ApiError> {
        self.take(name).map(|value| integer(name, &value, &range)).transpose()
    }

    /// A count from 0 to `most`.
    pub fn count(&mut self, name: &str, most: usize) -> Result<Option<usize>, ApiError> {
        Ok(self.integer(name, 0..=most as i64)?.map(|count| count as usize))
    }

    /// A random seed. Negative ones are read as in two's complement.
    pub fn seed(&mut self) -> Result<Option<u64>, ApiError> {
        Ok(self.integer("seed", i64::MIN..=i64::MAX)?.map(|seed| seed as u64))
    }

    /// The names of the fields that were not taken; one that is null is not there.
    pub fn rest(self) -> Vec<String> {
        self.map.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name).collect()
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

/// The most bytes of a name in a header.
const MOST_IN_HEADER: usize = 100;

/// The same list as a header; `None` if there is nothing to list.
pub fn listed_in_header(ignored: &[String]) -> Option<HeaderValue> {
    // What is listed already ends with the number of the others.
    let names = match ignored.len() > MOST_LISTED + 1 {
        true => listed(ignored),
        false => ignored.to_vec(),
    };
    let names: Vec<String> = names.iter().map(|name| in_header(name)).collect();
    HeaderValue::from_str(&names.join(",")).ok().filter(|_| !ignored.is_empty())
}

/// A name with what no header can carry, and what divides names there, as `%` and two hexadecimal digits.
fn in_header(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if text.len() >= MOST_IN_HEADER {
            text.push_str("...");
            break;
        }
        match byte {
            b' '..=b'~' if !b"%,".contains(&byte) => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The names of the unknown fields of an inner object, without those that ask for nothing.
pub fn unknown(place: &str, left: Map<String, Value>) -> impl Iterator<Item = String> {
    let asking = left.into_iter().filter(|(_, value)| !value.is_null() && !asks_for_nothing(value));
    asking.map(move |(name, _)| format!("{place}.{name}"))
}

pub fn flag(name: &str, value: &Value) -> Result<bool, ApiError> {
    value.as_bool().ok_or_else(|| wrong_type(name, value, "true or false"))
}

/// Takes a flag of the inner object at `place`; `None` if it is absent or null.
pub fn inner_flag(
    place: &str,
    inner: &mut Map<String, Value>,
    name: &str,
) -> Result<Option<bool>, ApiError> {
    let value = inner.shift_remove(name).filter(|value| !value.is_null());
    value.map(|value| flag(&format!("{place}.{name}"), &value)).transpose()
}

pub fn text(name: &str, value: Value) -> Result<String, ApiError> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(wrong_type(name, &other, "a string")),
    }
}

pub fn object(name: &str, value: Value) -> Result<Map<String, Value>, ApiError> {
    match value {
        Value::Object(map) => Ok(map),
        other => Err(wrong_type(name, &other, "an object")),
    }
}

pub fn number(name: &str, value: &Value, range: &RangeInclusive<f64>) -> Result<f64, ApiError> {
    let number = value.as_f64().ok_or_else(|| wrong_type(name, value, "a number"))?;
    if range.contains(&number) {
        return Ok(number);
    }
    let (start, end) = (range.start(), range.end());
    let expected = match end.is_finite() {
        true => format!("a number from {start} to {end}"),
        false => format!("a number of at least {start}"),
    };
    Err(ApiError::invalid(name, format!("{name} is {number}; expected {expected}")))
}

pub fn integer(name: &str, value: &Value, range: &RangeInclusive<i64>) -> Result<i64, ApiError> {
    // Some clients write whole numbers as 16.0.
    let float = || value.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 2f64.powi(53));
    let number = value.as_i64().or_else(|| float().map(|n| n as i64));
    let is_large = value.is_u64() && number.is_none();
    let (start, end) = (range.start(), range.end());
    match number {
        Some(number) if range.contains(&number) => Ok(number),
        None if !is_large => Err(wrong_type(name, value, "a whole number")),
        _ => {
            let expected = format!("a whole number from {start} to {end}");
            Err(ApiError::invalid(name, format!("{name} is {value}; expected {expected}")))
        }
    }
}

/// The value of a setting that has several names.
///
/// # Errors
/// Two that differ.
pub fn agreed<T: PartialEq, const N: usize>(
    values: [(&str, Option<T>); N],
) -> Result<Option<T>, ApiError> {
    let mut given = values.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let Some((first, value)) = given.next() else { return Ok(None) };
    match given.find(|(_, other)| *other != value) {
        Some((name, _)) => {
            Err(ApiError::invalid(name, format!("{first} and {name} contradict each other")))
        }
        None => Ok(Some(value)),
    }
}

/// A list of token ids.
///
/// # Errors
/// A value that is no list, or has something in it that is no token id.
pub fn ids(name: &str, value: &Value) -> Result<Vec<u32>, ApiError> {
    let Value::Array(list) = value else {
        return Err(wrong_type(name, value, "an array of token ids"));
    };
    let id = |value: &Value| Ok(integer(name, value, &(0..=i64::from(u32::MAX)))? as u32);
    list.iter().map(id).collect()
}

pub fn required<T>(value: Option<T>, name: &str) -> Result<T, ApiError> {
    value.ok_or_else(|| ApiError::of(Code::MissingParameter, name, format!("{name} is missing")))
}

/// The error for a value of another JSON type.
pub fn wrong_type(name: &str, value: &Value, expected: &str) -> ApiError {
    let message = format!("{name} is {}; expected {expected}", kind(value));
    ApiError::of(Code::InvalidType, name, message)
}

/// Whether a value asks for nothing: an empty list, object or string, false, or the format `text`.
pub fn asks_for_nothing(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(|value| value == "text"),
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Null | Value::Number(_) => false,
    }
}

/// The type of a value, in words.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A client's text in quotes, shortened for an error message.
pub fn quoted(word: &str) -> String {
    format!("`{}`", crate::text::ellipsis(word, QUOTED_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Fields {
        Fields::parse(text.as_bytes()).unwrap()
    }

    fn code<T: std::fmt::Debug>(result: Result<T, ApiError>) -> &'static str {
        result.unwrap_err().code.name()
    }

    #[test]
    fn bodies_that_are_no_objects_are_refused() {
        assert_eq!(code(Fields::parse(b"")), "invalid_json");
        assert_eq!(code(Fields::parse(b"{\"a\": NaN}")), "invalid_json");
        assert_eq!(code(Fields::parse(b"{\"a\": \"\xff\"}")), "invalid_json");
        assert_eq!(code(Fields::parse("[".repeat(200).as_bytes())), "invalid_json");
        assert_eq!(code(Fields::parse(b"[]")), "invalid_type");
    }

    #[test]
    fn numbers_are_read_by_type_and_range() {
        let mut body = fields(
            r#"{"a": 16.0, "b": 1.5, "c": "1", "d": 3, "e": null, "f": 18446744073709551615}"#,
        );
        assert_eq!(body.count("a", 20).unwrap(), Some(16));
        assert_eq!(code(body.count("b", 20)), "invalid_type");
        assert_eq!(code(body.number("c", 0.0..=1.0)), "invalid_type");
        let error = body.number("d", 0.0..=1.0).unwrap_err();
        assert_eq!(error.message, "d is 3; expected a number from 0 to 1");
        assert_eq!(error.param.as_deref(), Some("d"));
        assert_eq!(body.flag("e").unwrap(), None);
        assert_eq!(code(body.count("f", 9)), "invalid_value");
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
    fn a_header_lists_every_name_whatever_is_in_it() {
        let list = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            listed_in_header(&names).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(list(&[]), None);
        assert_eq!(list(&["messages[0].a b", "zeta"]).unwrap(), "messages[0].a b,zeta");
        assert_eq!(
            list(&["ä", "a,b%", "\r\nx: y", "zeta"]).unwrap(),
            "%C3%A4,a%2Cb%25,%0D%0Ax: y,zeta"
        );
        let long = "患".repeat(60);
        assert!(list(&[&*long; 40]).unwrap().len() < 4000);
    }

    #[test]
    fn what_nobody_takes_is_left_over() {
        let mut body = fields(r#"{"a": 3, "zeta": 2, "eta": null}"#);
        assert_eq!(body.count("a", 9).unwrap(), Some(3));
        assert_eq!(body.rest(), ["zeta"]);
    }

    #[test]
    fn a_key_that_comes_twice_is_refused_by_its_name() {
        for text in [r#"{"a": 1, "zeta": 2, "a": 3}"#, r#"{"b": [{"a": 1, "\u0061": 1}]}"#] {
            let error = Fields::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.code, Code::InvalidJson);
            assert!(error.message.contains("the key `a` comes twice"), "{}", error.message);
        }
    }
}
