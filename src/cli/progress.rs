//! The progress of runs, by their calls: a bar on a terminal, otherwise a line a minute.

use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::console;
use crate::experiment::driver::Observer;
use crate::record::{CallLine, count};

/// The pause between plain lines.
pub const PAUSE: Duration = Duration::from_secs(60);
/// How often the bar is drawn although nothing has changed but the time.
const TICK: Duration = Duration::from_secs(1);

/// Shows the progress of consecutive runs on stderr.
pub struct Terminal {
    quiet: bool,
    /// Counts where nothing is drawn too.
    bar: ProgressBar,
    counted: Mutex<Counted>,
}

/// What is done and what is left. An item counts as the calls that it takes at most, also where it takes fewer.
#[derive(Default)]
struct Counted {
    /// Of this run: all, and those of them that are finished and that were so before this session.
    items: u64,
    done: u64,
    done_before: u64,
    calls_an_item: u64,
    /// Of this run in this session.
    calls: u64,
    tokens: u64,
    /// When the first of several runs began, the calls of those before this one, and of those after it.
    since: Option<Instant>,
    before: u64,
    after: u64,
    last_line: Option<Instant>,
}

impl Terminal {
    pub fn new(quiet: bool) -> Terminal {
        let is_drawn = std::io::stderr().is_terminal() && !quiet;
        let target =
            if is_drawn { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{bar:16} {elapsed} · {wide_msg}") {
            bar.set_style(style);
        }
        Terminal { quiet, bar, counted: Mutex::default() }
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, items: u64, calls: u64, tokens: u64) {
        let mut counted = self.counted();
        counted.done += items;
        counted.calls += calls;
        counted.tokens += tokens;
        let elapsed = self.bar.elapsed().as_secs_f64();
        let line = counted.line(counted.tokens as f64 / elapsed.max(1e-3));
        if !self.bar.is_hidden() {
            self.bar.set_position(counted.done_before * counted.calls_an_item + counted.made());
            self.bar.set_message(line);
        } else if !self.quiet && counted.last_line.is_none_or(|last| last.elapsed() >= PAUSE) {
            counted.last_line = Some(Instant::now());
            console::note(format!("{} · {line}", duration(elapsed as u64)));
        }
    }
}

impl Counted {
    /// The calls of this run in this session.
    fn made(&self) -> u64 {
        let done = (self.done - self.done_before) * self.calls_an_item;
        self.calls.max(done).min(self.open())
    }

    /// The calls of this run that no earlier session made.
    fn open(&self) -> u64 {
        self.items.saturating_sub(self.done_before) * self.calls_an_item
    }

    fn line(&self, tokens_a_second: f64) -> String {
        let left = self.since.and_then(|since| self.seconds_left(since.elapsed()));
        let left = left.map_or(String::new(), |left| format!("about {} left · ", duration(left)));
        let (done, items, calls) = (self.done, self.items, count(self.calls, "call"));
        format!("{left}{done}/{items} items · {calls} · {tokens_a_second:.0} tokens/s")
    }

    /// Over this run and those after it, at the pace so far; `None` before there is a pace, and once nothing is left.
    fn seconds_left(&self, elapsed: Duration) -> Option<u64> {
        let made = self.made();
        let left = self.open() - made + self.after;
        let pace = elapsed.as_secs_f64() / (self.before + made) as f64;
        let seconds = (pace * left as f64).ceil();
        (pace.is_finite() && seconds > 0.0).then_some(seconds as u64)
    }
}

/// `45 s`, `3 min`, `2 h 5 min`.
pub fn duration(seconds: u64) -> String {
    match seconds {
        0..100 => format!("{seconds} s"),
        100..6000 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

impl Observer for Terminal {
    fn began(&self, items: u64, done: u64, calls_an_item: u64) {
        let mut counted = self.counted();
        counted.since.get_or_insert_with(Instant::now);
        counted.last_line = Some(Instant::now());
        (counted.items, counted.done, counted.done_before) = (items, done, done);
        (counted.calls_an_item, counted.calls, counted.tokens) = (calls_an_item, 0, 0);
        self.bar.reset();
        self.bar.set_length(items * calls_an_item);
        // A first call may take minutes.
        if !self.bar.is_hidden() {
            self.bar.enable_steady_tick(TICK);
        }
    }

    fn after(&self, calls: u64) {
        self.counted().after = calls;
    }

    fn call(&self, call: &CallLine) {
        self.show(0, 1, call.usage.completion_tokens as u64);
    }

    fn item(&self) {
        self.show(1, 0, 0);
    }

    fn ended(&self) {
        let mut counted = self.counted();
        counted.before += counted.made();
        self.bar.finish_and_clear();
    }

    fn say(&self, line: &str) {
        if !self.quiet {
            console::note(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_of_this_run_and_those_after_it_at_the_pace_of_all_so_far() {
        let left = |done, calls, before, after| {
            let (items, done_before, calls_an_item) = (12, 2, 4);
            let rest = Counted::default();
            Counted { items, done, done_before, calls_an_item, calls, before, after, ..rest }
        };
        let seconds = |counted: Counted| counted.seconds_left(Duration::from_secs(30));
        // 30 of 40 + 20 + 60 calls are made; then as many items as they count for, which took fewer.
        assert_eq!(seconds(left(3, 10, 20, 60)), Some(90));
        assert_eq!(seconds(left(7, 10, 20, 60)), Some(60));
        assert_eq!(seconds(left(2, 0, 0, 0)), None);
        assert_eq!(seconds(left(12, 40, 0, 0)), None);
        assert_eq!(left(2, 1, 0, 0).line(3.2), "2/12 items · 1 call · 3 tokens/s");
    }

    #[test]
    fn durations_are_as_people_say_them() {
        assert_eq!(
            [0, 99, 100, 3599, 7500].map(duration),
            ["0 s", "99 s", "2 min", "60 min", "2 h 5 min"]
        );
    }
}
