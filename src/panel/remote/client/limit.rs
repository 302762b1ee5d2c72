//! Limits of concurrency and rate: how many requests are in flight at once, and the interval between their starts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::STOP_POLL_INTERVAL;

pub struct Limit {
    state: Mutex<State>,
    ended: Condvar,
    most: usize,
    interval: Duration,
}

struct State {
    in_flight: usize,
    /// Before this no request begins.
    next: Instant,
}

/// The right to send one request; dropping it lets the next one in.
pub struct Permit<'a>(&'a Limit);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.state().in_flight -= 1;
        self.0.ended.notify_all();
    }
}

impl Limit {
    pub fn new(max_in_flight: usize, per_minute: Option<u32>) -> Limit {
        let minute = Duration::from_secs(60);
        Limit {
            state: Mutex::new(State { in_flight: 0, next: Instant::now() }),
            ended: Condvar::new(),
            most: max_in_flight.max(1),
            interval: per_minute.map_or(Duration::ZERO, |count| minute / count.max(1)),
        }
    }

    /// Waits until a request may begin; `None` if `stop` was set before.
    pub fn enter(&self, stop: &AtomicBool) -> Option<Permit<'_>> {
        let mut state = self.state();
        while !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            let is_full = state.in_flight >= self.most;
            if !is_full && state.next <= now {
                state.in_flight += 1;
                state.next = now + self.interval;
                return Some(Permit(self));
            }
            let wait = if is_full { STOP_POLL_INTERVAL } else { state.next - now };
            let waited = self.ended.wait_timeout(state, wait.min(STOP_POLL_INTERVAL));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }

    /// Lets no request begin before `pause` is over, on any thread.
    pub fn hold_off(&self, pause: Duration) {
        let mut state = self.state();
        state.next = state.next.max(Instant::now() + pause);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    static GO: AtomicBool = AtomicBool::new(false);

    #[test]
    fn no_more_are_under_way_than_allowed() {
        let limit = Limit::new(3, None);
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    let permit = limit.enter(&GO).unwrap();
                    most.fetch_max(1 + inside.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(5));
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(permit);
                });
            }
        });
        assert_eq!(most.into_inner(), 3);
    }

    #[test]
    fn starts_are_spaced_evenly_whoever_asks() {
        let start = Instant::now();
        // Every 20 ms.
        let limit = Limit::new(8, Some(3000));
        let mut starts: Vec<Duration> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let _permit = limit.enter(&GO).unwrap();
                        start.elapsed()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        starts.sort();
        for (index, at) in starts.iter().enumerate() {
            let earliest = Duration::from_millis(20) * index as u32;
            assert!(*at >= earliest, "{starts:?}");
        }
    }

    #[test]
    fn a_pause_also_holds_those_that_already_wait_for_their_start() {
        // Every 100 ms: the second waits for its start when the pause of 300 ms begins.
        let limit = Limit::new(8, Some(600));
        drop(limit.enter(&GO));
        let start = Instant::now();
        thread::scope(|scope| {
            let second = scope.spawn(|| {
                drop(limit.enter(&GO));
                start.elapsed()
            });
            thread::sleep(Duration::from_millis(20));
            limit.hold_off(Duration::from_millis(300));
            assert!(second.join().unwrap() >= Duration::from_millis(300));
        });
    }

    #[test]
    fn a_pause_holds_everybody_off_and_a_stop_ends_the_wait() {
        let limit = Limit::new(2, None);
        let start = Instant::now();
        limit.hold_off(Duration::from_millis(60));
        let first = limit.enter(&GO).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(60));
        let _second = limit.enter(&GO).unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let third = scope.spawn(|| limit.enter(&stop).is_none());
            stop.store(true, Ordering::Relaxed);
            assert!(third.join().unwrap());
        });
        drop(first);
        assert!(limit.enter(&GO).is_some());
    }
}
