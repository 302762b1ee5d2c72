//! Files that lines are appended to: the whole lines, and what a killed process or a power cut leaves behind the last of them.
//!
//! A line counts once it and its newline are on the disk. Behind the last newline may stand the beginning of a line, or a whole one
//! whose newline is missing, and then NUL bytes: file systems grow a file before its bytes have arrived. None of it was ever counted.

use std::path::Path;

/// A file's whole lines, the last newline among them, and the bytes behind.
pub fn split(file: &[u8]) -> (&[u8], &[u8]) {
    let end = file.iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1);
    file.split_at(end)
}

/// The whole lines of a file, without their newlines.
pub fn lines(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    split(file).0.split_inclusive(|&byte| byte == b'\n').map(|line| &line[..line.len() - 1])
}

/// Whether the bytes behind a file's last newline are what an interrupted write leaves, and may be cut off; `is_line` tells whether
/// some bytes are a line. Anything else was written by somebody else.
pub fn is_unfinished(tail: &[u8], is_line: impl FnOnce(&[u8]) -> bool) -> bool {
    // No line has a NUL byte.
    let begun = tail.split(|&byte| byte == 0).next().unwrap_or_default();
    begun.is_empty() || is_beginning(begun) || is_line(begun)
}

/// Whether the bytes are an incomplete JSON object. (Read as a `Value`: `IgnoredAny` takes a number
/// cut behind its `e` for a wrong one.)
fn is_beginning(bytes: &[u8]) -> bool {
    bytes.starts_with(b"{")
        && matches!(serde_json::from_slice::<serde_json::Value>(bytes), Err(error) if error.is_eof())
}

/// What is said of bytes that were cut off.
pub fn notice(path: &Path, bytes: u64) -> String {
    format!(
        "{}: an unfinished last line of {bytes} B cut off, which a killed process left",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_and_nul_bytes_are_unfinished_and_nothing_else_is() {
        let is_line = |bytes: &[u8]| bytes == b"{\"a\":1}";
        for tail in
            ["", "{", "{\"a\":1", "{\"a\":1}", "\0\0\0", "{\"a\0\0", "{\"a\":1}\0", "\0\0:1}"]
        {
            assert!(is_unfinished(tail.as_bytes(), is_line), "{tail:?}");
        }
        // A kill may fall inside a character.
        assert!(is_unfinished(&"{\"é".as_bytes()[..3], is_line));
        for tail in ["more", "{\"a\":2}", "{\"a\":2}\0", "a\0", " \0", "{\"a\":1}x"] {
            assert!(!is_unfinished(tail.as_bytes(), is_line), "{tail:?}");
        }
    }

    #[test]
    fn whole_lines_end_with_the_last_newline() {
        assert_eq!(split(b"a\nb\n\0\0"), (&b"a\nb\n"[..], &b"\0\0"[..]));
        assert_eq!(split(b"\0"), (&b""[..], &b"\0"[..]));
        assert_eq!(split(b"a\n"), (&b"a\n"[..], &b""[..]));
        assert!(lines("a\n\né\n{\"é".as_bytes()).eq([&b"a"[..], b"", "é".as_bytes()]));
    }

    #[test]
    fn what_was_cut_is_said_with_its_file() {
        let said = notice(Path::new("run/calls.jsonl"), 4096);
        assert!(
            said.starts_with("run/calls.jsonl: an unfinished last line of 4096 B cut off"),
            "{said}"
        );
    }
}
