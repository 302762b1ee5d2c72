//! Works on many items at once, each on its own thread, so that a protocol is straight-line code and the engines' batches are full.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;

/// Works on `jobs`, in order, `threads` of them at a time; starts no more when one fails or `stop` is set. Those in flight are finished
/// first.
pub fn run_all<J: Send, E: Send>(
    jobs: Vec<J>,
    threads: usize,
    stop: &AtomicBool,
    work: impl Fn(J) -> Result<(), E> + Sync,
) -> Result<(), E> {
    run_in_turn(jobs.into_iter().enumerate().collect(), threads, stop, work)
}

/// As [`run_all`], and never on two jobs of one key at a time: the later one waits, and those behind it go first.
pub fn run_in_turn<K: Copy + Eq + Hash + Send, J: Send, E: Send>(
    jobs: VecDeque<(K, J)>,
    threads: usize,
    stop: &AtomicBool,
    work: impl Fn(J) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let threads = threads.clamp(1, jobs.len().max(1));
    let waiting = Mutex::new(Waiting { jobs, busy: HashSet::new() });
    let queue = Queue { waiting, ended: Condvar::new() };
    let failed = AtomicBool::new(false);
    let go_on = || !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed);
    let worker = || {
        while let Some((_turn, job)) = queue.next(go_on) {
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

struct Queue<K, J> {
    waiting: Mutex<Waiting<K, J>>,
    ended: Condvar,
}

struct Waiting<K, J> {
    /// Those that have not begun.
    jobs: VecDeque<(K, J)>,
    /// The keys of those in flight.
    busy: HashSet<K>,
}

impl<K: Copy + Eq + Hash, J> Queue<K, J> {
    fn lock(&self) -> MutexGuard<'_, Waiting<K, J>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first job whose key is not in flight, once there is one.
    fn next(&self, go_on: impl Fn() -> bool) -> Option<(Turn<'_, K, J>, J)> {
        let mut waiting = self.lock();
        while go_on() && !waiting.jobs.is_empty() {
            let Waiting { jobs, busy } = &mut *waiting;
            if let Some(place) = jobs.iter().position(|(key, _)| !busy.contains(key)) {
                let (key, job) = jobs.remove(place)?;
                busy.insert(key);
                return Some((Turn { queue: self, key }, job));
            }
            waiting = self.ended.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

/// A job in flight, also where it panics.
struct Turn<'a, K: Copy + Eq + Hash, J> {
    queue: &'a Queue<K, J>,
    key: K,
}

impl<K: Copy + Eq + Hash, J> Drop for Turn<'_, K, J> {
    fn drop(&mut self) {
        self.queue.lock().busy.remove(&self.key);
        self.queue.ended.notify_all();
    }
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

    #[test]
    fn jobs_of_one_key_take_turns_in_their_order_and_others_go_past_them() {
        let (done, flying) = (Mutex::new(Vec::new()), Mutex::new(HashSet::new()));
        let jobs = (0..60_u64).map(|number| (number % 4, number)).collect();
        let ended: Result<(), ()> = run_in_turn(jobs, 16, &AtomicBool::new(false), |number| {
            assert!(flying.lock().unwrap().insert(number % 4), "two of a key");
            std::thread::sleep(std::time::Duration::from_micros(number % 4 * 200));
            done.lock().unwrap().push(number);
            flying.lock().unwrap().remove(&(number % 4));
            Ok(())
        });
        assert_eq!(ended, Ok(()));
        let done = done.into_inner().unwrap();
        assert_eq!(done.len(), 60);
        for key in 0..4 {
            assert!(done.iter().filter(|number| *number % 4 == key).is_sorted());
        }
        assert!(!done.is_sorted(), "quick keys go past slow ones");
    }

    #[test]
    fn a_job_that_panics_or_fails_keeps_none_of_its_key_waiting() {
        let jobs = || VecDeque::from([("a", 1), ("a", 2), ("a", 3)]);
        let go_on = AtomicBool::new(false);
        assert_eq!(run_in_turn(jobs(), 3, &go_on, Err), Err(1));
        let caught = std::panic::catch_unwind(|| {
            run_in_turn(jobs(), 3, &AtomicBool::new(false), |number: i32| -> Result<(), ()> {
                if number == 1 { panic!("one") } else { Ok(()) }
            })
        });
        assert!(caught.is_err());
    }
}
