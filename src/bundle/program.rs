//! Programs of a bundle that are started, by whoever makes it and by whoever installs it.

use std::io::{self, ErrorKind};
use std::thread;
use std::time::Duration;

/// Starts a program that may just have been written. A process that was being started at that time may hold its file open for a moment
/// still.
///
/// # Errors
/// What the system says.
pub fn start<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    const ATTEMPTS: usize = 40;
    const PAUSE: Duration = Duration::from_millis(50);
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => thread::sleep(PAUSE),
            result => return result,
        }
    }
    attempt()
}
