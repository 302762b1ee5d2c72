//! SHA-256 sums as every file of ours spells them: 64 lower-case hexadecimal digits. Of files they are streamed, several at once.

use crate::outside;

use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use sha2::{Digest, Sha256};

const BUFFER_BYTES: usize = 1 << 20;

pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}

/// Two lower-case digits a byte.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Whether a text is the spelling of a sum.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDigest {
    /// Relative to the checkpoint.
    pub name: String,
    pub sha256: String,
}

#[derive(Clone, Default)]
pub struct Sum(Sha256);

impl Sum {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> String {
        hex(&self.0.finalize())
    }

    /// Takes in all that `reader` still holds; returns the number of bytes.
    pub fn read(&mut self, mut reader: impl Read) -> std::io::Result<u64> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut length = 0;
        loop {
            let count = reader.read(&mut buffer)?;
            if count == 0 {
                return Ok(length);
            }
            self.update(&buffer[..count]);
            length += count as u64;
        }
    }
}

/// The sum of one file, as 64 lower-case hexadecimal digits.
pub fn sha256_file(path: &Path) -> std::io::Result<String> {
    let mut sum = Sum::default();
    sum.read(outside::open(path)?)?;
    Ok(sum.finish())
}

/// The sums of named files, in the order given, computed on all threads.
pub fn digest_files(files: &[(String, PathBuf)]) -> std::io::Result<Vec<FileDigest>> {
    files
        .par_iter()
        .map(|(name, path)| Ok(FileDigest { name: name.clone(), sha256: sha256_file(path)? }))
        .collect()
}

/// One sum for a set of weight files: SHA-256 over the lines `name sha256\n`, sorted.
pub fn weights_digest(files: &[FileDigest]) -> String {
    let mut lines: Vec<String> =
        files.iter().map(|file| format!("{} {}\n", file.name, file.sha256)).collect();
    lines.sort();
    let mut sum = Sum::default();
    for line in lines {
        sum.update(line.as_bytes());
    }
    sum.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_sum_is_the_published_one() {
        assert_eq!(sha256("abc"), ABC);
        assert_eq!(hex(&[0, 0xaf]), "00af");
        assert!(is_sha256(ABC) && !is_sha256(&ABC[1..]) && !is_sha256(&ABC.to_uppercase()));
    }

    #[test]
    fn a_file_has_the_standard_sum() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("abc");
        fs_err::write(&path, "abc").unwrap();
        assert_eq!(sha256_file(&path).unwrap(), ABC);
        let error = sha256_file(&directory.path().join("absent")).unwrap_err();
        assert!(error.to_string().contains("absent"), "{error}");
    }

    #[test]
    fn the_weights_sum_ignores_the_order_and_heeds_names_and_sums() {
        let file =
            |name: &str, sha256: &str| FileDigest { name: name.into(), sha256: sha256.into() };
        let (one, two) = (file("a.safetensors", ABC), file("b.safetensors", "00"));
        let both = weights_digest(&[one.clone(), two.clone()]);
        assert_eq!(both, weights_digest(&[two.clone(), one.clone()]));
        assert_ne!(both, weights_digest(&[one.clone(), file("c.safetensors", "00")]));
        assert_ne!(both, weights_digest(&[one, file("b.safetensors", "01")]));

        let directory = tempfile::tempdir().unwrap();
        let lines = directory.path().join("lines");
        fs_err::write(&lines, format!("a.safetensors {ABC}\nb.safetensors 00\n")).unwrap();
        assert_eq!(both, sha256_file(&lines).unwrap());
    }
}
