//! Descriptors that whoever started the program left open: a socket or a folder of theirs would go past every rule.

use std::ffi::OsString;

/// Closes all but the standard three, and those that an argument or a variable names, as a shell's `<(…)` does. Before anything else is
/// opened.
pub fn close(arguments: impl Iterator<Item = OsString>) {
    let named = arguments.filter_map(|argument| {
        let text = argument.to_str()?;
        let (_, number) = text.split_once("/fd/")?;
        number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    });
    let mut kept: Vec<u32> = named.collect();
    kept.sort_unstable();
    let mut first = 3;
    for kept in kept {
        close_between(first, kept);
        first = first.max(kept.saturating_add(1));
    }
    close_between(first, u32::MAX);
}

/// From `first` on, and before `end`. A kernel older than Linux 5.9 closes none, and `require` does not start there.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the C library has no safe function for it")]
fn close_between(first: u32, end: u32) {
    if first < end {
        // SAFETY: nothing was opened yet, so nobody here owns one of them.
        unsafe { libc::syscall(libc::SYS_close_range, first, end - 1, 0) };
    }
}

#[cfg(not(target_os = "linux"))]
fn close_between(_: u32, _: u32) {}
