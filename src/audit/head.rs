//! The head of a trail: the number and the hash of its last line. Kept elsewhere, it proves that no line was cut off since.

use std::fmt;
use std::path::Path;

use super::files::{self, ANCHOR};
use crate::diagnosis::Failure;
use crate::experiment::whole_file;
use crate::outside;

/// The last head's file, beside the trail.
pub const FILE: &str = "trail.head";
/// What stands before a head wherever it is written.
const MARK: &str = "audit head ";
/// Bytes of the file beside a trail at most; one line has a tenth of it.
const MOST_BYTES: u64 = 1 << 10;

/// A line by its number and hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub seq: u64,
    pub hash: String,
}

impl fmt::Display for Head {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{MARK}{} {}", self.seq, self.hash)
    }
}

impl Head {
    /// Writes it beside the trail, durably.
    pub(super) fn write(&self, directory: &Path) -> std::io::Result<()> {
        whole_file::write_private(&directory.join(FILE), format!("{self}\n").as_bytes())
    }

    /// The head of a trail without a line.
    pub(super) fn before_the_first() -> Head {
        Head { seq: 0, hash: ANCHOR.to_owned() }
    }

    /// The last one that was told, beside the trail.
    pub(super) fn beside(directory: &Path) -> Result<Option<Head>, Failure> {
        let path = directory.join(FILE);
        match files::beside(&path, MOST_BYTES)? {
            Some(bytes) => Ok(all(&bytes, &path)?.pop()),
            None => Ok(None),
        }
    }

    /// The head of a line of text, such as one of the journal.
    fn find(line: &str) -> Option<Head> {
        let (_, rest) = line.split_once(MARK)?;
        let mut words = rest.split_whitespace();
        let head = Head { seq: words.next()?.parse().ok()?, hash: words.next()?.to_owned() };
        let is_hex = head.hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_hex && head.hash.len() == 64).then_some(head)
    }
}

/// All heads of a text, such as an export of the journal; what stands around them does not matter.
pub fn read(path: &Path) -> Result<Vec<Head>, Failure> {
    // A pipe, as `<(journalctl …)` is one, may be what is given.
    all(&outside::given(path)?, path)
}

fn all(bytes: &[u8], path: &Path) -> Result<Vec<Head>, Failure> {
    let heads: Vec<Head> = String::from_utf8_lossy(bytes).lines().filter_map(Head::find).collect();
    match heads.is_empty() {
        false => Ok(heads),
        true => Err(Failure::usage(
            format!("{} has no line with `{MARK}NUMBER SHA256`", path.display()),
            "give what the server wrote to stderr, or an export of the journal",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_found_in_a_journal() {
        let hash = "ab".repeat(32);
        let head = Head { seq: 12, hash: hash.clone() };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let text = format!(
            "Nov 23 10:00 ward wardround[7]: {head}\nready\naudit head x {hash}\naudit head 3 12\n"
        );
        fs_err::write(&path, text).unwrap();
        assert_eq!(read(&path).unwrap(), std::slice::from_ref(&head));
        head.write(folder.path()).unwrap();
        assert_eq!(read(&folder.path().join(FILE)).unwrap(), [head]);
        fs_err::write(&path, "ready\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("has no line"));
    }
}
