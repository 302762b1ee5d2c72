//! What went wrong on a stream: launches do not fail one by one, the first error is kept and told later.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Errors of calls that are only recorded for a graph are not kept: the calls are made again, one by one.
#[derive(Debug, Default)]
pub struct Failures {
    first: OnceLock<String>,
    recording: AtomicBool,
    refused: AtomicBool,
}

impl Failures {
    pub fn keep(&self, result: Result<(), String>) {
        let Err(reason) = result else {
            return;
        };
        if self.recording.load(Ordering::Relaxed) {
            self.refused.store(true, Ordering::Relaxed);
        } else {
            let _ = self.first.set(reason);
        }
    }

    /// The first of them.
    pub fn told(&self) -> Option<&str> {
        self.first.get().map(String::as_str)
    }

    /// Makes calls that are recorded: whether none was refused.
    pub fn record(&self, calls: impl FnOnce()) -> bool {
        self.refused.store(false, Ordering::Relaxed);
        self.recording.store(true, Ordering::Relaxed);
        calls();
        self.recording.store(false, Ordering::Relaxed);
        !self.refused.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(reason: &str) -> Result<(), String> {
        Err(reason.to_owned())
    }

    #[test]
    fn the_first_failure_is_told_but_none_of_what_was_recorded() {
        let failures = Failures::default();
        assert!(failures.record(|| failures.keep(Ok(()))));
        assert!(!failures.record(|| failures.keep(failed("capture"))));
        assert_eq!(failures.told(), None);
        assert!(failures.record(|| {}), "an earlier refusal counts no more");
        failures.keep(failed("first"));
        failures.keep(failed("second"));
        assert_eq!(failures.told(), Some("first"));
    }
}
