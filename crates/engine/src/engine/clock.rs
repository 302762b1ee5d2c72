//! When the parts of a request began.

use std::time::Instant;

use super::request::Timings;

/// From a request's submission on.
pub struct Clock {
    asked_at: Instant,
    admitted_at: Option<Instant>,
    first_at: Option<Instant>,
}

impl Clock {
    pub fn start() -> Clock {
        Clock { asked_at: Instant::now(), admitted_at: None, first_at: None }
    }

    /// Notes that the request joins the batch. Says whether this is the first time.
    pub fn admit(&mut self) -> bool {
        let is_first = self.admitted_at.is_none();
        self.admitted_at.get_or_insert_with(Instant::now);
        is_first
    }

    /// Notes when a token was sampled; the first counts.
    pub fn sampled(&mut self, now: Instant) {
        self.first_at.get_or_insert(now);
    }

    /// Where the request ends now.
    pub fn timings(&self) -> Timings {
        let now = Instant::now();
        let admitted_at = self.admitted_at.unwrap_or(now);
        let first_at = self.first_at.unwrap_or(now);
        Timings {
            queued: admitted_at - self.asked_at,
            prefill: first_at - admitted_at,
            decode: now - first_at,
        }
    }
}
