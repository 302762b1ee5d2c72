//! The regions that there are, and which of them kernels write.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Buffers that only kernels and tests write, and no kernel reads before its wait.
const ACTIVATIONS: &str = "activations";

#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub address: u64,
    pub bytes: usize,
    pub what: &'static str,
    /// Whether a kernel has changed it; what is only ever sent there some kernels read before their wait.
    is_written: bool,
}

impl Held {
    /// Of a region there are sixteen bytes at least.
    pub fn new(address: u64, bytes: usize, what: &'static str) -> Held {
        Held { address, bytes: bytes.max(16), what, is_written: false }
    }

    pub fn is_made_by_kernels(&self) -> bool {
        self.is_written || self.what == ACTIVATIONS
    }

    fn offset(&self, word: u64) -> Option<u64> {
        word.checked_sub(self.address).filter(|offset| *offset < self.bytes as u64)
    }
}

/// The region that a word points into, and how far.
pub fn place(held: &[Held], word: u64) -> Option<(usize, u64)> {
    let mut all = held.iter().enumerate();
    all.find_map(|(region, held)| held.offset(word).map(|offset| (region, offset)))
}

#[derive(Debug, Default)]
pub struct Regions(Mutex<BTreeMap<u64, Held>>);

impl Regions {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, held: Held) {
        self.all().insert(held.address, held);
    }

    pub fn remove(&self, address: u64) {
        self.all().remove(&address);
    }

    pub fn note_written(&self, address: u64) {
        if let Some(held) = self.all().get_mut(&address) {
            held.is_written = true;
        }
    }

    /// Those that any word points into, each once, in the words' order. Numbers have 32 bits, and no address so few.
    pub fn touched(&self, words: &[u64]) -> Vec<Held> {
        let all = self.all();
        let mut touched: Vec<Held> = Vec::new();
        for word in words.iter().filter(|word| **word > u64::from(u32::MAX)) {
            let below = all.range(..=*word).next_back().map(|(_, held)| *held);
            let is_new = |held: &Held| touched.iter().all(|other| other.address != held.address);
            touched.extend(below.filter(|held| held.offset(*word).is_some() && is_new(held)));
        }
        touched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_find_the_regions_they_point_into() {
        let regions = Regions::default();
        let start = 1 << 40;
        for (index, what) in ["weights", ACTIVATIONS, "keys"].into_iter().enumerate() {
            regions.add(Held::new(start + 256 * index as u64, 100, what));
        }
        regions.remove(start);
        let words = [start, 5, 0, start + 512 + 99, start + 256 + 100, start + 600, start + 300];
        let touched = regions.touched(&words);
        assert_eq!(touched.iter().map(|held| held.what).collect::<Vec<_>>(), ["keys", ACTIVATIONS]);
        assert_eq!(place(&touched, start + 300), Some((1, 44)));
        assert_eq!(place(&touched, start), None);
        assert!(!touched[0].is_made_by_kernels() && touched[1].is_made_by_kernels());
        regions.note_written(start + 512);
        assert!(regions.touched(&words)[0].is_made_by_kernels());
    }
}
