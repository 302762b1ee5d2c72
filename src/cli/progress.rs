//! The progress of a run: a bar on a terminal, otherwise a line every few seconds.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::audit::RunTrail;
use crate::console;
use crate::diagnosis::Failure;
use crate::experiment::contents::Contents;
use crate::experiment::driver::{Began, Observer};
use crate::record::CallLine;

/// The pause between plain lines.
const PAUSE: Duration = Duration::from_secs(10);
/// How often the bar is drawn although nothing has changed but the time.
const TICK: Duration = Duration::from_secs(1);

pub struct Progress {
    /// Counts where nothing is drawn too.
    bar: ProgressBar,
    quiet: bool,
    counted: Mutex<Counted>,
}

struct Counted {
    calls: u64,
    tokens: u64,
    last_line: Instant,
}

impl Progress {
    pub fn start(total: u64, done: u64, quiet: bool) -> Progress {
        let is_drawn = std::io::stderr().is_terminal() && !quiet;
        let target =
            if is_drawn { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let template = "{bar:24} {pos}/{len} items · {msg} · {elapsed} · ETA {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_position(done);
        bar.reset_eta();
        // A first call may take minutes.
        if is_drawn {
            bar.enable_steady_tick(TICK);
        }
        let counted = Counted { calls: 0, tokens: 0, last_line: Instant::now() };
        Progress { bar, quiet, counted: Mutex::new(counted) }
    }

    pub fn call(&self, call: &CallLine) {
        self.show(1, call.usage.completion_tokens as u64, false);
    }

    pub fn item(&self) {
        self.bar.inc(1);
        self.show(0, 0, false);
    }

    pub fn finish(&self) {
        self.show(0, 0, true);
        self.bar.finish_and_clear();
    }

    fn show(&self, calls: u64, tokens: u64, is_last: bool) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.calls += calls;
        counted.tokens += tokens;
        let seconds = self.bar.elapsed().as_secs_f64();
        let rate = counted.tokens as f64 / seconds.max(1e-3);
        let message = format!("{} calls · {rate:.0} tokens/s", counted.calls);
        if !self.bar.is_hidden() {
            self.bar.set_message(message);
        } else if !self.quiet && (is_last || counted.last_line.elapsed() >= PAUSE) {
            counted.last_line = Instant::now();
            let (items, total) = (self.bar.position(), self.bar.length().unwrap_or_default());
            console::note(format!("{items}/{total} items · {message} · {seconds:.0} s"));
        }
    }
}

/// Shows the progress of consecutive runs on stderr, and tells the audit trail of each before its first call and when it has ended.
pub struct Terminal {
    quiet: bool,
    current: RwLock<Option<Progress>>,
    trail: Option<RunTrail>,
}

impl Terminal {
    pub fn new(quiet: bool, trail: Option<RunTrail>) -> Terminal {
        Terminal { quiet, current: RwLock::new(None), trail }
    }

    fn on_current(&self, tell: impl Fn(&Progress)) {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(progress) = &*current {
            tell(progress);
        }
    }
}

impl Observer for Terminal {
    fn began(&self, run: &Began<'_>) -> Result<(), Failure> {
        self.trail.as_ref().map_or(Ok(()), |trail| trail.began(run))?;
        let progress = Progress::start(run.total, run.done, self.quiet);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(progress);
        Ok(())
    }

    fn call(&self, call: &CallLine) {
        self.on_current(|progress| progress.call(call));
    }

    fn item(&self) {
        self.on_current(Progress::item);
    }

    fn ended(&self, run: &Began<'_>, contents: Option<&Contents>) -> Result<(), Failure> {
        self.on_current(Progress::finish);
        self.trail.as_ref().map_or(Ok(()), |trail| trail.ended(run, contents))
    }

    fn say(&self, line: &str) {
        if !self.quiet {
            console::note(line);
        }
    }
}
