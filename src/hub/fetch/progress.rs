//! The progress of a fetch on stderr: bars on a terminal, plain lines elsewhere, nothing with --quiet.

use std::io::IsTerminal;

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::super::HubOptions;
use crate::console;

const TEMPLATE: &str = "{msg:40!} {wide_bar} {binary_bytes:>10}/{binary_total_bytes:10} {binary_bytes_per_sec:>12} {eta:>5}";

/// How progress is shown.
#[derive(Clone, Copy)]
pub enum Progress {
    Bars,
    Lines,
    Nothing,
}

/// One file's progress.
pub struct FileProgress {
    bar: ProgressBar,
    line: Option<String>,
}

impl Progress {
    pub fn new(options: &HubOptions) -> Self {
        match options.quiet {
            true => Self::Nothing,
            false if options.environment.progress_bars && std::io::stderr().is_terminal() => {
                Self::Bars
            }
            false => Self::Lines,
        }
    }

    pub fn start(self, file: &str, size_bytes: u64) -> FileProgress {
        let size = HumanBytes(size_bytes);
        let bar = match self {
            Self::Bars => {
                ProgressBar::with_draw_target(Some(size_bytes), ProgressDrawTarget::stderr())
            }
            Self::Lines | Self::Nothing => ProgressBar::hidden(),
        };
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        bar.set_message(console::plain(file));
        if matches!(self, Self::Lines) {
            console::note(format!("fetching {file} ({size})"));
        }
        let line = matches!(self, Self::Lines).then(|| format!("fetched {file} ({size})"));
        FileProgress { bar, line }
    }
}

impl FileProgress {
    /// How many bytes of the file are here, earlier downloads included.
    pub fn position(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }

    pub fn finish(self) {
        self.bar.finish();
        if let Some(line) = self.line {
            console::note(line);
        }
    }
}
