//! The queue of all that clients ask for. What waits and runs has a limit in sequences; who is next of it is the engines'
//! [`Rotation`], for completions, systems and encoders alike: a pool's threads work for callers in rotation.

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::error::{ApiError, Code};
use super::guard::Caller;
use crate::engine::Rotation;

#[derive(Debug)]
pub struct Queue {
    most: usize,
    all: Arc<Semaphore>,
    /// Of each key that ever asked.
    own: Mutex<HashMap<u64, Arc<Semaphore>>>,
}

/// A request's place in the queue, from its admission to its end.
pub type Place = [Option<OwnedSemaphorePermit>; 2];

impl Queue {
    /// A queue of so many sequences.
    pub fn new(most: usize) -> Queue {
        Queue { most, all: Arc::new(Semaphore::new(most)), own: Mutex::default() }
    }

    /// A place for so many sequences. A key has half of the queue.
    ///
    /// # Errors
    /// A queue that is full, and when to come back.
    pub fn enter(&self, sequences: usize, caller: Option<&Caller>) -> Result<Place, ApiError> {
        let most_own = self.most.div_ceil(2);
        let own = caller.map(|caller| {
            let mut all = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || Arc::new(Semaphore::new(most_own));
            all.entry(caller.number()).or_insert_with(new).clone()
        });
        let take = |of: Arc<Semaphore>, holds: String| {
            let wanted = u32::try_from(sequences).unwrap_or(u32::MAX);
            of.try_acquire_many_owned(wanted).map_err(|_| {
                let message = format!("the queue is full: {holds}");
                ApiError::new(Code::QUEUE_FULL, message).retry_after(2)
            })
        };
        let all = take(self.all.clone(), format!("it holds {} sequences", self.most))?;
        let own = own.map(|own| take(own, format!("a key has {most_own} sequences of it")));
        Ok([Some(all), own.transpose()?])
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
    use crate::serve::keys::Key;

    #[test]
    fn what_is_full_refuses_and_what_leaves_makes_room() {
        let queue = Queue::new(4);
        let first = queue.enter(3, None).unwrap();
        let error = queue.enter(2, None).unwrap_err();
        assert_eq!((error.code, error.retry_after_s), (Code::QUEUE_FULL, Some(2)));
        let second = queue.enter(1, None).unwrap();
        drop(first);
        assert!(queue.enter(3, None).is_ok());
        drop(second);
        assert_eq!(queue.all.available_permits(), 4);
    }

    #[test]
    fn a_key_has_half_of_the_queue_also_where_nothing_else_waits() {
        let queue = Queue::new(4);
        let caller = |secret| Key::new("ward", secret);
        let (ward, lab) = (caller("wr_a"), caller("wr_b"));
        let refused = |sequences, caller| {
            let error = queue.enter(sequences, caller).unwrap_err();
            assert_eq!(error.code, Code::QUEUE_FULL);
            error.message
        };
        let held = queue.enter(2, Some(&ward)).unwrap();
        assert!(refused(1, Some(&ward)).ends_with("a key has 2 sequences of it"));
        let other = queue.enter(1, Some(&lab)).unwrap();
        drop((held, other));
        // Neither is a request that alone is more than the share, nor one with more sequences than the queue.
        assert!(refused(3, Some(&ward)).ends_with("a key has 2 sequences of it"));
        assert!(refused(5, None).ends_with("it holds 4 sequences"));
        assert_eq!(queue.all.available_permits(), 4);
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
