//! Limits of concurrency and rate: how many requests are in flight at once, and the interval between their starts.
//!
//! Permits and the schedule travel through channels: whoever has received one owns it until it is sent back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::{STOP_POLL_INTERVAL, retry};

pub struct Limit {
    permits: (Sender<()>, Receiver<()>),
    /// One value, always sent back at once.
    schedule: (Sender<Schedule>, Receiver<Schedule>),
    interval: Duration,
}

struct Schedule {
    /// When the next request may begin.
    next: Instant,
    /// Before this no request begins, not even one whose time was reserved earlier.
    held_until: Instant,
}

/// The right to send one request; dropping it lets the next one in.
#[derive(Debug)]
pub struct Permit {
    back: Sender<()>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        // The channel has room for every permit; it fails only once the limit itself was dropped.
        let _ = self.back.try_send(());
    }
}

impl Limit {
    pub fn new(max_in_flight: usize, per_minute: Option<u32>) -> Limit {
        let permits = bounded(max_in_flight.max(1));
        while permits.0.try_send(()).is_ok() {}
        let schedule = bounded(1);
        let now = Instant::now();
        let _ = schedule.0.try_send(Schedule { next: now, held_until: now });
        let minute = Duration::from_secs(60);
        let interval = per_minute.map_or(Duration::ZERO, |count| minute / count.max(1));
        Limit { permits, schedule, interval }
    }

    /// Waits until a request may begin; `None` if `stop` was set before.
    pub fn enter(&self, stop: &AtomicBool) -> Option<Permit> {
        while !stop.load(Ordering::Relaxed) {
            match self.permits.1.recv_timeout(STOP_POLL_INTERVAL) {
                Ok(()) => {
                    let permit = Permit { back: self.permits.0.clone() };
                    return self.wait_for_start(stop).map(|()| permit);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        None
    }

    /// Reserves the next start and waits for it, and for the end of any pause that began meanwhile.
    fn wait_for_start(&self, stop: &AtomicBool) -> Option<()> {
        let mut start = self.update(|schedule| {
            let start = schedule.next.max(Instant::now());
            schedule.next = start + self.interval;
            start
        })?;
        loop {
            if !retry::sleep(start.saturating_duration_since(Instant::now()), stop) {
                return None;
            }
            start = self.update(|schedule| schedule.held_until)?;
            if start <= Instant::now() {
                return Some(());
            }
        }
    }

    /// Lets no request begin before `pause` is over, on any thread.
    pub fn hold_off(&self, pause: Duration) {
        let until = Instant::now() + pause;
        self.update(|schedule| {
            schedule.next = schedule.next.max(until);
            schedule.held_until = schedule.held_until.max(until);
        });
    }

    fn update<T>(&self, change: impl FnOnce(&mut Schedule) -> T) -> Option<T> {
        let mut schedule = self.schedule.1.recv().ok()?;
        let result = change(&mut schedule);
        self.schedule.0.send(schedule).ok()?;
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
