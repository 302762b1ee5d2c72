//! What a difference looks like: a hint to whoever searches for its reason, and no proof.

use super::Way;

/// The bytes of a region: before the launch, after it by the emulator, and by the subject.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    pub before: &'a [u8],
    pub expected: &'a [u8],
    pub found: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspect {
    /// Another run of the same launch gives other bytes.
    Unsteady,
    /// The kernel does not write there, and other bytes lie there than before.
    Input,
    /// Behind a late producer: results of bytes that mean nothing, or overwritten by what came after.
    EarlyRead,
    /// The same of a part.
    StaleRead,
    /// What lay there before lies there still.
    Unwritten,
    /// What belongs there lies so many words further on.
    Shifted(isize),
    Other,
}

impl Suspect {
    /// For people.
    pub fn words(self) -> String {
        match self {
            Suspect::Unsteady => "another run gives other bytes: a fence or barrier is missing, or is the wrong one".to_owned(),
            Suspect::Input => "the kernel does not write there: what lies there is stale, or was written by another".to_owned(),
            Suspect::EarlyRead => "it ran on what was not written yet: its wait is missing, or comes too late".to_owned(),
            Suspect::StaleRead => "a part is made of what was not written yet: a stale read, or one before the wait".to_owned(),
            Suspect::Unwritten => "nothing was written: a tile or the whole launch is left out".to_owned(),
            Suspect::Shifted(words) => format!("what belongs there lies {words} words further on: a tile is off"),
            Suspect::Other => "other numbers".to_owned(),
        }
    }
}

/// What the difference of a region looks like. `is_steady`: whether the launch gives the same bytes again.
pub fn of(way: Way, is_steady: bool, bytes: Bytes<'_>) -> Suspect {
    let Bytes { before, expected, found } = bytes;
    if before == expected {
        return Suspect::Input;
    }
    if !is_steady {
        return Suspect::Unsteady;
    }
    let words = |bytes: &[u8]| -> Vec<u32> {
        bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    };
    let [before, expected, found] = [before, expected, found].map(words);
    let wrong: Vec<usize> = (0..found.len()).filter(|at| found[*at] != expected[*at]).collect();
    let written =
        before.iter().zip(&expected).filter(|(before, expected)| before != expected).count();
    let is_old = |at: &usize| found[*at] == before[*at];
    let is_early =
        |at: &usize| is_old(at) || means_nothing(found[*at]) && !means_nothing(expected[*at]);
    if way == Way::Late && wrong.iter().all(is_early) {
        // Of what it writes a few words may be the same by chance.
        return if 8 * wrong.len() >= 7 * written {
            Suspect::EarlyRead
        } else {
            Suspect::StaleRead
        };
    }
    if wrong.iter().all(is_old) {
        return Suspect::Unwritten;
    }
    shift(&wrong, &expected, &found).map_or(Suspect::Other, Suspect::Shifted)
}

/// Whether a word is no number, as f32, or in one of its halves, as bf16.
fn means_nothing(word: u32) -> bool {
    [word, word << 16, word & 0xFFFF_0000].into_iter().any(|word| f32::from_bits(word).is_nan())
}

/// How far most of what belongs at the wrong words lies from there, up to a tile's row.
fn shift(wrong: &[usize], expected: &[u32], found: &[u32]) -> Option<isize> {
    const FAR: isize = 128;
    let lies = |shift: isize| {
        let there = |at: &&usize| {
            let from = at.checked_add_signed(-shift).and_then(|from| expected.get(from));
            from == Some(&found[**at])
        };
        4 * wrong.iter().filter(there).count() >= 3 * wrong.len()
    };
    let nearest_first = (1..=FAR).flat_map(|shift| [shift, -shift]);
    // Equal numbers lie everywhere.
    let differ = wrong.windows(2).any(|pair| found[pair[0]] != found[pair[1]]);
    nearest_first.into_iter().find(|shift| differ && lies(*shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_told_apart_by_their_looks() {
        let bytes =
            |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        let before = bytes(&[9; 8]);
        let expected = bytes(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let look = |way, is_steady, found: &[u32]| {
            let found = bytes(found);
            of(way, is_steady, Bytes { before: &before, expected: &expected, found: &found })
        };
        let further = [8, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(look(Way::Plain, true, &further), Suspect::Shifted(1));
        assert_eq!(look(Way::Plain, false, &further), Suspect::Unsteady);
        assert_eq!(look(Way::Plain, true, &[1, 3, 4, 5, 6, 7, 8, 1]), Suspect::Shifted(-1));
        assert_eq!(look(Way::Plain, true, &[9; 8]), Suspect::Unwritten);
        assert_eq!(look(Way::Late, true, &[9; 8]), Suspect::EarlyRead);
        assert_eq!(look(Way::Late, true, &[!0; 8]), Suspect::EarlyRead);
        assert_eq!(look(Way::Late, true, &[1, 2, !0, 4, 5, 6, 7, 8]), Suspect::StaleRead);
        assert_eq!(look(Way::Late, true, &[1, 2, 30, 4, 5, 6, 7, 8]), Suspect::Other);
        let input = Bytes { before: &expected, expected: &expected, found: &before };
        assert_eq!(of(Way::Late, false, input), Suspect::Input);
    }
}
