//! The version of a bundle: numbers between dots, which are compared one by one.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Numbers of the longest version, and digits of the longest number.
const MOST_NUMBERS: usize = 6;
const MOST_DIGITS: usize = 12;

/// As in `1.4` or `2026.11.23`; a missing number counts as 0.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    numbers: Vec<u64>,
    text: String,
}

/// A text that is no version.
#[derive(Clone, Debug, thiserror::Error)]
#[error("`{}` is no version: expected numbers between dots, such as 1.4 or 2026.11.23", text.escape_debug())]
pub struct BadVersion {
    text: String,
}

impl FromStr for Version {
    type Err = BadVersion;

    fn from_str(text: &str) -> Result<Version, BadVersion> {
        let number = |part: &str| {
            let is_plain = (1..=MOST_DIGITS).contains(&part.len())
                && part.bytes().all(|byte| byte.is_ascii_digit())
                && (part == "0" || !part.starts_with('0'));
            part.parse().ok().filter(|_| is_plain)
        };
        let numbers: Option<Vec<u64>> = text.split('.').map(number).collect();
        let numbers = numbers.filter(|numbers| numbers.len() <= MOST_NUMBERS);
        let numbers = numbers.ok_or_else(|| BadVersion { text: text.to_owned() })?;
        Ok(Version { numbers, text: text.to_owned() })
    }
}

impl TryFrom<String> for Version {
    type Error = BadVersion;

    fn try_from(text: String) -> Result<Version, BadVersion> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> String {
        version.text
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Version) -> Ordering {
        let number =
            |version: &Version, place: usize| version.numbers.get(place).copied().unwrap_or(0);
        let places = 0..self.numbers.len().max(other.numbers.len());
        places
            .map(|place| number(self, place).cmp(&number(other, place)))
            .fold(Ordering::Equal, Ordering::then)
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Version) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Version) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_and_not_texts() {
        let version = |text: &str| text.parse::<Version>().unwrap();
        assert!(version("1.10") > version("1.9"));
        assert!(version("2026.11.23") > version("2026.9.30"));
        assert!(version("1.0.1") > version("1"));
        assert_eq!(version("1.0"), version("1"));
        for bad in
            ["", "1.", ".1", "v1", "1.0-rc1", "01", "1..2", "1/2", "..", "1 ", "9999999999999"]
        {
            assert!(bad.parse::<Version>().is_err(), "{bad}");
        }
    }
}
