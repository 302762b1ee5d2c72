//! A line of the store: a key, a sum over the key and the rest, and a completion as JSON.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::digest::{hex, is_sha256, sha256};
use crate::record::{AnsweredBy, FinishReason, Usage};

/// Digits of a key, and of a sum.
const DIGITS: usize = 64;
/// Between key, sum and JSON stands a blank.
const BEGIN: usize = 2 * (DIGITS + 1);
/// Longer ones are none of ours: a completion of a million tokens is a third of it.
pub(super) const LONGEST: usize = 32 << 20;

/// What a completion is kept under: the sum of all that determines it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(String);

impl Key {
    /// The key of a request, `sum` being that of the model and the request; requests of different salts share nothing, and versions of
    /// wardround none either: what a release changes in grammars or on a GPU, no number says.
    pub fn of(sum: &str, salt: Option<[u8; 16]>) -> Key {
        let salt = salt.map_or_else(|| "none".to_owned(), |salt| hex(&salt));
        let (version, bits) = (env!("CARGO_PKG_VERSION"), wardround_engine::BITS);
        Key(sha256(format!("version {version} bits {bits} salt {salt} request {sum}")))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A completion that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    pub text: String,
    pub tokens: Vec<u32>,
    pub finish_reason: FinishReason,
    pub usage: Usage,
    /// What it took when it was computed.
    pub elapsed_ms: u64,
    /// Seconds since 1970.
    pub kept_at: u64,
    /// Of an endpoint, which may answer otherwise when it is asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Elsewhere>,
}

impl Kept {
    /// A completion that was computed here and now.
    pub fn new(
        text: String,
        tokens: Vec<u32>,
        finish_reason: FinishReason,
        usage: Usage,
        took: Duration,
    ) -> Kept {
        let (elapsed_ms, elsewhere) = (took.as_millis() as u64, None);
        let kept_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Kept { text, tokens, finish_reason, usage, elapsed_ms, kept_at, elsewhere }
    }
}

/// What an endpoint said beside its completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elsewhere {
    pub answered_by: Option<AnsweredBy>,
    pub constrained: bool,
    pub not_sent: Vec<String>,
}

/// The line of a completion, with its newline.
///
/// # Errors
/// A completion that is longer than any line.
pub(super) fn encode(key: &Key, kept: &Kept) -> std::io::Result<Vec<u8>> {
    let json = serde_json::to_string(kept)?;
    let line = format!("{key} {} {json}\n", sum(key, json.as_bytes()));
    match line.len() <= LONGEST {
        true => Ok(line.into_bytes()),
        false => Err(std::io::Error::other("a completion is longer than any line")),
    }
}

fn sum(key: &Key, json: &[u8]) -> String {
    sha256([key.0.as_bytes(), b" ", json].concat())
}

/// The key of a line, which is read without its newline; nothing is checked.
pub(super) fn key(line: &[u8]) -> Option<Key> {
    let key = std::str::from_utf8(line.get(..DIGITS)?).ok()?;
    (is_sha256(key) && line.get(DIGITS) == Some(&b' ')).then(|| Key(key.to_owned()))
}

/// What a line keeps.
///
/// # Errors
/// What is wrong with it.
pub(super) fn decode(line: &[u8]) -> Result<(Key, Kept), &'static str> {
    let key = key(line).ok_or("it begins with no key")?;
    let told = line.get(DIGITS + 1..BEGIN - 1).ok_or("it has no sum")?;
    let json = line.get(BEGIN..).ok_or("it keeps nothing")?;
    if line[BEGIN - 1] != b' ' || sum(&key, json).as_bytes() != told {
        return Err("its sum is another");
    }
    let kept = serde_json::from_slice(json).map_err(|_| "it is no completion")?;
    Ok((key, kept))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn kept(text: &str) -> Kept {
        Kept {
            text: text.to_owned(),
            tokens: vec![1, 2],
            finish_reason: FinishReason::Stop,
            usage: Usage::default(),
            elapsed_ms: 7,
            kept_at: 1_700_000_000,
            elsewhere: None,
        }
    }

    #[test]
    fn a_line_with_any_other_byte_is_none() {
        let (key, kept) = (Key::of("a", None), kept("said\n\u{2028}"));
        let line = encode(&key, &kept).unwrap();
        let line = line.strip_suffix(b"\n").unwrap();
        assert!(!line.contains(&b'\n'));
        assert_eq!(decode(line), Ok((key, kept)));
        for place in 0..line.len() {
            for bit in 0..8 {
                let mut other = line.to_vec();
                other[place] ^= 1 << bit;
                assert!(decode(&other).is_err(), "{place}, bit {bit}");
            }
            assert!(decode(&line[..place]).is_err(), "{place}");
        }
    }

    #[test]
    fn keys_differ_by_request_and_by_salt() {
        let keys = [
            Key::of("a", None),
            Key::of("b", None),
            Key::of("a", Some([0; 16])),
            Key::of("a", Some([1; 16])),
        ];
        let distinct: std::collections::BTreeSet<&Key> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }
}
