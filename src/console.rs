//! Output: data to stdout, everything else to stderr. A reader of stdout who is gone is no error: what would be written goes nowhere, and
//! the command comes to its own end and exit code.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the reader of stdout is gone.
static IS_UNREAD: AtomicBool = AtomicBool::new(false);

/// Writes a line of data. Its own line breaks and tabs stay; other control characters are written out, as JSON does it.
///
/// # Errors
/// Stdout takes no more, as on a full disk.
pub fn say(line: impl AsRef<str>) -> io::Result<()> {
    put(&format!("{}\n", obeyed_by_none(line.as_ref())))
}

/// Writes data as it comes, without a newline: files in another format, and what a model writes. A terminal gets control characters
/// written out, as [`say`] does it; files and pipes get every byte.
///
/// # Errors
/// Stdout takes no more.
pub fn write(text: &str) -> io::Result<()> {
    put(&as_read(text, io::stdout().is_terminal()))
}

/// Writes what was drawn for this stdout: its texts are plain, and what styles them is for the terminal to obey.
///
/// # Errors
/// Stdout takes no more.
pub fn draw(text: &str) -> io::Result<()> {
    put(text)
}

/// A text as it is for its reader: a terminal obeys what is in it, files and pipes keep it.
fn as_read(text: &str, is_terminal: bool) -> Cow<'_, str> {
    match is_terminal {
        true => obeyed_by_none(text),
        false => Cow::Borrowed(text),
    }
}

fn put(text: &str) -> io::Result<()> {
    if IS_UNREAD.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            IS_UNREAD.store(true, Ordering::Relaxed);
            Ok(())
        }
        Err(error) => Err(io::Error::new(error.kind(), format!("cannot write to stdout: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// A text from outside as one line that a terminal shows and does not obey: what moves its cursor, colours or rings is written out.
pub fn plain(text: &str) -> String {
    let shown = |c: char| match c.is_control() || is_hidden(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// A text in which only line breaks and tabs move a terminal's cursor. The other control characters become `\u001b` and the like, which
/// a line of JSON may have in their place: it stays the same JSON.
pub fn obeyed_by_none(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_obeyed(c) {
            true => shown += &format!("\\u{:04x}", u32::from(c)),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// What turns the direction of a text around, or is not seen.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Writes a line to stderr, its control characters as [`say`] does; that it cannot be written is no reason to stop.
pub fn note(line: impl AsRef<str>) {
    let _ = writeln!(io::stderr().lock(), "{}", obeyed_by_none(line.as_ref()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_shows_a_strangers_text_and_does_not_obey_it() {
        assert_eq!(plain("ward 1.4, Grüße, 你好"), "ward 1.4, Grüße, 你好");
        assert_eq!(plain("\u{1b}[2Jx\r\n\u{9b}1m\u{202e}"), "\\u{1b}[2Jx\\r\\n\\u{9b}1m\\u{202e}");
    }

    #[test]
    fn what_is_written_as_it_comes_moves_no_terminals_cursor_and_reaches_a_file_whole() {
        let text = "| a\tb |\n\u{1b}[2J\r\u{9b}1m\u{7}";
        assert_eq!(as_read(text, false), text);
        assert_eq!(as_read(text, true), "| a\tb |\n\\u001b[2J\\u000d\\u009b1m\\u0007");
    }

    #[test]
    fn lines_that_are_said_keep_their_breaks_and_stay_the_same_json() {
        assert_eq!(obeyed_by_none("a\tb\n  Grüße, 你好"), "a\tb\n  Grüße, 你好");
        assert_eq!(
            obeyed_by_none("x\u{1b}[2J\r\u{7}\u{9b}1m"),
            "x\\u001b[2J\\u000d\\u0007\\u009b1m"
        );
        let value = serde_json::json!({"text": "\u{1b}[2J\r\n\u{7f}\u{9b}1m\u{200d}"});
        let text = value.to_string();
        let line = obeyed_by_none(&text);
        assert!(!line.contains(char::is_control), "{line}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
    }
}
