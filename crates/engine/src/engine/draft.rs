//! Speculative decoding by prompt lookup: draft tokens come from the sequence itself, without a second model.

/// Lengths of the n-grams that are looked for, the longer one first.
const NGRAMS: [usize; 2] = [3, 2];

/// Up to `most` tokens after `tokens`: those that followed the last earlier occurrence of the final n-gram, repeated
/// cyclically where they reach the end of the sequence. Empty where the n-gram has not occurred before.
pub fn look_up(tokens: &[u32], most: usize) -> Vec<u32> {
    let from = NGRAMS.iter().find_map(|&length| follow(tokens, length));
    let repeated = from.map_or(&[][..], |from| &tokens[from..]);
    repeated.iter().copied().cycle().take(most).collect()
}

/// The index after the last earlier occurrence of the final `length` tokens.
fn follow(tokens: &[u32], length: usize) -> Option<usize> {
    let last = &tokens[tokens.len().checked_sub(length)?..];
    let earlier = &tokens[..tokens.len() - 1];
    let at = earlier.windows(length).rposition(|ngram| ngram == last)?;
    Some(at + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_place_of_the_longest_ngram_is_followed() {
        let tokens = [1, 2, 3, 4, 1, 2, 3, 5, 9, 2, 3, 6, 1, 2, 3];
        assert_eq!(look_up(&tokens, 4), [5, 9, 2, 3]);
        assert_eq!(look_up(&tokens, 1), [5]);
        // Two tokens are enough where three were never said.
        assert_eq!(look_up(&[7, 2, 3, 8, 1, 2, 3], 2), [8, 1]);
    }

    #[test]
    fn what_runs_into_the_end_is_repeated() {
        assert_eq!(look_up(&[0, 4, 5, 4, 5], 5), [4, 5, 4, 5, 4]);
        assert_eq!(look_up(&[6, 6, 6], 4), [6; 4]);
    }

    #[test]
    fn nothing_said_before_is_nothing_to_draft() {
        for tokens in [&[][..], &[1], &[1, 1], &[1, 2, 3, 1, 3, 2]] {
            assert!(look_up(tokens, 8).is_empty());
        }
        assert!(look_up(&[1, 1, 1], 0).is_empty());
    }
}
