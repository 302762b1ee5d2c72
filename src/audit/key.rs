//! The secret key of a trail's sums: 32 random bytes in a file of their own, to be kept apart from copies of the trail.

use std::io;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use super::files;
use crate::diagnosis::Failure;
use crate::digest::hex;
use crate::experiment::whole_file;

/// Its name in the directory of the trail.
const FILE: &str = "key";
/// Its length in bytes.
const LENGTH: usize = 32;
/// What a fingerprint is the sum of: no JSON, as texts are.
const OF_NO_TEXT: &[u8] = b"the key of this audit trail";
/// Digits of a fingerprint.
const SHOWN: usize = 16;

#[derive(Clone)]
pub struct Key([u8; LENGTH]);

impl Key {
    /// A new one, which lies nowhere yet.
    pub(super) fn make() -> Result<Key, Failure> {
        let mut key = [0; LENGTH];
        fill(&mut key)?;
        Ok(Key(key))
    }

    /// Writes it beside the trail, durably.
    pub(super) fn write(&self, directory: &Path) -> io::Result<()> {
        whole_file::write_private(&path(directory), &self.0)
    }

    /// The key of a directory, where it has one: copies of a trail may lie elsewhere without it.
    pub fn find(directory: &Path) -> Result<Option<Key>, Failure> {
        let path = path(directory);
        let Some(bytes) = files::beside(&path, LENGTH as u64)? else { return Ok(None) };
        let key = <[u8; LENGTH]>::try_from(bytes.as_slice());
        let wrong =
            |_| Failure::mismatch(format!("{} is no key of an audit trail", path.display()));
        Ok(Some(Key(key.map_err(wrong)?)))
    }

    /// What lines may say of it: by it another key is told apart, and nothing is summed.
    pub fn fingerprint(&self) -> String {
        let mut sum = self.sum_bytes(OF_NO_TEXT);
        sum.truncate(SHOWN);
        sum
    }

    /// HMAC-SHA-256 of a value's JSON: a bare sum of a short note could be guessed.
    pub fn sum(&self, value: &Value) -> String {
        self.sum_bytes(value.to_string().as_bytes())
    }

    /// HMAC-SHA-256 of some bytes.
    pub fn sum_bytes(&self, bytes: &[u8]) -> String {
        // A key is filled up with zeros to a block, as RFC 2104 has it.
        let mut block = [0; 64];
        block[..self.0.len()].copy_from_slice(&self.0);
        let mac = Hmac::<Sha256>::new(&block.into()).chain_update(bytes);
        hex(&mac.finalize().into_bytes())
    }
}

/// Where the key of a directory lies.
pub(super) fn path(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// The name of a text that is kept: 32 random hexadecimal digits.
pub fn random_name() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    Ok(hex(&bytes))
}

/// Whether a text is what [`random_name`] makes.
pub fn is_random_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn fill(bytes: &mut [u8]) -> Result<(), Failure> {
    getrandom::fill(bytes)
        .map_err(|error| Failure::usage(error.to_string(), "the machine gives no random numbers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_rfc_2104_under_a_key_that_is_read_again() {
        // Computed by `openssl dgst -sha256 -mac HMAC -macopt hexkey:00…00` of "abc".
        let sum = "fd7adb152c05ef80dccf50a1fa4c05d5a3ec6da95575fc312ae7c5d091836351";
        assert_eq!(Key([0; 32]).sum_bytes(b"abc"), sum);
        let folder = tempfile::tempdir().unwrap();
        assert!(Key::find(folder.path()).unwrap().is_none());
        let first = Key::make().unwrap();
        first.write(folder.path()).unwrap();
        assert_eq!(Key::find(folder.path()).unwrap().unwrap().0, first.0);
        assert_eq!(first.fingerprint().len(), SHOWN);
        assert_ne!(first.fingerprint(), Key::make().unwrap().fingerprint());
        for wrong in ["short", "a text that is longer than any key of a trail"] {
            fs_err::write(folder.path().join(FILE), wrong).unwrap();
            assert!(Key::find(folder.path()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_names_that_are_made_here_are_names() {
        assert!(is_random_name(&random_name().unwrap()));
        let upper = "A".repeat(32);
        for other in ["", "../../../../../../../etc/passwd.", "/tmp/x", "ab", &upper] {
            assert!(!is_random_name(other), "{other}");
        }
    }
}
