//! The progress of runs, by their calls: a bar on a terminal, otherwise a line a minute.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::speed;
use crate::console;
use crate::experiment::driver::Observer;
use crate::panel::backbone::Backbone;
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

/// What is done and what is left of several runs. An item counts as the calls that it takes at most, also where it takes fewer.
#[derive(Default)]
struct Counted {
    items: u64,
    done: u64,
    /// The calls that all items count for, those of earlier sessions' items, and those of this session's.
    most_calls: u64,
    earlier_calls: u64,
    done_calls: u64,
    /// Of this session: items, calls and their tokens.
    answered: u64,
    calls: u64,
    tokens: u64,
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

    fn show(&self, count: impl FnOnce(&mut Counted)) {
        let mut counted = self.counted();
        count(&mut counted);
        let elapsed = self.bar.elapsed().as_secs_f64();
        let line = counted.line(elapsed);
        if !self.bar.is_hidden() {
            self.bar.set_position(counted.earlier_calls + counted.made());
            self.bar.set_message(line);
        } else if !self.quiet && counted.last_line.is_none_or(|last| last.elapsed() >= PAUSE) {
            counted.last_line = Some(Instant::now());
            console::note(format!("{} · {line}", duration(elapsed as u64)));
        }
    }
}

impl Counted {
    /// The calls of this session.
    fn made(&self) -> u64 {
        self.calls.max(self.done_calls).min(self.open())
    }

    /// The calls that no earlier session made.
    fn open(&self) -> u64 {
        self.most_calls.saturating_sub(self.earlier_calls)
    }

    fn line(&self, elapsed: f64) -> String {
        let left = self.seconds_left(elapsed);
        let left = left.map_or(String::new(), |left| format!("about {} left · ", duration(left)));
        let (done, items, calls) = (self.done, self.items, count(self.calls, "call"));
        let tokens_a_second = self.tokens as f64 / elapsed.max(1e-3);
        format!("{left}{done}/{items} items · {calls} · {tokens_a_second:.0} tokens/s")
    }

    /// At the pace so far; `None` before there is a pace, and once nothing is left.
    fn seconds_left(&self, elapsed: f64) -> Option<u64> {
        let pace = elapsed / self.made() as f64;
        let seconds = (pace * (self.open() - self.made()) as f64).ceil();
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
    fn began(&self, items: u64, calls: u64) {
        let last_line = Some(Instant::now());
        *self.counted() = Counted { items, most_calls: calls, last_line, ..Counted::default() };
        self.bar.reset();
        self.bar.set_length(calls);
        // A first call may take minutes.
        if !self.bar.is_hidden() {
            self.bar.enable_steady_tick(TICK);
        }
    }

    fn resumed(&self, items: u64, calls: u64) {
        let mut counted = self.counted();
        counted.done += items;
        counted.earlier_calls += calls;
    }

    fn call(&self, call: &CallLine) {
        self.show(|counted| {
            counted.calls += 1;
            counted.tokens += call.usage.completion_tokens as u64;
        });
    }

    fn item(&self, calls: u64) {
        self.show(|counted| {
            counted.done += 1;
            counted.answered += 1;
            counted.done_calls += calls;
        });
    }

    fn ended(&self) {
        self.bar.finish_and_clear();
    }

    fn complete(&self, engines: &[Arc<Backbone>]) {
        if !self.quiet {
            let items = self.counted().answered;
            speed::tell(engines, items, self.bar.elapsed());
        }
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
    fn the_time_left_is_that_of_all_runs_at_the_pace_of_this_session() {
        let left = |done_calls, calls| {
            let rest = Counted { items: 12, done: 2, most_calls: 148, ..Counted::default() };
            Counted { earlier_calls: 28, done_calls, calls, ..rest }
        };
        let seconds = |counted: Counted| counted.seconds_left(30.0);
        // 30 of 120 calls are made; then as many items as they count for, which took fewer.
        assert_eq!(seconds(left(4, 30)), Some(90));
        assert_eq!(seconds(left(40, 30)), Some(60));
        assert_eq!(seconds(left(0, 0)), None);
        assert_eq!(seconds(left(120, 90)), None);
        assert_eq!(left(0, 1).line(0.0), "2/12 items · 1 call · 0 tokens/s");
    }

    #[test]
    fn durations_are_as_people_say_them() {
        assert_eq!(
            [0, 99, 100, 3599, 7500].map(duration),
            ["0 s", "99 s", "2 min", "60 min", "2 h 5 min"]
        );
    }
}
