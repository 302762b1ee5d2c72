//! Threads that work for callers in rotation.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::error::ApiError;
use crate::engine::Rotation;

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
