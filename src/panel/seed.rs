//! The random seed of a call: a function of the run's seed and the call's key, never of the order of calls.

use sha2::{Digest, Sha256};

use crate::record::CallKey;

/// The seed of the call `key` in a run with the seed `run_seed`: below 2^53, so that every JSON reader keeps it exactly.
///
/// The upper 53 bits of the sha256 of the run's seed and the key's fields, numbers as little-endian bytes and texts after their length,
/// so that no two keys share an encoding.
pub fn call_seed(run_seed: u64, key: &CallKey) -> u64 {
    let mut hasher = Sha256::new();
    let text = |hasher: &mut Sha256, text: &str| {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    };
    hasher.update(run_seed.to_le_bytes());
    text(&mut hasher, &key.dataset);
    text(&mut hasher, &key.item);
    hasher.update(key.run.to_le_bytes());
    text(&mut hasher, &key.agent);
    hasher.update(key.round.to_le_bytes());
    text(&mut hasher, &key.purpose);
    hasher.update(key.sample.to_le_bytes());
    let upper = hasher.finalize()[..8].iter().fold(0, |seed, &byte| seed << 8 | u64::from(byte));
    upper >> 11
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn key(item: &str, agent: &str, round: u32) -> CallKey {
        CallKey {
            dataset: "medqa".to_owned(),
            run: 0,
            item: item.to_owned(),
            agent: agent.to_owned(),
            round,
            purpose: "debate".to_owned(),
            sample: 0,
        }
    }

    /// The values come from an independent computation of the documented encoding.
    #[test]
    fn seeds_are_fixed_for_good() {
        assert_eq!(call_seed(0, &key("12", "sym", 0)), 3_331_544_694_585_424);
        assert_eq!(call_seed(42, &key("12", "ddx", 3)), 575_202_708_788_709);
        assert_eq!(call_seed(u64::MAX, &key("é", "guide", 1)), 7_189_143_490_152_499);
    }

    #[test]
    fn every_field_counts_and_fits_in_53_bits() {
        let base = key("12", "sym", 0);
        let variants = [
            base.clone(),
            CallKey { dataset: "medqa4".to_owned(), ..base.clone() },
            CallKey { run: 1, ..base.clone() },
            CallKey { item: "1".to_owned(), ..base.clone() },
            CallKey { agent: "ddx".to_owned(), ..base.clone() },
            CallKey { round: 1, ..base.clone() },
            CallKey { purpose: "brief".to_owned(), ..base.clone() },
            CallKey { sample: 1, ..base.clone() },
            // The same bytes once joined: only the lengths tell them apart.
            CallKey { dataset: "medqa1".to_owned(), item: "2".to_owned(), ..base },
        ];
        let seeds: HashSet<u64> = variants.iter().map(|key| call_seed(7, key)).collect();
        assert_eq!(seeds.len(), variants.len());
        assert!(seeds.iter().all(|&seed| seed < 1 << 53));
    }
}
