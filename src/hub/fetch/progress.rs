//! The progress of a file's download on stderr: a bar on a terminal, plain lines elsewhere, nothing with --quiet.

use std::io::{IsTerminal, stderr};

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

use super::super::HubOptions;
use crate::console;

const TEMPLATE: &str = "{msg:40!} {wide_bar} {binary_bytes:>10}/{binary_total_bytes:10} {binary_bytes_per_sec:>12} {eta:>5}";

/// One file's progress.
pub struct Progress {
    bar: ProgressBar,
    /// What lines say in place of a bar.
    line: Option<String>,
}

impl Progress {
    pub fn start(options: &HubOptions, file: &str, size_bytes: u64) -> Self {
        let is_bar = options.environment.progress_bars && stderr().is_terminal();
        let bar = match is_bar && !options.quiet {
            true => ProgressBar::new(size_bytes),
            false => ProgressBar::hidden(),
        };
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        bar.set_message(console::plain(file));
        let line = format!("{file} ({})", HumanBytes(size_bytes));
        let line = Some(line).filter(|_| !is_bar && !options.quiet);
        if let Some(line) = &line {
            console::note(format!("fetching {line}"));
        }
        Self { bar, line }
    }

    /// How many bytes of the file are here, earlier downloads included.
    pub fn position(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }

    pub fn finish(self) {
        self.bar.finish();
        if let Some(line) = self.line {
            console::note(format!("fetched {line}"));
        }
    }
}
