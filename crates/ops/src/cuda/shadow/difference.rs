//! Where two copies of a region differ.

/// Words are of four bytes; the last may be of fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    pub bytes: usize,
    pub words: usize,
    /// Words that are no number in both, as f32, or whose halves that differ are none, as bf16: which of many patterns stands for
    /// none is the machine's own.
    pub both_nan: usize,
    /// Of the first word that differs.
    pub offset: usize,
    pub expected: u32,
    pub found: u32,
    /// How many numbers a word is off at most, if words are f32; and a half, if halves are bf16.
    pub f32_steps: u32,
    pub bf16_steps: u32,
}

/// Nothing where they are the same.
pub fn compare(expected: &[u8], found: &[u8]) -> Option<Difference> {
    if expected == found {
        return None;
    }
    let mut difference = Difference::default();
    for (index, (a, b)) in expected.chunks(4).zip(found.chunks(4)).enumerate() {
        if a == b {
            continue;
        }
        let [one, other] = [a, b].map(word);
        if difference.words == 0 {
            (difference.offset, difference.expected, difference.found) = (4 * index, one, other);
        }
        difference.words += 1;
        difference.bytes += a.iter().zip(b).filter(|(a, b)| a != b).count();
        difference.both_nan += usize::from(are_no_numbers(one, other));
        difference.f32_steps = difference.f32_steps.max(steps(one, other));
        let low = steps(one << 16, other << 16) >> 16;
        let high = steps(one & 0xFFFF_0000, other & 0xFFFF_0000) >> 16;
        difference.bf16_steps = difference.bf16_steps.max(low).max(high);
    }
    Some(difference)
}

fn word(bytes: &[u8]) -> u32 {
    let mut word = [0; 4];
    word[..bytes.len()].copy_from_slice(bytes);
    u32::from_le_bytes(word)
}

fn are_no_numbers(one: u32, other: u32) -> bool {
    let is_nan = |word: u32| f32::from_bits(word).is_nan();
    // A bf16 is the upper half of an f32.
    let halves = [(one << 16, other << 16), (one & 0xFFFF_0000, other & 0xFFFF_0000)];
    is_nan(one) && is_nan(other)
        || halves.into_iter().all(|(a, b)| a == b || is_nan(a) && is_nan(b))
}

/// How many floats lie between two, by their bits.
fn steps(one: u32, other: u32) -> u32 {
    let place = |bits: u32| {
        let magnitude = i64::from(bits & 0x7FFF_FFFF);
        if bits >> 31 != 0 { -magnitude } else { magnitude }
    };
    place(one).abs_diff(place(other)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_counted_and_measured() {
        let bytes =
            |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
        let one = 1f32.to_bits();
        assert_eq!(compare(&bytes(&[one, 7]), &bytes(&[one, 7])), None);
        let found = compare(&bytes(&[7, one, 0, 0x7FFF_FFFF]), &bytes(&[7, one + 3, 1 << 31, !0]));
        let found = found.unwrap();
        let Difference { bytes: count, words, both_nan, offset, expected, .. } = found;
        assert_eq!((count, words, both_nan, offset, expected), (3, 2 + 1, 1, 4, one));
        assert_eq!(found.found, one + 3);
        assert_eq!(compare(&bytes(&[one]), &bytes(&[one + 3])).unwrap().f32_steps, 3);
        assert_eq!(compare(&bytes(&[0x3F80_0001]), &bytes(&[0x3F82_0001])).unwrap().bf16_steps, 2);
        let nan = compare(&bytes(&[0x3F80_7FFF]), &bytes(&[0x3F80_FFC0])).unwrap();
        assert_eq!((nan.words, nan.both_nan), (1, 1));
        let odd = compare(&[1, 2, 3, 4, 5], &[1, 2, 3, 4, 6]).unwrap();
        assert_eq!((odd.bytes, odd.offset, odd.expected, odd.found), (1, 4, 5, 6));
    }
}
