//! What following a grammar may cost: all of its completions together, in time of the engine's thread, so that other load counts for nothing.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What a grammar has for its first tokens: states that are new cost more than others, and a large schema has some hundred.
const FREE: Duration = Duration::from_millis(500);
/// What it has for each step beyond, of which a token takes up to three. Schemas of published systems take some 0.1 ms.
const EACH: Duration = Duration::from_millis(2);

/// The time that a grammar's masks have taken so far.
#[derive(Debug, Default)]
pub struct Effort {
    spent_ns: AtomicU64,
    steps: AtomicU64,
}

impl Effort {
    /// Does a step's work, and counts it.
    pub fn count<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = time_of_this_thread();
        let done = work();
        let spent = time_of_this_thread().saturating_sub(before);
        self.spent_ns.fetch_add(u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        self.steps.fetch_add(1, Relaxed);
        done
    }

    /// Whether the one step that was counted so far took longer than a first one may.
    pub fn is_long_for_one(&self) -> bool {
        Duration::from_nanos(self.spent_ns.load(Relaxed)) > FREE / 2
    }

    /// Whether it took more than any grammar may, and its completions end.
    pub fn is_beyond(&self) -> bool {
        let steps = u32::try_from(self.steps.load(Relaxed)).unwrap_or(u32::MAX);
        Duration::from_nanos(self.spent_ns.load(Relaxed)) > FREE + EACH.saturating_mul(steps)
    }
}

/// What this thread has computed so far.
fn time_of_this_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanoseconds.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grammar_has_half_a_second_and_some_milliseconds_a_step() {
        let effort = Effort::default();
        let before = time_of_this_thread();
        effort.count(|| while time_of_this_thread() < before + Duration::from_millis(20) {});
        assert!(!effort.is_beyond() && effort.spent_ns.load(Relaxed) >= 19_000_000);
        effort.spent_ns.store(503_000_000, Relaxed);
        assert!(effort.is_beyond(), "one step");
        effort.count(|| {});
        assert!(!effort.is_beyond(), "two");
        // Waiting is no effort.
        effort.count(|| std::thread::sleep(Duration::from_millis(50)));
        assert!(effort.spent_ns.load(Relaxed) < 540_000_000);
    }
}
