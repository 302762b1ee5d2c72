//! Admission control: limits the queued sequences and prompt tokens, of all clients and of each key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::budget::add;
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

/// How many bodies of one caller are read and parsed at once; blocking threads are left for others.
const READINGS: usize = 3;

/// What one caller has under way.
pub type KeyLoad = Arc<Load>;

#[derive(Debug)]
pub struct Load {
    /// Sequences that wait or run.
    sequences: AtomicUsize,
    /// What its bodies take of the budget.
    pub bytes: AtomicUsize,
    readings: Arc<Semaphore>,
}

impl Default for Load {
    fn default() -> Load {
        let readings = Arc::new(Semaphore::new(READINGS));
        Load { sequences: AtomicUsize::new(0), bytes: AtomicUsize::new(0), readings }
    }
}

impl Load {
    /// Waits for the caller's turn to have a body read and parsed.
    pub async fn reading(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        self.readings.clone().acquire_owned().await.ok()
    }
}

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

    /// A place for `sequences` with prompts of `tokens` in total. One prompt that exceeds the limit of tokens by itself is admitted if
    /// nothing else waits; nothing exceeds the limits of sequences.
    pub fn admit(
        self: &Arc<Admission>,
        sequences: usize,
        tokens: usize,
        key: Option<KeyLoad>,
    ) -> Result<Permit, ApiError> {
        let full =
            |code, what: String| Err(ApiError::new(code, what).retry_after(self.retry_after_s()));
        if let Some(key) = &key
            && !add(&key.sequences, sequences, self.most_per_key)
        {
            let most = self.most_per_key;
            return full(
                Code::KeyLimit,
                format!("this key's share is {most} sequences waiting or running"),
            );
        }
        let free_key = || {
            if let Some(key) = &key {
                key.sequences.fetch_sub(sequences, Relaxed);
            }
        };
        if !add(&self.sequences, sequences, self.most_sequences) {
            free_key();
            let most = self.most_sequences;
            return full(Code::QueueFull, format!("the queue is full: it holds {most} sequences"));
        }
        let alone = |now: usize| (sequences == 1 && now == 0).then_some(tokens);
        let is_admitted = add(&self.tokens, tokens, self.most_tokens)
            || self.tokens.fetch_update(Relaxed, Relaxed, alone).is_ok();
        if !is_admitted {
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
            key.sequences.fetch_sub(self.sequences, Relaxed);
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
    fn a_key_has_half_of_the_queue_also_where_nothing_else_waits() {
        let queue = admission(4, 100);
        let key = KeyLoad::default();
        let held = queue.admit(2, 1, Some(key.clone())).unwrap();
        assert_eq!(queue.admit(1, 1, Some(key.clone())).unwrap_err().code, Code::KeyLimit);
        let other = queue.admit(1, 1, Some(KeyLoad::default())).unwrap();
        drop((held, other));
        // Neither is a request that alone is more than the share, nor one with more sequences than the queue.
        assert_eq!(queue.admit(3, 1, Some(key.clone())).unwrap_err().code, Code::KeyLimit);
        assert_eq!(queue.admit(5, 1, None).unwrap_err().code, Code::QueueFull);
        assert_eq!(queue.admit(2, 1000, None).unwrap_err().code, Code::QueueFull);
        // One long prompt has its turn.
        let long = queue.admit(1, 1000, Some(key.clone())).unwrap();
        assert_eq!(queue.admit(1, 1, None).unwrap_err().code, Code::QueueFull);
        drop(long);
        assert_eq!(key.sequences.load(Relaxed), 0);
    }
}
