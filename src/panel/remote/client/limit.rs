//! Limits of concurrency and rate: how many requests are under way at once, and the interval between their starts.
//!
//! Permits and the clock of the next start travel through channels: whoever has received one owns it until it is
//! sent back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::{PATIENCE, retry};

pub struct Limit {
    permits: (Sender<()>, Receiver<()>),
    /// The moment at which the next request may begin; one value, always sent back at once.
    clock: (Sender<Instant>, Receiver<Instant>),
    interval: Duration,
}

/// Leave for one request; dropping it lets the next one in.
#[derive(Debug)]
pub struct Permit {
    back: Sender<()>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        // The channel has room for every permit; nobody receives once the limit is gone.
        let _ = self.back.try_send(());
    }
}

impl Limit {
    pub fn new(max_in_flight: usize, per_minute: Option<u32>) -> Limit {
        let permits = bounded(max_in_flight.max(1));
        while permits.0.try_send(()).is_ok() {}
        let clock = bounded(1);
        let _ = clock.0.try_send(Instant::now());
        let minute = Duration::from_secs(60);
        Limit {
            permits,
            clock,
            interval: per_minute.map_or(Duration::ZERO, |count| minute / count.max(1)),
        }
    }

    /// Waits for leave to begin a request; `None` if `stop` was set before.
    pub fn enter(&self, stop: &AtomicBool) -> Option<Permit> {
        while !stop.load(Ordering::Relaxed) {
            match self.permits.1.recv_timeout(PATIENCE) {
                Ok(()) => {
                    let permit = Permit { back: self.permits.0.clone() };
                    let start = self.advance(|next| (next, next + self.interval))?;
                    let is_over =
                        retry::sleep(start.saturating_duration_since(Instant::now()), stop);
                    return is_over.then_some(permit);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        None
    }

    /// Lets no request begin before `pause` is over, whoever asks.
    pub fn hold_off(&self, pause: Duration) {
        let until = Instant::now() + pause;
        self.advance(|next| ((), next.max(until)));
    }

    fn advance<T>(&self, step: impl Fn(Instant) -> (T, Instant)) -> Option<T> {
        let next = self.clock.1.recv().ok()?;
        let (result, next) = step(next.max(Instant::now()));
        self.clock.0.send(next).ok()?;
        Some(result)
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
