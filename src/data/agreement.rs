//! Detects notes under a data-use agreement by the content of a file: those of MEDEC-UW, whose ids begin with `uw-`, may not be shared.

use crate::outside;

use std::io::{self, Read};
use std::path::Path;
use std::sync::LazyLock;

use flate2::read::MultiGzDecoder;
use regex::bytes::Regex;

use super::DataError;

const BUFFER_BYTES: usize = 1 << 20;
/// No id is longer.
const OVERLAP_BYTES: usize = 64;
const GZIP: [u8; 2] = [0x1f, 0x8b];

// A pattern that does not compile cannot ship: the test below uses it.
static ID: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i-u)\buw-(?:train|training|val|valid|validation|test)-?\d+").ok()
});

/// Whether a file of any name, plain or compressed with gzip, has an id of MEDEC-UW. A note's text without its id is not recognised.
///
/// # Errors
/// A file that cannot be read; what is no file.
pub fn is_restricted(path: &Path) -> Result<bool, DataError> {
    if !fs_err::metadata(path)?.is_file() {
        // A pipe would be waited for without end.
        return Err(io::Error::other(format!("{}: it is no file", path.display())).into());
    }
    let mut head = Vec::new();
    outside::open(path)?.take(2).read_to_end(&mut head)?;
    let file = outside::open(path)?;
    match head == GZIP {
        true => Ok(has_id(MultiGzDecoder::new(file))?),
        false => Ok(has_id(file)?),
    }
}

fn has_id(mut reader: impl Read) -> io::Result<bool> {
    let Some(id) = &*ID else { return Ok(false) };
    let mut window = Vec::with_capacity(BUFFER_BYTES + OVERLAP_BYTES);
    loop {
        let read = reader.by_ref().take(BUFFER_BYTES as u64).read_to_end(&mut window)?;
        if read == 0 || id.is_match(&window) {
            return Ok(read > 0);
        }
        // What is left may begin an id.
        window.drain(..window.len().saturating_sub(OVERLAP_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn ids_are_found_in_any_form() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        let cases = [
            ("Text ID,Text\nms-test-1,a\nuw-test-2,b\nuw-val-3,c\n", true),
            ("{\"id\": \"UW-train-14\"}\n", true),
            ("ms-test-1 raw-test-2 x uw-tests uw-", false),
            ("uw-validation-7", true),
            ("uwtest1", false),
            ("", false),
        ];
        for (text, expected) in cases {
            fs_err::write(&path, text).unwrap();
            assert_eq!(is_restricted(&path).unwrap(), expected, "{text}");
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(text.as_bytes()).unwrap();
            fs_err::write(&path, packed.finish().unwrap()).unwrap();
            assert_eq!(is_restricted(&path).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn an_id_across_two_pieces_is_found() {
        for before in BUFFER_BYTES - 70..BUFFER_BYTES + 5 {
            let mut text = vec![b' '; before];
            text.extend_from_slice(b"uw-test-12 ");
            text.resize(2 * BUFFER_BYTES + 10, b'.');
            assert!(has_id(&text[..]).unwrap(), "{before}");
        }
    }
}
