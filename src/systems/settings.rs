//! Parses settings from `key=value` pairs and from a plan's table, and refuses those that there are not.

use itertools::Itertools;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};

use crate::diagnosis::Failure;

/// A struct of settings, each with its default. What a table lacks has that; a key that no setting has is refused by [`replace`]. Behind
/// `with` stand the parts whose settings it has, too.
macro_rules! settings {
    ($(#[$about:meta])* pub struct $name:ident {
        $($(#[$of:meta])* pub $field:ident: $type:ty = $default:expr,)*
    } $(with $($part:ident: $part_type:ty),+)?) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $($(#[$of])* pub $field: $type,)*
            $($(#[serde(flatten)] pub $part: $part_type,)+)?
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* $($($part: Default::default(),)+)? }
            }
        }
    };
}
pub(super) use settings;

pub fn pairs<S: AsRef<str>>(pairs: &[S]) -> Result<Vec<(String, String)>, Failure> {
    let entry = |pair: &S| match pair.as_ref().split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
        None => {
            let message = format!("\"{}\" is not key=value", pair.as_ref());
            Err(Failure::usage(message, "write --set t_max=2"))
        }
    };
    pairs.iter().map(entry).collect()
}

/// `table` with these entries in place of its own.
pub fn replace<T: DeserializeOwned>(
    mut table: toml::Table,
    entries: impl IntoIterator<Item = (String, toml::Value)>,
) -> Result<toml::Table, Failure> {
    for (key, value) in entries {
        // `true` and `false` as the words `on` and `off`.
        let value = match spelling(value.clone()).as_str() {
            "true" => "on".into(),
            "false" => "off".into(),
            _ => value,
        };
        if !table.contains_key(&key) {
            let hint = format!("the system's settings are {}", table.keys().join(", "));
            return Err(Failure::usage(format!("there is no setting {key}"), &hint));
        }
        table.insert(key.clone(), value.clone());
        if let Err(error) = table.clone().try_into::<T>() {
            let (value, expected) = (spelling(value), expected(error.message()));
            return Err(Failure::refused(format!("setting {key}: \"{value}\" is not {expected}")));
        }
    }
    Ok(table)
}

/// The values that serde's message says it expected, without quotes and commas: "file or permuted".
fn expected(message: &str) -> String {
    let expected = message.rsplit("expected ").next().unwrap_or(message);
    let choices = expected.strip_prefix("one of ").unwrap_or(expected);
    choices.replace("`, `", "` or `").replace('`', "")
}

/// A value as it is written after `key=`.
pub fn spelling(value: toml::Value) -> String {
    match value {
        toml::Value::String(text) => text,
        other => other.to_string(),
    }
}

/// The same of one that is read.
pub fn spelled<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    toml::Value::deserialize(value).map(spelling)
}

/// A whole number from `MIN` to `MAX`, for `#[serde(deserialize_with)]`.
pub fn whole<'de, const MIN: u64, const MAX: u64, D, T>(value: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let number = spelled(value)?.parse().ok().filter(|number| (MIN..=MAX).contains(number));
    let number = number.and_then(|number| T::try_from(number).ok());
    let expected = || D::Error::custom(format!("expected a whole number from {MIN} to {MAX}"));
    number.ok_or_else(expected)
}

/// `on` or `off`, for `#[serde(with)]`.
pub mod switch {
    use super::*;

    pub fn serialize<S: serde::Serializer>(is_on: &bool, to: S) -> Result<S::Ok, S::Error> {
        if *is_on { "on" } else { "off" }.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
        match spelled(value)?.as_str() {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(D::Error::custom("expected on or off")),
        }
    }
}
