//! Rate-limits failed authentication by client address.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use crate::random::mix;

/// The most failures of an address in a minute.
const MOST_A_MINUTE: u64 = 10;
/// The number of counters. Addresses with equal hashes share one, which affects only clients that fail.
const COUNTERS: usize = 4096;

/// Counters of failures in the current minute.
pub struct Failures {
    started: Instant,
    /// The minute in the upper half, the failures in it in the lower.
    counters: Vec<AtomicU64>,
}

impl Default for Failures {
    fn default() -> Failures {
        let counters = (0..COUNTERS).map(|_| AtomicU64::new(0)).collect();
        Failures { started: Instant::now(), counters }
    }
}

impl Failures {
    /// Counts one failure; returns whether there were too many in this minute.
    pub fn count(&self, address: Option<IpAddr>) -> bool {
        let minute = self.started.elapsed().as_secs() / 60;
        let bits = match address {
            Some(IpAddr::V4(address)) => u64::from(address.to_bits()),
            // One client usually has a whole /64 network.
            Some(IpAddr::V6(address)) => (address.to_bits() >> 64) as u64,
            None => 0,
        };
        let counter = &self.counters[mix(bits) as usize % COUNTERS];
        let next = |old: u64| match old >> 32 == minute {
            true => old.saturating_add(1),
            false => minute << 32 | 1,
        };
        let old = counter.fetch_update(Relaxed, Relaxed, |old| Some(next(old))).unwrap_or_default();
        next(old) & u64::from(u32::MAX) > MOST_A_MINUTE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eleventh_failure_of_a_minute_is_one_too_many() {
        let failures = Failures::default();
        let address = Some(IpAddr::from([10, 0, 0, 1]));
        let count = (0..12).filter(|_| failures.count(address)).count();
        assert_eq!(count, 2);
        assert!(!failures.count(Some(IpAddr::from([10, 0, 0, 2]))));
        assert!(!failures.count(None));
    }
}
