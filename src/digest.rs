//! SHA-256 sums as every file of ours spells them: 64 lower-case hexadecimal digits.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The sum of some bytes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_the_published_one() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256("abc"), abc);
        assert_eq!(hex(&[0, 0xaf]), "00af");
        assert!(is_sha256(abc) && !is_sha256(&abc[1..]) && !is_sha256(&abc.to_uppercase()));
    }
}
