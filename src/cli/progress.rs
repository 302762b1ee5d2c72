//! The progress of a run: a bar on a terminal, otherwise a line every few seconds.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

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
    calls: AtomicU64,
    tokens: AtomicU64,
    /// Milliseconds after its start when the last plain line was written.
    last_line_ms: AtomicU64,
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
        Progress { bar, quiet, calls: 0.into(), tokens: 0.into(), last_line_ms: 0.into() }
    }

    pub fn call(&self, call: &CallLine) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.tokens.fetch_add(call.usage.completion_tokens as u64, Ordering::Relaxed);
        self.show(false);
    }

    pub fn item(&self) {
        self.bar.inc(1);
        self.show(false);
    }

    pub fn finish(&self) {
        self.show(true);
        self.bar.finish_and_clear();
    }

    fn show(&self, is_last: bool) {
        let seconds = self.bar.elapsed().as_secs_f64();
        let rate = self.tokens.load(Ordering::Relaxed) as f64 / seconds.max(1e-3);
        let message = format!("{} calls · {rate:.0} tokens/s", self.calls.load(Ordering::Relaxed));
        if !self.bar.is_hidden() {
            self.bar.set_message(message);
            return;
        }
        let now = (1000.0 * seconds) as u64;
        let last = self.last_line_ms.load(Ordering::Relaxed);
        let is_due = is_last || now.saturating_sub(last) >= PAUSE.as_millis() as u64;
        // Only one thread writes this line.
        let wins = || {
            let order = Ordering::Relaxed;
            self.last_line_ms.compare_exchange(last, now, order, order).is_ok()
        };
        if !self.quiet && is_due && wins() {
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
        self.trail.as_ref().map_or(Ok(()), |trail| trail.began(run))
    }

    fn ended(&self, run: &Began<'_>, contents: Option<&Contents>) -> Result<(), Failure> {
        self.trail.as_ref().map_or(Ok(()), |trail| trail.ended(run, contents))
    }

    fn begin(&self, total: u64, done: u64) {
        let progress = Progress::start(total, done, self.quiet);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(progress);
    }

    fn call(&self, call: &CallLine) {
        self.on_current(|progress| progress.call(call));
    }

    fn item(&self) {
        self.on_current(Progress::item);
    }

    fn end(&self) {
        self.on_current(Progress::finish);
    }

    fn note(&self, note: &str) {
        self.heading(&format!("note: {note}"));
    }

    fn heading(&self, heading: &str) {
        if !self.quiet {
            console::note(heading);
        }
    }
}
