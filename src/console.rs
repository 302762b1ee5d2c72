//! Output: data to stdout, everything else to stderr.

use std::io::{self, Write};

/// Writes a line of data.
///
/// # Errors
/// The reader is gone, which `exit` treats as no error, or stdout takes no more, as on a full disk.
pub fn say(line: impl AsRef<str>) -> io::Result<()> {
    write(&format!("{}\n", line.as_ref()))
}

/// Writes data as it comes, without a newline.
///
/// # Errors
/// The reader is gone, or stdout takes no more, as on a full disk.
pub fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written
        .map_err(|error| io::Error::new(error.kind(), format!("cannot write to stdout: {error}")))
}

/// A text from outside as one line that a terminal shows and does not obey: what moves its cursor, colours or rings is written out.
pub fn plain(text: &str) -> String {
    let shown = |c: char| match c.is_control() || is_hidden(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// What turns the direction of a text around, or is not seen.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Writes a line to stderr; that it cannot be written is no reason to stop.
pub fn note(line: impl AsRef<str>) {
    let _ = writeln!(io::stderr().lock(), "{}", line.as_ref());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_shows_a_strangers_text_and_does_not_obey_it() {
        assert_eq!(plain("ward 1.4, Grüße, 你好"), "ward 1.4, Grüße, 你好");
        assert_eq!(plain("\u{1b}[2Jx\r\n\u{9b}1m\u{202e}"), "\\u{1b}[2Jx\\r\\n\\u{9b}1m\\u{202e}");
    }
}
