//! Git's sums of files.

use std::io::Read;
use std::path::Path;

use sha1::{Digest, Sha1};

use super::HubError;
use crate::digest::hex;
use crate::outside;

const BUFFER_BYTES: usize = 1 << 20;

/// Git's name of a file's bytes, as 40 lower-case hexadecimal digits: the SHA-1 of `blob LENGTH`, a zero and the bytes.
///
/// # Errors
/// The file cannot be read.
pub fn git_sum_of_file(path: &Path) -> Result<String, HubError> {
    let mut file = outside::open(path)?;
    let mut sum = Sha1::new_with_prefix(format!("blob {}\0", file.metadata()?.len()));
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&sum.finalize())),
            count => sum.update(&buffer[..count]),
        }
    }
}
