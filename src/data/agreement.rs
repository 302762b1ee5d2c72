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

/// Counts the ids of MEDEC-UW in a file of any name, plain or compressed with gzip. A note's text without its id is not recognised.
///
/// # Errors
/// A file that cannot be read; what is no file.
pub fn count_restricted(path: &Path) -> Result<u64, DataError> {
    if !fs_err::metadata(path)?.is_file() {
        // A pipe would be waited for without end.
        return Err(io::Error::other(format!("{}: it is no file", path.display())).into());
    }
    let mut head = Vec::new();
    outside::open(path)?.take(2).read_to_end(&mut head)?;
    let file = outside::open(path)?;
    match head == GZIP {
        true => Ok(count(MultiGzDecoder::new(file))?),
        false => Ok(count(file)?),
    }
}

fn count(mut reader: impl Read) -> io::Result<u64> {
    let Some(id) = &*ID else { return Ok(0) };
    let mut window = Vec::with_capacity(BUFFER_BYTES + OVERLAP_BYTES);
    let (mut found, mut done) = (0, 0);
    loop {
        let read = reader.by_ref().take(BUFFER_BYTES as u64).read_to_end(&mut window)?;
        let is_last = read == 0;
        // A match near the end of the window may be incomplete: it is left to the next window.
        let safe = if is_last { window.len() } else { window.len().saturating_sub(OVERLAP_BYTES) };
        let within = id.find_iter(&window).filter(|hit| hit.start() >= done && hit.start() < safe);
        found += within.count() as u64;
        if is_last {
            return Ok(found);
        }
        let past = safe.saturating_sub(OVERLAP_BYTES);
        window.drain(..past);
        done = safe - past;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn ids_are_found_in_any_form_and_once_each() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        let cases: [(&str, u64); 6] = [
            ("Text ID,Text\nms-test-1,a\nuw-test-2,b\nuw-val-3,c\n", 2),
            ("{\"id\": \"UW-train-14\"}\n", 1),
            ("ms-test-1 raw-test-2 x uw-tests uw-", 0),
            ("uw-validation-7", 1),
            ("uwtest1", 0),
            ("", 0),
        ];
        for (text, expected) in cases {
            fs_err::write(&path, text).unwrap();
            assert_eq!(count_restricted(&path).unwrap(), expected, "{text}");
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(text.as_bytes()).unwrap();
            fs_err::write(&path, packed.finish().unwrap()).unwrap();
            assert_eq!(count_restricted(&path).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn an_id_across_two_pieces_counts_once() {
        for before in BUFFER_BYTES - 70..BUFFER_BYTES + 5 {
            let mut text = vec![b' '; before];
            text.extend_from_slice(b"uw-test-12 ");
            text.resize(2 * BUFFER_BYTES + 10, b'.');
            assert_eq!(count(&text[..]).unwrap(), 1, "{before}");
        }
    }
}
