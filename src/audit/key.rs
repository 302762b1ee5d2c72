//! The secret key of a trail, which its lines and its sums of texts are made with: 32 random bytes in a file of their own.

use std::io::ErrorKind;
use std::path::Path;

use crate::diagnosis::Failure;
use crate::digest::hex;
use crate::experiment::line::Hasher;
use crate::experiment::whole_file;
use crate::outside;

/// Its name in the directory of the trail.
pub(super) const FILE: &str = "key";
const LENGTH: usize = 32;

#[derive(Clone)]
pub struct TrailKey(pub(super) Hasher);

impl TrailKey {
    /// Makes one beside the trail, durably.
    pub(super) fn make(directory: &Path) -> Result<(), Failure> {
        Ok(whole_file::write_private(&directory.join(FILE), &random::<LENGTH>()?)?)
    }

    /// # Errors
    /// None beside the trail, which is no wrong one: it may be kept elsewhere.
    pub fn read(directory: &Path) -> Result<TrailKey, Failure> {
        let path = directory.join(FILE);
        let bytes = outside::bytes(&path, LENGTH as u64).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::missing(
                format!(
                    "{} is missing, and nobody can tell without it whether the trail is as it was",
                    path.display()
                ),
                "put it there, from where it was kept",
            ),
            _ => error.into(),
        })?;
        let key = <[u8; LENGTH]>::try_from(bytes);
        let wrong =
            |_| Failure::mismatch(format!("{} is no key of an audit trail", path.display()));
        Ok(TrailKey(Hasher::keyed(key.map_err(wrong)?)))
    }

    /// The sum of a text, which is no line's hash: a client could send the words of a line. A bare sum of a short note could be guessed.
    pub fn sum(&self, text: impl AsRef<[u8]>) -> String {
        self.0.hash(&[b"text\0", text.as_ref()])
    }
}

/// What no other call or text is called: 32 random hexadecimal digits.
pub fn random_name() -> Result<String, Failure> {
    Ok(hex(&random::<16>()?))
}

fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failure::usage(error.to_string(), "the machine gives no random numbers")
    })?;
    Ok(bytes)
}
