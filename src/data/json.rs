//! A JSON parser that refuses duplicate keys, of which serde_json would silently keep the last.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

use super::error::{MEND_JSON, shortened};
use super::{DataError, Place};

/// Parses one JSON value.
///
/// # Errors
/// Those of serde_json, with line and column, and a duplicate key.
pub fn parse(text: &str) -> serde_json::Result<Value> {
    let Unique(value) = serde_json::from_str(text)?;
    Ok(value)
}

/// A `T` from one JSON value, whose objects have no key twice.
///
/// # Errors
/// As of [`parse`]; what is no `T`.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice::<Unique>(bytes)?;
    serde_json::from_slice(bytes)
}

/// The error for text at `place` that is not JSON. In JSON Lines serde_json's own line number is always 1.
pub(super) fn refused(place: Place, error: &serde_json::Error) -> DataError {
    let message = error.to_string();
    let end = message.rfind(" at line ").unwrap_or(message.len());
    let problem = format!("{}, at column {}", &message[..end], error.column());
    place.refused(problem, MEND_JSON)
}

struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Unique)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(element)) = elements.next_element()? {
            list.push(element);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!(
                    "the key `{}` comes twice",
                    shortened(&key)
                )));
            }
            let Unique(value) = entries.next_value()?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_serde_json_reads() {
        let text = r#" {"a": [null, true, -1, 18446744073709551615, 0.5, "\u00e9\n", {}], "b": {"a": []}} "#;
        assert_eq!(parse(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn refuses_a_key_that_comes_twice_at_any_depth() {
        let error = parse("{\"a\": 1,\n \"b\": [{\"c\": 1, \"c\": 1}]}").unwrap_err();
        assert!(error.to_string().starts_with("the key `c` comes twice"), "{error}");
        assert_eq!(error.line(), 2);
    }

    #[test]
    fn refuses_more_than_one_value() {
        assert!(parse("{} {}").is_err());
    }

    #[test]
    fn what_is_read_as_another_type_has_no_key_twice_either() {
        type Words = std::collections::BTreeMap<String, Vec<String>>;
        assert_eq!(read::<Words>(b"{\"a\": [\"b\"]}").unwrap()["a"], ["b"]);
        let twice = read::<Words>(b"{\"a\": [\"b\"],\n \"a\": []}").unwrap_err().to_string();
        assert!(twice.starts_with("the key `a` comes twice at line 2"), "{twice}");
        assert!(
            read::<Words>(b"{\"a\": \"b\"}")
                .unwrap_err()
                .to_string()
                .contains("expected a sequence")
        );
    }
}
