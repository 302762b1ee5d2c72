//! The pace of requests: how many are in flight at once, the interval between their starts, and the pauses after those that failed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::STOP_POLL_INTERVAL;
use crate::random::mix;

const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// Exponential backoff with jitter: the pause after attempt number `attempt`, counted from 1. `first` doubled for each further attempt, at
/// most a minute, times a factor from 0.5 to 1 drawn from the call's seed, so that calls that failed together do not retry together.
pub fn backoff(seed: u64, attempt: u32, first: Duration) -> Duration {
    let doubled = first.saturating_mul(2_u32.saturating_pow(attempt - 1));
    let drawn = mix(seed ^ u64::from(attempt).rotate_right(8)) >> 11;
    let factor = 0.5 + 0.5 * drawn as f64 / (1_u64 << 53) as f64;
    doubled.min(LONGEST_BACKOFF).mul_f64(factor)
}

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

    /// Waits until a request may begin, which it may not before `earliest`; `None` if `stop` was set before.
    pub fn enter(&self, earliest: Instant, stop: &AtomicBool) -> Option<Permit<'_>> {
        let mut state = self.state();
        while !stop.load(Ordering::Relaxed) {
            let (now, next) = (Instant::now(), state.next.max(earliest));
            let is_full = state.in_flight >= self.most;
            if !is_full && next <= now {
                state.in_flight += 1;
                state.next = now + self.interval;
                return Some(Permit(self));
            }
            let wait = if is_full { STOP_POLL_INTERVAL } else { next - now };
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

    fn enter(limit: &Limit) -> Permit<'_> {
        limit.enter(Instant::now(), &GO).unwrap()
    }

    #[test]
    fn a_pause_doubles_up_to_a_minute_and_depends_on_the_seed_alone() {
        let second = Duration::from_secs(1);
        for (attempt, most) in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (40, 60), (u32::MAX, 60)]
        {
            for seed in 0..100 {
                let pause = backoff(seed, attempt, second);
                let most = Duration::from_secs(most);
                assert!(pause >= most / 2 && pause <= most, "{attempt}: {pause:?}");
                assert_eq!(pause, backoff(seed, attempt, second));
            }
        }
        let pauses: std::collections::HashSet<_> =
            (0..100).map(|seed| backoff(seed, 1, second)).collect();
        assert_eq!(pauses.len(), 100);
    }

    #[test]
    fn no_more_are_under_way_than_allowed() {
        let limit = Limit::new(3, None);
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    let permit = enter(&limit);
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
                        let _permit = enter(&limit);
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
        drop(enter(&limit));
        let start = Instant::now();
        thread::scope(|scope| {
            let second = scope.spawn(|| {
                drop(enter(&limit));
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
        let first = enter(&limit);
        assert!(start.elapsed() >= Duration::from_millis(60));
        let _second = enter(&limit);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let third = scope.spawn(|| limit.enter(start, &stop).is_none());
            stop.store(true, Ordering::Relaxed);
            assert!(third.join().unwrap());
        });
        drop(first);
        let own = Instant::now() + Duration::from_millis(60);
        drop(limit.enter(own, &GO));
        assert!(Instant::now() >= own);
    }
}
