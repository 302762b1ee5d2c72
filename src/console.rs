//! Lines to stdout (data) and stderr (everything else).

use std::io::Write;

/// Writes a line of data.
///
/// # Errors
/// When the reader is gone; `exit` knows what to make of it.
pub fn say(line: impl AsRef<str>) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(line.as_ref().as_bytes())?;
    stdout.write_all(b"\n")
}

/// Writes a line of news; nobody reading it is no reason to stop.
pub fn note(line: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr().lock(), "{}", line.as_ref());
}
