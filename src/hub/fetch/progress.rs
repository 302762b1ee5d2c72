//! The progress of a file's download on stderr, in lines; nothing with --quiet.

use std::cell::Cell;

use indicatif::HumanBytes;

use super::super::HubOptions;
use crate::console;

/// One file's progress.
pub struct Progress {
    file: String,
    size_bytes: u64,
    tenths: Cell<u64>,
    is_quiet: bool,
}

impl Progress {
    pub fn start(options: &HubOptions, file: &str, size_bytes: u64) -> Self {
        let (file, is_quiet) = (console::plain(file), options.quiet);
        let progress = Self { file, size_bytes, tenths: Cell::new(0), is_quiet };
        progress.tell("fetching");
        progress
    }

    /// How many bytes of the file are here, earlier downloads included.
    pub fn position(&self, bytes: u64) {
        let tenths = 10 * bytes / self.size_bytes.max(1);
        if tenths > self.tenths.replace(tenths) && tenths < 10 {
            self.tell(&format!("{tenths}0 % of"));
        }
    }

    pub fn finish(self) {
        self.tell("fetched");
    }

    fn tell(&self, what: &str) {
        if !self.is_quiet {
            console::note(format!("{what} {} ({})", self.file, HumanBytes(self.size_bytes)));
        }
    }
}
