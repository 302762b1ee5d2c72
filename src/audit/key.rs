//! The secret key of a trail's sums: 32 random bytes in a file of their own, to be kept apart from copies of the trail.

use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use crate::diagnosis::Failure;
use crate::digest::hex;
use crate::experiment::whole_file;

/// Its name in the directory of the trail.
const FILE: &str = "key";

/// The key of a trail.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of a directory; made where there is none.
    ///
    /// # Errors
    /// A file that cannot be read or written, or is no key.
    pub fn open(directory: &Path) -> Result<Key, Failure> {
        let path = path(directory);
        if !fs_err::exists(&path)? {
            let mut key = [0; 32];
            fill(&mut key)?;
            whole_file::write_private(&path, &key)?;
        }
        let bytes = fs_err::read(&path)?;
        let key = <[u8; 32]>::try_from(bytes.as_slice());
        let wrong =
            |_| Failure::mismatch(format!("{} is no key of an audit trail", path.display()));
        Ok(Key(key.map_err(wrong)?))
    }

    /// The key of a directory, where it has one: copies of a trail may lie elsewhere without it.
    ///
    /// # Errors
    /// See [`Key::open`].
    pub fn find(directory: &Path) -> Result<Option<Key>, Failure> {
        match fs_err::exists(path(directory))? {
            true => Ok(Some(Key::open(directory)?)),
            false => Ok(None),
        }
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

fn path(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// The name of a text that is kept: 32 random hexadecimal digits.
///
/// # Errors
/// A machine without random numbers.
pub fn random_name() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    Ok(hex(&bytes))
}

fn fill(bytes: &mut [u8]) -> Result<(), Failure> {
    getrandom::fill(bytes)
        .map_err(|error| Failure::usage(error.to_string(), "the machine gives no random numbers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_rfc_2104_under_a_key_that_is_made_once() {
        // Computed by `openssl dgst -sha256 -mac HMAC -macopt hexkey:00…00` of "abc".
        let sum = "fd7adb152c05ef80dccf50a1fa4c05d5a3ec6da95575fc312ae7c5d091836351";
        assert_eq!(Key([0; 32]).sum_bytes(b"abc"), sum);
        let folder = tempfile::tempdir().unwrap();
        assert!(Key::find(folder.path()).unwrap().is_none());
        let first = Key::open(folder.path()).unwrap();
        assert_eq!(Key::find(folder.path()).unwrap().unwrap().0, first.0);
        fs_err::write(folder.path().join(FILE), "short").unwrap();
        assert!(Key::open(folder.path()).is_err());
    }
}
