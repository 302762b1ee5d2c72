//! One line of a JSONL file in a run directory: `{"schema":N,` the fields of one record `,"hash":"…"}`, compact.
//!
//! `hash` is the lower-case hex sha256 over the line's bytes (newline left out) with `,"hash":"…"` taken out; of an audit trail it is their
//! HMAC-SHA-256, which nobody makes without the key.

use std::io::ErrorKind;
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::error::{Defect, RunError};
use crate::digest::{Sum, hex};
use crate::outside;
use crate::record::SCHEMA;

const SCHEMA_FIELD: &str = "{\"schema\":";
const HASH_FIELD: &str = ",\"hash\":\"";
const END: &str = "\"}";
const HEX: usize = 64;

/// What hashes lines: SHA-256, or HMAC-SHA-256 under a secret key.
#[derive(Clone, Default)]
pub struct Hasher(Option<[u8; 32]>);

impl Hasher {
    pub fn keyed(key: [u8; 32]) -> Hasher {
        Hasher(Some(key))
    }

    /// The hash of these parts one behind another.
    pub fn hash(&self, parts: &[&[u8]]) -> String {
        let Some(key) = &self.0 else {
            let mut sum = Sum::default();
            parts.iter().for_each(|part| sum.update(part));
            return sum.finish();
        };
        // A key is filled up with zeros to a block, as RFC 2104 has it.
        let mut block = [0; 64];
        block[..key.len()].copy_from_slice(key);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        parts.iter().for_each(|part| mac.update(part));
        hex(&mac.finalize().into_bytes())
    }
}

/// A line whose schema and hash are right.
pub struct Opened<'a> {
    /// Between the schema and the hash, as in `"a":1,"b":2`.
    pub fields: &'a [u8],
    pub hash: String,
}

impl Opened<'_> {
    /// The record's JSON, `hash` its last field.
    pub(super) fn with_hash(&self) -> Vec<u8> {
        let hash = self.hash.as_bytes();
        [b"{", self.fields, HASH_FIELD.as_bytes(), hash, END.as_bytes()].concat()
    }

    /// The record's JSON, without the hash.
    pub fn without_hash(&self) -> Vec<u8> {
        [b"{", self.fields, b"}"].concat()
    }
}

/// The fields of a record's JSON whose last one is an empty `hash`.
pub(super) fn without_hash(json: &str) -> Option<&str> {
    let fields = json.strip_prefix('{')?.strip_suffix(END)?;
    fields.strip_suffix(HASH_FIELD)
}

/// The line of a record's fields, without its newline, and the line's hash.
pub fn seal(fields: &str, hasher: &Hasher) -> (String, String) {
    let open = format!("{SCHEMA_FIELD}{SCHEMA},{fields}");
    let hash = hasher.hash(&[open.as_bytes(), b"}"]);
    (format!("{open}{HASH_FIELD}{hash}{END}"), hash)
}

/// Checks a line's schema and hash.
pub fn open<'a>(line: &'a [u8], hasher: &Hasher) -> Result<Opened<'a>, Defect> {
    let schema = schema(line);
    if let Some((found, _)) = schema
        && found != SCHEMA
    {
        return Err(Defect::Schema { found });
    }
    let no_hash = || Defect::Other("the line does not end in its hash".to_owned());
    let (body, hash) = split(line).ok_or_else(no_hash)?;
    let computed = hasher.hash(&[body, b"}"]);
    if computed.as_bytes() != hash {
        // Whoever was told the right one under a key could put it there.
        let computed = if hasher.0.is_some() { "another".to_owned() } else { computed };
        let found = String::from_utf8_lossy(hash);
        let told = format!("the line was changed: its bytes hash to {computed}, it says {found}");
        return Err(Defect::Other(told));
    }
    match schema.and_then(|(_, start)| body.get(start..)) {
        Some(fields) => Ok(Opened { fields, hash: computed }),
        None => Err(Defect::Schema { found: 0 }),
    }
}

/// Reads a file of a run directory whole.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, RunError> {
    outside::file(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => RunError::Missing { path: path.to_owned() },
        _ => error.into(),
    })
}

/// The number in `{"schema":N,`, and where the next field begins.
fn schema(line: &[u8]) -> Option<(u32, usize)> {
    let rest = line.strip_prefix(SCHEMA_FIELD.as_bytes())?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    (rest.get(digits) == Some(&b',')).then_some((number, SCHEMA_FIELD.len() + digits + 1))
}

/// A line's bytes before `,"hash":"`, and the hash's own.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_suffix(END.as_bytes())?;
    let (rest, hash) = rest.split_at_checked(rest.len().checked_sub(HEX)?)?;
    Some((rest.strip_suffix(HASH_FIELD.as_bytes())?, hash))
}
