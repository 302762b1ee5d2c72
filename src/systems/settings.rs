//! Reading a system's switches: `key=value`, each value checked, each refusal by name.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::diagnosis::{Blame, Diagnosis};
/// Why a setting was refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("\"{pair}\" is not key=value")]
    NoEquals { pair: String },
    #[error("there is no setting {key}")]
    UnknownKey {
        key: String,
        known: &'static [&'static str],
    },
    #[error("setting {key}: \"{value}\" is not {expected}")]
    BadValue {
        key: String,
        value: String,
        expected: String,
    },
    #[error("there is no system {name}")]
    UnknownSystem {
        name: String,
        known: Vec<&'static str>,
    },
}

impl SettingsError {
    pub fn unknown(key: &str, known: &'static [&'static str]) -> SettingsError {
        SettingsError::UnknownKey {
            key: key.into(),
            known,
        }
    }
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
                Some(format!("the systems are {}", known.join(", ")))
            }
        }
    }
}

/// Hands every `key=value` pair to `set`, in order; the last of a key wins.
///
/// # Errors
/// What is no pair, and what `set` refuses.
pub fn set_pairs<S: AsRef<str>>(
    pairs: &[S],
    mut set: impl FnMut(&str, &str) -> Result<(), SettingsError>,
) -> Result<(), SettingsError> {
    for pair in pairs {
        let pair = pair.as_ref();
        let Some((key, value)) = pair.split_once('=') else {
            return Err(SettingsError::NoEquals { pair: pair.into() });
        };
        set(key.trim(), value.trim())?;
    }
    Ok(())
}

/// Hands every entry of a plan's table to `set`.
///
/// # Errors
/// What `set` refuses.
pub fn set_table(
    table: &toml::Table,
    mut set: impl FnMut(&str, &str) -> Result<(), SettingsError>,
) -> Result<(), SettingsError> {
    for (key, value) in table {
        match value {
            toml::Value::String(value) => set(key, value)?,
            other => set(key, &other.to_string())?,
        }
    }
    Ok(())
}

pub fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

pub fn switch(key: &str, value: &str) -> Result<bool, SettingsError> {
    one_of(key, value, [true, false], on_off)
}

pub fn one_of<T: Copy, const N: usize>(
    key: &str,
    value: &str,
    choices: [T; N],
    name: fn(T) -> &'static str,
) -> Result<T, SettingsError> {
    let chosen = choices.into_iter().find(|choice| name(*choice) == value);
    chosen.ok_or_else(|| bad(key, value, choices.map(name).join(" or ")))
}

pub fn within<T>(key: &str, value: &str, range: RangeInclusive<T>) -> Result<T, SettingsError>
where
    T: FromStr + PartialOrd + Display,
{
    let number = value.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        bad(key, value, expected)
    })
}

/// A count of tokens, or `auto`.
pub fn tokens(key: &str, value: &str) -> Result<Option<usize>, SettingsError> {
    match value {
        "auto" => Ok(None),
        number => Ok(Some(within(key, number, 1..=1_000_000)?)),
    }
}

/// As [`tokens`] reads it.
pub fn tokens_value(tokens: Option<usize>) -> toml::Value {
    match tokens {
        Some(count) => (count as i64).into(),
        None => "auto".into(),
    }
}

pub fn bad(key: &str, value: &str, expected: String) -> SettingsError {
    SettingsError::BadValue {
        key: key.into(),
        value: value.into(),
        expected,
    }
}
