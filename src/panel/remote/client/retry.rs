//! Retries: which statuses are transient, backoff, `Retry-After`, and an interruptible sleep.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::PATIENCE;
use crate::random::mix;

const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// Whether another attempt may fare better after an answer with this status.
pub fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500 | 502..=599)
}

/// The pause after the `attempt`th attempt, counted from 1: `first`, doubled each time up to a minute, of which a
/// share from a half to the whole, drawn from the call's seed, so that calls that failed together do not return
/// together.
pub fn backoff(seed: u64, attempt: u32, first: Duration) -> Duration {
    let doubled = first.saturating_mul(2_u32.saturating_pow(attempt - 1));
    let share = mix(seed ^ u64::from(attempt).rotate_right(8)) >> 11;
    let share = 0.5 + 0.5 * share as f64 / (1_u64 << 53) as f64;
    doubled.min(LONGEST_BACKOFF).mul_f64(share)
}

/// What a `Retry-After` asks for: seconds, or the date until which to wait (RFC 9110 §10.2.3). `None` where it is
/// neither; a date that has passed asks for nothing.
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = httpdate::parse_http_date(value).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}

/// Sleeps; `false` if `stop` was set before the end.
pub fn sleep(pause: Duration, stop: &AtomicBool) -> bool {
    let start = Instant::now();
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        match pause.checked_sub(start.elapsed()) {
            None | Some(Duration::ZERO) => return true,
            Some(left) => thread::sleep(left.min(PATIENCE)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

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
    fn retry_after_is_seconds_or_a_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let seconds = |value| retry_after(value, now).map(|pause| pause.as_secs_f64());
        assert_eq!(seconds("120"), Some(120.0));
        assert_eq!(seconds(" 0.5 "), Some(0.5));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(0.0));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60.0));
        assert_eq!(seconds("Sun, 06 Nov 1983 08:50:37 GMT"), Some(0.0));
        for value in [
            "",
            "soon",
            "-1",
            "NaN",
            "1e300",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nox 1994 08:49:37 GMT",
            "Sun, 40 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 99999999999999999 08:49:37 GMT",
        ] {
            assert_eq!(seconds(value), None, "{value}");
        }
    }

    #[test]
    fn a_sleeper_wakes_when_stopped() {
        let stop = AtomicBool::new(true);
        assert!(!sleep(Duration::from_secs(60), &stop));
        stop.store(false, Ordering::Relaxed);
        assert!(sleep(Duration::ZERO, &stop));
    }
}
