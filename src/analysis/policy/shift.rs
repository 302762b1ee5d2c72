//! Whether cases are still such as those of the calibration: a two-sample test on their scores.

use crate::random::SplitMix64;

/// Cases that are tested together.
pub const BLOCK: usize = 100;
/// A block of cases like those of the calibration raises a false alarm with at most this probability.
pub const LEVEL: f64 = 0.01;
/// Random divisions that the observed one is compared with.
const DIVISIONS: usize = 999;

/// The share of random divisions of all scores in two such samples whose distributions lie at least as far apart (Kolmogorov–Smirnov
/// distance, by permutation): a p-value that is exact with ties too. A case without a score counts as one of −1.
pub fn p_value(calibration: &[f64], seen: &[f64]) -> f64 {
    let mut scores: Vec<(f64, bool)> = Vec::with_capacity(calibration.len() + seen.len());
    scores.extend(calibration.iter().map(|score| (*score, false)));
    scores.extend(seen.iter().map(|score| (*score, true)));
    scores.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ends: Vec<bool> = (0..scores.len())
        .map(|place| scores.get(place + 1).is_none_or(|next| next.0 != scores[place].0))
        .collect();
    let mut labels: Vec<bool> = scores.iter().map(|(_, is_seen)| *is_seen).collect();
    let observed = distance(&labels, &ends, seen.len());
    let mut random = SplitMix64::new(1);
    let as_far = (0..DIVISIONS).filter(|_| {
        for place in (1..labels.len()).rev() {
            labels.swap(place, random.below(place as u64 + 1) as usize);
        }
        // Rounding must not tell equal distances apart.
        distance(&labels, &ends, seen.len()) >= observed - 1e-9
    });
    (1 + as_far.count()) as f64 / (1 + DIVISIONS) as f64
}

/// Between the distributions of both labels; `ends`: the last place of each distinct score.
fn distance(labels: &[bool], ends: &[bool], seen: usize) -> f64 {
    let others = labels.len() - seen;
    let (mut below, mut farthest) = ([0, 0], 0.0_f64);
    for (is_seen, is_end) in labels.iter().zip(ends) {
        below[usize::from(*is_seen)] += 1;
        if *is_end {
            let gap = below[0] as f64 / others as f64 - below[1] as f64 / seen as f64;
            farthest = farthest.max(gap.abs());
        }
    }
    farthest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Agreement among three agents, with a share of unanimous ones, and a tenth that cannot be read.
    fn scores(count: usize, unanimous: u64, random: &mut SplitMix64) -> Vec<f64> {
        let draw = |_| match random.below(100) {
            0..10 => -1.0,
            share if share < 10 + unanimous => 1.0,
            _ => 2.0 / 3.0,
        };
        (0..count).map(draw).collect()
    }

    #[test]
    fn like_cases_alarm_as_seldom_as_is_said_and_others_nearly_always() {
        let mut random = SplitMix64::new(3);
        let alarms = |unanimous, random: &mut SplitMix64| {
            let alarm = |_: &usize| {
                let calibration = scores(300, 60, random);
                p_value(&calibration, &scores(BLOCK, unanimous, random)) <= LEVEL
            };
            (0..200).filter(alarm).count()
        };
        // Two of two hundred are expected at most.
        let like = alarms(60, &mut random);
        assert!(like <= 7, "{like}");
        let other = alarms(25, &mut random);
        assert!(other > 190, "{other}");
    }
}
