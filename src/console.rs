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

/// Writes a line to stderr; that it cannot be written is no reason to stop.
pub fn note(line: impl AsRef<str>) {
    let _ = writeln!(io::stderr().lock(), "{}", line.as_ref());
}
