//! Parses settings from `key=value` pairs and from a plan's table, with the errors of those that are refused.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};

use crate::diagnosis::{Blame, Diagnosis};

/// Why a setting was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("\"{pair}\" is not key=value")]
    NoEquals { pair: String },
    #[error("there is no setting {key}")]
    UnknownKey { key: String, known: Vec<String> },
    #[error("setting {key}: \"{value}\" is not {expected}")]
    BadValue { key: String, value: String, expected: String },
    #[error("there is no system {name}")]
    UnknownSystem { name: String, known: Vec<&'static str> },
}

impl Diagnosis for SettingsError {
    fn blame(&self) -> Blame {
        Blame::Usage
    }

    fn hint(&self) -> Option<String> {
        match self {
            SettingsError::NoEquals { .. } => Some("write --set t_max=2".into()),
            SettingsError::UnknownKey { known, .. } => {
                Some(format!("the system's settings are {}", known.join(", ")))
            }
            SettingsError::BadValue { .. } => None,
            SettingsError::UnknownSystem { known, .. } => {
                let known = known.join(", ");
                Some(format!("the systems are {known}; or give a TOML file of your own"))
            }
        }
    }
}

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

pub fn pairs<S: AsRef<str>>(pairs: &[S]) -> Result<Vec<(String, String)>, SettingsError> {
    let entry = |pair: &S| match pair.as_ref().split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
        None => Err(SettingsError::NoEquals { pair: pair.as_ref().into() }),
    };
    pairs.iter().map(entry).collect()
}

/// `table` with these entries in place of its own.
pub fn replace<T: DeserializeOwned>(
    mut table: toml::Table,
    entries: impl IntoIterator<Item = (String, toml::Value)>,
) -> Result<toml::Table, SettingsError> {
    for (key, value) in entries {
        // `true` and `false` as the words `on` and `off`.
        let value = match spelling(value.clone()).as_str() {
            "true" => "on".into(),
            "false" => "off".into(),
            _ => value,
        };
        if !table.contains_key(&key) {
            let known = table.keys().cloned().collect();
            return Err(SettingsError::UnknownKey { key, known });
        }
        table.insert(key.clone(), value.clone());
        if let Err(error) = table.clone().try_into::<T>() {
            return Err(SettingsError::BadValue {
                key,
                value: spelling(value),
                expected: expected(error.message()),
            });
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
