//! Draws calls of a run to be computed anew, and says how likely a forgery of a share of them would have been among those drawn.
//!
//! Calls are drawn without replacement by SplitMix64, whose seed is the first 64 bits of SHA-256 over the run's head, a newline, and the
//! nonce of who checks. The head covers every byte of the run: nobody can change a call and keep the draw. Without a nonce, however, who
//! makes a run may try heads (by the time that it took, for instance) until one spares what was forged.

use std::collections::HashSet;

use super::contents::Contents;
use crate::digest::sha256;
use crate::random::sample;
use crate::record::{CallKey, ItemLine};

/// The calls that were drawn.
pub struct Drawn {
    pub keys: HashSet<CallKey>,
    /// How many calls could have been drawn.
    pub of: usize,
    /// Calls of items without an answer, which are no part of any result: none of them is drawn.
    pub left_out: usize,
}

/// Draws `count` calls of a run, or all if it has no more.
pub fn draw(contents: &Contents, head: &str, nonce: &str, count: usize) -> Drawn {
    let outcomes = contents.outcomes().into_values();
    let answered = outcomes.filter(|item| item.error().is_none());
    let answered: HashSet<_> = answered.map(|item: &ItemLine| (item.run(), item.item())).collect();
    let calls = &contents.calls.records;
    let eligible = calls.iter().filter(|call| answered.contains(&(call.run, call.item.as_str())));
    let eligible: Vec<CallKey> = eligible.map(|call| call.key()).collect();
    let drawn = places(eligible.len(), count, head, nonce);
    Drawn {
        keys: drawn.into_iter().map(|place| eligible[place].clone()).collect(),
        of: eligible.len(),
        left_out: calls.len() - eligible.len(),
    }
}

/// Which of `of` calls are drawn.
fn places(of: usize, count: usize, head: &str, nonce: &str) -> Vec<usize> {
    let sum = sha256(format!("{head}\n{nonce}"));
    // The digits of a sum are hexadecimal.
    sample(of, count, u64::from_str_radix(&sum[..16], 16).unwrap_or_default())
}

/// The probability that at least one of `drawn` calls out of `of` is forged, where `percent` of all are, rounded up: hypergeometric, and so
/// never less than 1 − (1 − p)^K.
pub fn chance(of: usize, drawn: usize, percent: usize) -> f64 {
    let sound = of - (of * percent).div_ceil(100).min(of);
    let missed = (0..drawn.min(of)).map(|i| sound.saturating_sub(i) as f64 / (of - i) as f64);
    1.0 - missed.product::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures::{call, failed_item, item, plan, start};

    /// 10,000 heads, and a share of the calls planted: as often as theory says, within five standard deviations of the binomial.
    #[test]
    fn a_planted_share_is_drawn_as_often_as_theory_says() {
        const TRIALS: usize = 10_000;
        for (of, count, percent) in
            [(1000, 20, 1), (1000, 20, 5), (300, 60, 1), (40, 10, 10), (7, 3, 15)]
        {
            let forged = usize::div_ceil(of * percent, 100);
            // Wherever they stand in the log.
            for first in [0, of / 2, of - forged] {
                let found = (0..TRIALS).filter(|trial| {
                    let head = sha256(format!("{of} {trial}"));
                    let drawn = places(of, count, &head, "");
                    drawn.iter().any(|place| (first..first + forged).contains(place))
                });
                let (found, expected) = (found.count() as f64, chance(of, count, percent));
                let trials = TRIALS as f64;
                let deviation = (trials * expected * (1.0 - expected)).sqrt();
                let told = format!("{found} of {TRIALS}, {percent} % of {of}, {count} drawn");
                assert!((found - trials * expected).abs() < 5.0 * deviation, "{told}");
            }
        }
    }

    #[test]
    fn the_chance_is_the_hypergeometric_one() {
        for (of, drawn, percent, expected) in [
            (100, 1, 1, 0.01),
            (100, 10, 5, 0.416_247_633),
            (100_000, 100, 1, 0.634_150_75),
            (100, 96, 5, 1.0),
            (10, 10, 1, 1.0),
            (10, 50, 1, 1.0),
            (3, 0, 10, 0.0),
            (0, 5, 10, 0.0),
        ] {
            let found = chance(of, drawn, percent);
            assert!((found - expected).abs() < 1e-6, "{of} {drawn} {percent}: {found}");
            let simple = 1.0 - (1.0 - percent as f64 / 100.0).powi(drawn as i32);
            assert!(of < drawn || found >= simple - 1e-12, "{of} {drawn} {percent}: {found}");
        }
    }

    #[test]
    fn the_draw_is_a_function_of_head_and_nonce_and_spares_no_call_of_a_result() {
        let out = tempfile::tempdir().unwrap();
        let log = start(out.path(), &plan());
        for name in ["q1", "q2"] {
            for agent in ["sym", "ddx", "guide"] {
                log.call(call(name, 0, agent)).unwrap();
            }
        }
        log.item(item("q1", 0)).unwrap();
        log.item(failed_item("q2", 0)).unwrap();
        log.finish().unwrap();
        let contents = Contents::read(out.path()).unwrap();
        let drawn = draw(&contents, "head", "", 2);
        assert_eq!((drawn.keys.len(), drawn.of, drawn.left_out), (2, 3, 3));
        assert_eq!(draw(&contents, "head", "", 2).keys, drawn.keys);
        assert!(drawn.keys.iter().all(|key| key.item == "q1"));
        assert_eq!(draw(&contents, "head", "", 99).keys.len(), 3);
        let draws = |nonce: &str| places(1000, 5, "head", nonce);
        assert_ne!(draws(""), draws("dice"));
        // What is drawn of a run must never change between versions.
        assert_eq!(places(1000, 5, "head", "dice"), [668, 423, 942, 138, 257]);
    }
}
