//! Signatures of `SHA256SUMS` by minisign: checked here, made elsewhere. Those of `ssh-keygen -Y` are the host's to check.

use crate::outside;

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use minisign_verify::{PublicKey, Signature};

use super::BundleError;

/// Lines of a signature: a comment that nothing vouches for, the signature, a comment that is signed, the signature of both.
const LINES: usize = 4;
/// Where the key begins in what minisign prints of it.
const KEY_BEGINS: usize = 10;
/// What the first line begins with.
const COMMENT: &str = "untrusted comment: ";

/// A public key that the user trusts, for reasons that lie outside of the bundle.
#[derive(Clone)]
pub struct TrustedKey {
    /// As it was given.
    pub name: String,
    /// As minisign prints it.
    pub text: String,
    key: PublicKey,
}

impl TrustedKey {
    /// Reads a key as minisign prints it, or the file that holds one.
    ///
    /// # Errors
    /// What is neither.
    pub fn open(text: &str) -> Result<TrustedKey, BundleError> {
        let bad = |why: String| BundleError::BadKey { key: text.to_owned(), why };
        let path = Path::new(text);
        let (key, printed) = match path.is_file() {
            true => {
                let file = outside::text(path).map_err(|error| bad(error.to_string()))?;
                let printed = file.lines().nth(1).unwrap_or_default().trim().to_owned();
                (PublicKey::decode(&file), printed)
            }
            false => (PublicKey::from_base64(text), text.to_owned()),
        };
        let key = key.map_err(|error| bad(error.to_string().to_lowercase()))?;
        Ok(TrustedKey { name: text.to_owned(), text: printed, key })
    }

    /// Reads keys each of which must have signed.
    ///
    /// # Errors
    /// What is none; a key that is named twice, since two signatures of one signer are not those of two.
    pub fn open_each(texts: &[impl AsRef<str>]) -> Result<Vec<TrustedKey>, BundleError> {
        let mut keys: Vec<TrustedKey> = Vec::new();
        for text in texts {
            let key = TrustedKey::open(text.as_ref())?;
            if let Some(same) = keys.iter().find(|other| other.bytes() == key.bytes()) {
                let (one, other) = (same.name.clone(), key.name);
                return Err(BundleError::SameKey { one, other });
            }
            keys.push(key);
        }
        Ok(keys)
    }

    /// The key alone, without the algorithm and the number that are printed before it.
    fn bytes(&self) -> Option<Vec<u8>> {
        let printed = BASE64_STANDARD.decode(&self.text).ok()?;
        printed.get(KEY_BEGINS..).map(<[u8]>::to_vec)
    }

    /// Whether the key signed these bytes. Of a signature everything but its first line is checked, its form included. Gives the comment
    /// that the key signed too.
    pub fn has_signed(&self, bytes: &[u8], signature: &str) -> Result<String, String> {
        let lines: Vec<&str> = signature.split_terminator('\n').collect();
        let is_whole =
            signature.ends_with('\n') && !signature.contains('\r') && lines.len() == LINES;
        if !is_whole || !lines[0].starts_with(COMMENT) {
            return Err("it is no signature of minisign".to_owned());
        }
        let told = |error: minisign_verify::Error| error.to_string().to_lowercase();
        let signature = Signature::decode(signature).map_err(told)?;
        self.key.verify(bytes, &signature, false).map_err(told)?;
        Ok(signature.trusted_comment().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example of the crate that verifies.
    const KEY: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
    const SIGNATURE: &str = "untrusted comment: signature from minisign secret key\n\
        RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=\n\
        trusted comment: timestamp:1633700835\tfile:test\tprehashed\n\
        wLMDjy9FLAuxZ3q4NlEvkgtyhrr0gtTu6KC4KBJdITbbOeAi1zBIYo0v4iTgt8jJpIidRJnp94ABQkJAgAooBQ==\n";

    #[test]
    fn a_published_signature_is_good_and_every_other_byte_of_it_is_not() {
        let key = TrustedKey::open(KEY).unwrap();
        let comment = key.has_signed(b"test", SIGNATURE).unwrap();
        assert_eq!(comment, "timestamp:1633700835\tfile:test\tprehashed");
        assert!(key.has_signed(b"tesT", SIGNATURE).is_err());
        let first = SIGNATURE.find('\n').unwrap();
        for place in (0..COMMENT.len()).chain(first..SIGNATURE.len()) {
            let mut bytes = SIGNATURE.as_bytes().to_vec();
            bytes[place] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert!(key.has_signed(b"test", &changed).is_err(), "byte {place}");
        }
        for cut in 0..SIGNATURE.len() {
            assert!(key.has_signed(b"test", &SIGNATURE[..cut]).is_err(), "{cut} bytes");
        }
        assert!(key.has_signed(b"test", &format!("{SIGNATURE}\n")).is_err());
    }

    #[test]
    fn a_key_is_a_text_or_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vendor.pub");
        fs_err::write(&path, format!("untrusted comment: vendor\n{KEY}\n")).unwrap();
        let key = TrustedKey::open(path.to_str().unwrap()).unwrap();
        key.has_signed(b"test", SIGNATURE).unwrap();
        assert_eq!(key.text, KEY);
        // Four eyes are not two of one head, whatever number is printed before the key.
        let mut bytes = BASE64_STANDARD.decode(KEY).unwrap();
        bytes[5] ^= 1;
        let renumbered = BASE64_STANDARD.encode(bytes);
        for (one, two) in [(KEY, path.to_str().unwrap()), (KEY, renumbered.as_str()), (KEY, KEY)] {
            let error = TrustedKey::open_each(&[one, two]).err().unwrap().to_string();
            assert!(error.contains("are one key"), "{error}");
        }
        for bad in ["no-such-file.pub", "RWQf", ""] {
            let error = TrustedKey::open(bad).err().unwrap().to_string();
            assert!(error.contains(bad), "{error}");
        }
    }
}
