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

/// The JSON of the record in a line, `hash` its last field; the hash is not checked here.
pub fn record(line: &[u8]) -> Result<Vec<u8>, Defect> {
    let no_schema = || Defect::Other("the line does not begin with its schema".to_owned());
    let rest = line.strip_prefix(SCHEMA_FIELD.as_bytes()).ok_or_else(no_schema)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = rest.split_at(digits);
    let found = str::from_utf8(number).ok().and_then(|number| number.parse().ok());
    match (found.ok_or_else(no_schema)?, rest.strip_prefix(b",")) {
        (SCHEMA, Some(fields)) => Ok([b"{", fields].concat()),
        (SCHEMA, None) => Err(no_schema()),
        (found, _) => Err(Defect::Schema { found }),
    }
}

/// Reads a file of a run directory whole.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, RunError> {
    outside::file(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => RunError::Missing { path: path.to_owned() },
        _ => error.into(),
    })
}
