//! The queue of all that clients ask for. What waits and runs has one limit in sequences and one in tokens; who is next of it is the
//! engines' [`Rotation`](crate::engine::Rotation), for completions, systems and encoders alike.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::error::{ApiError, Code};
use super::guard::Caller;
use super::options::Limits;

#[derive(Debug)]
pub struct Queue {
    most_sequences: usize,
    most_tokens: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    sequences: usize,
    tokens: usize,
    /// Sequences by the keys that have some.
    own: HashMap<u64, usize>,
    /// How long a place is held, of late.
    usual: Duration,
}

/// A request's place in the queue, from its admission to its end.
#[derive(Debug)]
pub struct Place {
    queue: Arc<Queue>,
    sequences: usize,
    tokens: usize,
    key: Option<u64>,
    since: Instant,
}

impl Queue {
    /// `kv_tokens` is the size of all KV caches.
    pub fn new(limits: &Limits, kv_tokens: usize) -> Queue {
        Queue {
            most_sequences: limits.queued_sequences,
            most_tokens: limits.queued_tokens.unwrap_or(8 * kv_tokens),
            held: Mutex::default(),
        }
    }

    /// A place for `sequences` with prompts of `tokens` in total. One prompt that exceeds the limit of tokens by itself is let in if nothing
    /// else is there; nothing exceeds the limit of sequences, of which a key has half.
    ///
    /// # Errors
    /// A queue that is full, and when to come back.
    pub fn enter(
        self: &Arc<Queue>,
        sequences: usize,
        tokens: usize,
        caller: Option<&Caller>,
    ) -> Result<Place, ApiError> {
        let mut held = self.held();
        let key = caller.map(Caller::number);
        let own = key.and_then(|key| held.own.get(&key).copied()).unwrap_or_default();
        let (most, most_own) = (self.most_sequences, self.most_sequences.div_ceil(2));
        let has_turn = sequences == 1 && held.tokens == 0;
        let problem = if held.sequences + sequences > most {
            format!("it holds {most} sequences")
        } else if key.is_some() && own + sequences > most_own {
            format!("a key has {most_own} sequences of it")
        } else if held.tokens + tokens > self.most_tokens && !has_turn {
            format!("it holds prompts of {} tokens", self.most_tokens)
        } else {
            held.sequences += sequences;
            held.tokens += tokens;
            if let Some(key) = key {
                held.own.insert(key, own + sequences);
            }
            let (queue, since) = (self.clone(), Instant::now());
            return Ok(Place { queue, sequences, tokens, key, since });
        };
        let error = ApiError::new(Code::QueueFull, format!("the queue is full: {problem}"));
        Err(error.retry_after(held.usual.as_secs()))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.queue.held();
        held.sequences -= self.sequences;
        held.tokens -= self.tokens;
        held.usual = (3 * held.usual + self.since.elapsed()) / 4;
        if let Some(key) = self.key
            && let Some(own) = held.own.get_mut(&key)
        {
            *own -= self.sequences;
            held.own.retain(|_, own| *own > 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::keys::{Key, Role};
    use crate::serve::options::tests::unsaid;

    fn queue(sequences: usize, tokens: usize) -> Arc<Queue> {
        let limits =
            Limits { queued_sequences: sequences, queued_tokens: Some(tokens), ..unsaid().limits };
        Arc::new(Queue::new(&limits, 0))
    }

    #[test]
    fn what_is_full_refuses_and_what_leaves_makes_room() {
        let queue = queue(4, 100);
        let first = queue.enter(3, 10, None).unwrap();
        let error = queue.enter(2, 10, None).unwrap_err();
        assert_eq!((error.code, error.retry_after_s), (Code::QueueFull, Some(1)));
        let second = queue.enter(1, 90, None).unwrap();
        drop(first);
        assert_eq!(queue.enter(1, 11, None).unwrap_err().code, Code::QueueFull);
        drop(second);
        assert!(queue.enter(1, 11, None).is_ok());
        let held = queue.held();
        assert_eq!((held.sequences, held.tokens), (0, 0));
    }

    #[test]
    fn a_key_has_half_of_the_queue_also_where_nothing_else_waits() {
        let queue = queue(4, 100);
        let caller = |secret| Caller::new(Key::new("ward", Role::Api, secret));
        let (ward, lab) = (caller("wr_a"), caller("wr_b"));
        let refused = |sequences, tokens, caller| {
            let error = queue.enter(sequences, tokens, caller).unwrap_err();
            assert_eq!(error.code, Code::QueueFull);
            error.message
        };
        let held = queue.enter(2, 1, Some(&ward)).unwrap();
        assert!(refused(1, 1, Some(&ward)).ends_with("a key has 2 sequences of it"));
        let other = queue.enter(1, 1, Some(&lab)).unwrap();
        drop((held, other));
        // Neither is a request that alone is more than the share, nor one with more sequences than the queue.
        assert!(refused(3, 1, Some(&ward)).ends_with("a key has 2 sequences of it"));
        assert!(refused(5, 1, None).ends_with("it holds 4 sequences"));
        assert!(refused(2, 1000, None).ends_with("it holds prompts of 100 tokens"));
        // One long prompt has its turn.
        let long = queue.enter(1, 1000, Some(&ward)).unwrap();
        refused(1, 1, None);
        drop(long);
        assert!(queue.held().own.is_empty());
    }
}
