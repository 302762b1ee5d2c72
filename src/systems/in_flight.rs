//! Works on many items at once, each on its own thread, so that a protocol is straight-line code and the engines' batches are full.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;

/// Works on `jobs`, in order, `threads` of them at a time; starts no more when one fails or `stop` is set. Those in flight are finished
/// first.
pub fn run_all<J: Send, E: Send>(
    jobs: Vec<J>,
    threads: usize,
    stop: &AtomicBool,
    work: impl Fn(J) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let threads = threads.clamp(1, jobs.len().max(1));
    let queue = Mutex::new(jobs.into_iter());
    let failed = AtomicBool::new(false);
    let go_on = || !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed);
    let worker = || {
        while go_on() {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(job) = next else { break };
            work(job).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let ended = workers.into_iter().map(ScopedJoinHandle::join);
        let ended = ended.map(|one| one.unwrap_or_else(|panic| resume_unwind(panic)));
        ended.fold(Ok(()), Result::and)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn every_job_runs_once() {
        let sum = AtomicU32::new(0);
        let result: Result<(), ()> =
            run_all((1..=100).collect(), 7, &AtomicBool::new(false), |job| {
                sum.fetch_add(job, Ordering::Relaxed);
                Ok(())
            });
        assert_eq!((result, sum.into_inner()), (Ok(()), 5050));
    }

    #[test]
    fn a_failure_or_a_stop_ends_the_taking_of_jobs() {
        let count = AtomicU32::new(0);
        let result = run_all((0..100).collect(), 1, &AtomicBool::new(false), |job| {
            count.fetch_add(1, Ordering::Relaxed);
            if job == 3 { Err(job) } else { Ok(()) }
        });
        assert_eq!((result, count.into_inner()), (Err(3), 4));
        let stopped: Result<(), ()> = run_all(vec![1], 1, &AtomicBool::new(true), |_| Err(()));
        assert_eq!(stopped, Ok(()));
    }
}
