//! Many durations in little memory: a histogram whose buckets are at most 1/64 of their value wide.

use std::time::Duration;

/// Buckets an octave.
const STEPS: u64 = 64;
/// Enough for 2³² µs, more than an hour; longer ones count as that.
const BUCKETS: usize = 28 * STEPS as usize;

#[derive(Clone, Debug)]
/// A histogram of durations.
pub struct Latencies {
    counts: Vec<u64>,
    count: u64,
    sum: Duration,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies { counts: vec![0; BUCKETS], count: 0, sum: Duration::ZERO }
    }
}

impl Latencies {
    /// Adds one.
    pub fn record(&mut self, latency: Duration) {
        let microseconds = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket(microseconds)] += 1;
        self.count += 1;
        self.sum += latency;
    }

    /// Adds another engine's latencies.
    pub fn merge(&mut self, other: &Latencies) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.count += other.count;
        self.sum += other.sum;
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// In milliseconds; `None` before the first.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum.as_secs_f64() * 1e3 / self.count as f64)
    }

    /// The nearest-rank percentile in milliseconds, to 1/64; `fraction` is 0.5 for the median.
    pub fn percentile_ms(&self, fraction: f64) -> Option<f64> {
        let rank = ((fraction * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        let (first, width) = edges(bucket as u64);
        Some((first as f64 + (width - 1) as f64 / 2.0) / 1e3)
    }
}

/// Whole microseconds up to 128, then a bucket for each of the first seven bits.
fn bucket(microseconds: u64) -> usize {
    let octave = u64::from(microseconds.max(1).ilog2()).saturating_sub(6);
    let bucket = octave * STEPS + (microseconds >> octave);
    usize::try_from(bucket).unwrap_or(BUCKETS).min(BUCKETS - 1)
}

/// The first microsecond of a bucket, and how many it has.
fn edges(bucket: u64) -> (u64, u64) {
    let octave = (bucket / STEPS).saturating_sub(1);
    ((bucket - octave * STEPS) << octave, 1 << octave)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(microseconds: impl Iterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::default();
        for value in microseconds {
            latencies.record(Duration::from_micros(value));
        }
        latencies
    }

    #[test]
    fn buckets_follow_each_other_and_are_narrow() {
        let mut next = 0;
        for bucket_index in 0..BUCKETS as u64 {
            let (first, width) = edges(bucket_index);
            assert_eq!(first, next, "bucket {bucket_index}");
            assert!(width == 1 || width * STEPS <= first);
            assert_eq!(bucket(first), bucket_index as usize);
            assert_eq!(bucket(first + width - 1), bucket_index as usize);
            next = first + width;
        }
        assert!(next > 1 << 32);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let small = latencies(1..=100);
        assert_eq!(small.percentile_ms(0.5), Some(0.050));
        assert_eq!(small.percentile_ms(0.99), Some(0.099));
        assert_eq!(small.percentile_ms(1.0), Some(0.100));
        assert!((small.mean_ms().unwrap() - 0.0505).abs() < 1e-12);

        let mut values: Vec<u64> =
            (0..1000).map(|index| 137 + index * index * 7919 % 3_000_000).collect();
        let large = latencies(values.iter().copied());
        values.sort_unstable();
        for share in [0.01, 0.25, 0.5, 0.9, 0.99] {
            let exact = values[(share * 1000.0) as usize - 1] as f64 / 1e3;
            let ours = large.percentile_ms(share).unwrap();
            assert!((ours - exact).abs() <= exact / 64.0, "{share}: {ours}, not {exact}");
        }
    }

    #[test]
    fn merged_latencies_are_those_of_all() {
        let mut one = latencies(1..=50);
        one.merge(&latencies(51..=100));
        let both = latencies(1..=100);
        assert_eq!(one.counts, both.counts);
        assert_eq!((one.count(), one.mean_ms()), (100, both.mean_ms()));
        assert_eq!(Latencies::default().percentile_ms(0.5), None);
        assert_eq!(Latencies::default().mean_ms(), None);
    }
}
