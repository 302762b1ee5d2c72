//! Retries: backoff, `Retry-After`, and an interruptible sleep.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

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

/// The pause of a `retry-after-ms` header, which may have a fraction; `None` where it is no number.
pub fn milliseconds(value: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(value.trim().parse::<f64>().ok()? / 1000.0).ok()
}

/// The pause that a `Retry-After` header asks for, in seconds or as a date (RFC 9110 §10.2.3); zero for a date that has passed. `None`
/// where it is neither.
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = httpdate::parse_http_date(value).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}

/// Sleeps, unless `stop` is set before the end; returns whether the whole pause passed.
pub fn sleep(pause: Duration, stop: &AtomicBool) -> bool {
    let start = Instant::now();
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        match pause.checked_sub(start.elapsed()) {
            None | Some(Duration::ZERO) => return true,
            Some(left) => thread::sleep(left.min(STOP_POLL_INTERVAL)),
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
    fn milliseconds_may_have_a_fraction() {
        assert_eq!(milliseconds("120"), Some(Duration::from_millis(120)));
        assert_eq!(milliseconds("1500.5"), Some(Duration::from_micros(1_500_500)));
        for value in ["", "soon", "-1", "NaN", "1e300"] {
            assert_eq!(milliseconds(value), None, "{value}");
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
