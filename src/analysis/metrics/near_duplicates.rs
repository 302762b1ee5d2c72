//! Texts that are nearly the same, and so stand and fall together: MEDEC has most of its notes twice, once with an error.
//!
//! Two texts are near-duplicates where they share at least [`SHARED`] of their words (Dice's coefficient of the words between white
//! space, each as often as it comes); a group is all that such pairs link. In MEDEC's
//! files no pair shares between 0.60 and 0.64: either is the same case, or another.

use std::collections::BTreeMap;

/// In tenths, so that no rounding decides.
pub const SHARED: usize = 6;

/// Each text's unit: the place of the first text of its group.
pub fn units(texts: &[&str]) -> Vec<usize> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut bags: Vec<Vec<u32>> = Vec::with_capacity(texts.len());
    for text in texts {
        let mut bag = Vec::new();
        for word in text.split_whitespace() {
            let next = numbers.len() as u32;
            bag.push(*numbers.entry(word).or_insert(next));
        }
        bag.sort_unstable();
        bags.push(bag);
    }
    let mut units: Vec<usize> = (0..texts.len()).collect();
    for later in 0..bags.len() {
        for earlier in 0..later {
            let (from, to) = (units[later], units[earlier]);
            if from != to && are_alike(&bags[earlier], &bags[later]) {
                let (keep, drop) = (from.min(to), from.max(to));
                units.iter_mut().filter(|unit| **unit == drop).for_each(|unit| *unit = keep);
            }
        }
    }
    units
}

/// Of two sorted bags of words.
fn are_alike(left: &[u32], right: &[u32]) -> bool {
    let needed = SHARED * (left.len() + right.len());
    // As many as the shorter has can be shared at most.
    if needed == 0 || 20 * left.len().min(right.len()) < needed {
        return false;
    }
    let (mut at_left, mut at_right, mut shared) = (0, 0, 0);
    while at_left < left.len() && at_right < right.len() {
        match left[at_left].cmp(&right[at_right]) {
            std::cmp::Ordering::Less => at_left += 1,
            std::cmp::Ordering::Greater => at_right += 1,
            std::cmp::Ordering::Equal => {
                (at_left, at_right, shared) = (at_left + 1, at_right + 1, shared + 1);
            }
        }
    }
    20 * shared >= needed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Format;

    #[test]
    fn texts_that_share_most_of_their_words_are_one_unit() {
        let texts = [
            "He was given oral vancomycin for colitis.",
            "She has a cough.",
            "He was given intravenous vancomycin for colitis.",
            "",
            "",
            "She has the cough.",
        ];
        assert_eq!(units(&texts), [0, 1, 0, 3, 4, 1]);
        // Three fifths are enough, less is not; a word counts as often as it comes.
        assert_eq!(units(&["a b c d e", "a b c x y"]), [0, 0]);
        assert_eq!(units(&["a b c d e", "a b v x y"]), [0, 1]);
        assert_eq!(units(&["a a a a b", "a b c d e"]), [0, 1]);
    }

    #[test]
    #[ignore = "needs WARDROUND_DATA"]
    fn with_data_most_notes_of_medec_come_twice() {
        let folder = std::env::var("WARDROUND_DATA").unwrap();
        let file = "medec/MEDEC-MS-TestSet-with-GroundTruth-and-ErrorType.csv";
        let set = crate::data::load(&std::path::Path::new(&folder).join(file), Format::Medec);
        let items = set.unwrap().items;
        let texts: Vec<&str> =
            items.iter().map(|item| item.note().unwrap().text.as_str()).collect();
        let mut units = units(&texts);
        units.sort_unstable();
        units.dedup();
        assert_eq!((texts.len(), units.len()), (597, 310));
    }

    #[test]
    fn what_a_text_links_is_one_group() {
        let chain = ["a b c d e", "x y z u w", "c d e f g", "e f g h c"];
        assert_eq!(units(&chain), [0, 1, 0, 0]);
    }
}
