//! Admission control: limits the queued sequences and prompt tokens, of all clients and of each key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use super::error::{ApiError, Code};
use super::options::Limits;

/// The assumed prefill rate before any was measured, in tokens per second.
const FIRST_RATE: u64 = 200;

/// The counters of everything that waits or runs.
#[derive(Debug)]
pub struct Admission {
    most_sequences: usize,
    most_tokens: usize,
    most_per_key: usize,
    sequences: AtomicUsize,
    /// Prompt tokens that are not yet prefilled.
    tokens: AtomicUsize,
    /// The recent prefill rate, in tokens per second.
    rate: AtomicU64,
}

/// The number of sequences of one key that wait or run.
pub type KeyLoad = Arc<AtomicUsize>;

/// A request's place in the queue, which is freed on drop.
#[derive(Debug)]
pub struct Permit {
    admission: Arc<Admission>,
    sequences: usize,
    /// Prompt tokens that are not yet prefilled.
    tokens: usize,
    key: Option<KeyLoad>,
}

impl Admission {
    /// `kv_tokens` is the size of all KV caches.
    pub fn new(limits: &Limits, kv_tokens: usize) -> Admission {
        Admission {
            most_sequences: limits.queued_sequences,
            most_tokens: limits.queued_tokens.unwrap_or(8 * kv_tokens),
            most_per_key: limits.sequences_per_key.unwrap_or(limits.queued_sequences.div_ceil(2)),
            sequences: AtomicUsize::new(0),
            tokens: AtomicUsize::new(0),
            rate: AtomicU64::new(FIRST_RATE),
        }
    }

    /// A place for `sequences` with prompts of `tokens` in total. A request that exceeds a limit by itself is admitted if nothing
    /// else waits or runs.
    ///
    /// # Errors
    /// A full queue, or a full share of the key.
    pub fn admit(
        self: &Arc<Admission>,
        sequences: usize,
        tokens: usize,
        key: Option<KeyLoad>,
    ) -> Result<Permit, ApiError> {
        let full =
            |code, what: String| Err(ApiError::new(code, what).retry_after(self.retry_after_s()));
        if let Some(key) = &key
            && !add(key, sequences, self.most_per_key)
        {
            let most = self.most_per_key;
            return full(
                Code::KeyLimit,
                format!("this key has {most} sequences waiting or running, which is its share"),
            );
        }
        let free_key = || {
            if let Some(key) = &key {
                key.fetch_sub(sequences, Relaxed);
            }
        };
        if !add(&self.sequences, sequences, self.most_sequences) {
            free_key();
            let most = self.most_sequences;
            return full(
                Code::QueueFull,
                format!("the queue is full: {most} sequences wait or run"),
            );
        }
        if !add(&self.tokens, tokens, self.most_tokens) {
            free_key();
            self.sequences.fetch_sub(sequences, Relaxed);
            let most = self.most_tokens;
            return full(
                Code::QueueFull,
                format!("the queue is full: prompts of {most} tokens wait"),
            );
        }
        Ok(Permit { admission: self.clone(), sequences, tokens, key })
    }

    fn retry_after_s(&self) -> u64 {
        self.tokens.load(Relaxed) as u64 / self.rate.load(Relaxed).max(1)
    }
}

/// Adds to a counter unless the sum would exceed `most`; an empty counter accepts any number.
fn add(counter: &AtomicUsize, count: usize, most: usize) -> bool {
    let fits = |now: usize| (now == 0 || now + count <= most).then_some(now + count);
    counter.fetch_update(Relaxed, Relaxed, fits).is_ok()
}

impl Permit {
    /// Records that a prompt of `tokens` was prefilled in this time.
    pub fn computed(&mut self, tokens: usize, prefill: Duration) {
        let tokens = tokens.min(self.tokens);
        self.tokens -= tokens;
        self.admission.tokens.fetch_sub(tokens, Relaxed);
        if prefill > Duration::from_millis(1) {
            let rate = (tokens as f64 / prefill.as_secs_f64()) as u64;
            // A moving average. Concurrent updates may be lost: it is only a hint.
            let old = self.admission.rate.load(Relaxed);
            self.admission.rate.store((3 * old + rate) / 4, Relaxed);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.sequences.fetch_sub(self.sequences, Relaxed);
        self.admission.tokens.fetch_sub(self.tokens, Relaxed);
        if let Some(key) = &self.key {
            key.fetch_sub(self.sequences, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(sequences: usize, tokens: usize) -> Arc<Admission> {
        let limits = Limits {
            queued_sequences: sequences,
            queued_tokens: Some(tokens),
            ..Limits::default()
        };
        Arc::new(Admission::new(&limits, 0))
    }

    #[test]
    fn what_is_full_refuses_and_what_leaves_makes_room() {
        let queue = admission(4, 100);
        let first = queue.admit(3, 10, None).unwrap();
        let error = queue.admit(2, 10, None).unwrap_err();
        assert_eq!((error.code, error.retry_after_s), (Code::QueueFull, Some(1)));
        let mut second = queue.admit(1, 90, None).unwrap();
        drop(first);
        assert_eq!(queue.admit(1, 11, None).unwrap_err().code, Code::QueueFull);
        second.computed(90, Duration::from_secs(1));
        assert!(queue.admit(1, 11, None).is_ok());
        drop(second);
        assert_eq!((queue.sequences.load(Relaxed), queue.tokens.load(Relaxed)), (0, 0));
    }

    #[test]
    fn a_key_has_half_of_the_queue_and_an_oversize_request_runs_alone() {
        let queue = admission(4, 100);
        let key = KeyLoad::default();
        let held = queue.admit(2, 1, Some(key.clone())).unwrap();
        assert_eq!(queue.admit(1, 1, Some(key.clone())).unwrap_err().code, Code::KeyLimit);
        let other = queue.admit(1, 1, Some(KeyLoad::default())).unwrap();
        drop((held, other));
        let large = queue.admit(9, 1000, Some(key.clone())).unwrap();
        assert_eq!(queue.admit(1, 1, None).unwrap_err().code, Code::QueueFull);
        drop(large);
        assert_eq!(key.load(Relaxed), 0);
    }
}
