//! The queue of all that clients ask for. What waits and runs has one limit in sequences and one in tokens; who is next of it is the
//! engines' [`Rotation`], for completions, systems and encoders alike: a pool's threads work for callers in rotation.

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::error::{ApiError, Code};
use super::guard::Caller;
use super::options::Limits;
use crate::engine::Rotation;

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
}

/// A request's place in the queue, from its admission to its end.
#[derive(Debug)]
pub struct Place {
    queue: Arc<Queue>,
    sequences: usize,
    tokens: usize,
    key: Option<u64>,
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
            return Ok(Place { queue: self.clone(), sequences, tokens, key });
        };
        let error = ApiError::new(Code::QUEUE_FULL, format!("the queue is full: {problem}"));
        Err(error.retry_after(2))
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
        if let Some(key) = self.key
            && let Some(own) = held.own.get_mut(&key)
        {
            *own -= self.sequences;
            held.own.retain(|_, own| *own > 0);
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// The threads, and what waits for them.
#[derive(Default)]
pub struct Pool {
    waiting: Mutex<Rotation<Job>>,
    has_more: Condvar,
}

impl Pool {
    /// Each thread does `first` first.
    pub fn start(name: &str, threads: usize, first: fn()) -> io::Result<Arc<Pool>> {
        let pool = Arc::<Pool>::default();
        for _ in 0..threads {
            let own = pool.clone();
            let work = move || {
                first();
                own.work();
            };
            std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        }
        Ok(pool)
    }

    /// Has a thread do this when it is the caller's turn.
    pub fn add(&self, caller: u64, job: impl FnOnce() + Send + 'static) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(caller, Box::new(job));
        self.has_more.notify_one();
    }

    /// The same, and waits for what comes of it. If the future is dropped before its turn, nothing is done.
    pub async fn run<T: Send + 'static>(
        &self,
        caller: u64,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (sender, made) = oneshot::channel();
        self.add(caller, move || {
            // Else whoever asked is gone.
            if !sender.is_closed() {
                let _ = sender.send(work());
            }
        });
        made.await.unwrap_or_else(|_| Err(ApiError::failed()))
    }

    /// Until the process ends. After a panic the thread goes on.
    fn work(&self) {
        loop {
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let waiting = self.has_more.wait_while(waiting, |waiting| waiting.is_empty());
            let job = waiting.unwrap_or_else(PoisonError::into_inner).take(|_| true);
            // Whoever waits for it sees that nothing came.
            let _ = catch_unwind(AssertUnwindSafe(|| job.into_iter().for_each(|job| job())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

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
        assert_eq!((error.code, error.retry_after_s), (Code::QUEUE_FULL, Some(2)));
        let second = queue.enter(1, 90, None).unwrap();
        drop(first);
        assert_eq!(queue.enter(1, 11, None).unwrap_err().code, Code::QUEUE_FULL);
        drop(second);
        assert!(queue.enter(1, 11, None).is_ok());
        let held = queue.held();
        assert_eq!((held.sequences, held.tokens), (0, 0));
    }

    #[test]
    fn a_key_has_half_of_the_queue_also_where_nothing_else_waits() {
        let queue = queue(4, 100);
        let caller = |secret| Key::new("ward", Role::Api, secret);
        let (ward, lab) = (caller("wr_a"), caller("wr_b"));
        let refused = |sequences, tokens, caller| {
            let error = queue.enter(sequences, tokens, caller).unwrap_err();
            assert_eq!(error.code, Code::QUEUE_FULL);
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

    #[test]
    fn callers_take_turns_and_a_panic_ends_no_thread() {
        let pool = Pool::start("pool", 1, || {}).unwrap();
        let (begin, begun) = channel::<()>();
        let (tell, told) = channel();
        // Until all are there, the thread is busy.
        pool.add(0, move || begun.recv().unwrap());
        pool.add(0, || panic!("on purpose"));
        for (caller, name) in [(1, "a"), (1, "b"), (2, "c"), (2, "d")] {
            let tell = tell.clone();
            pool.add(caller, move || tell.send(name).unwrap());
        }
        begin.send(()).unwrap();
        drop((begin, tell));
        assert_eq!(told.iter().collect::<Vec<_>>(), ["a", "c", "b", "d"]);
    }
}
