//! What was retrieved, in the order in which it is shown, without chunks that repeat a better one.

/// Characters from which on two chunks of a document overlap too much to be shown both.
const OVERLAP: usize = 150;

/// The numbers of `scores`, best first; of equals the earlier one first.
pub fn by_score(scores: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
    order
}

/// Whether the end of one text is the beginning of the other over so many characters, or one holds the other.
pub fn overlap(one: &str, other: &str) -> bool {
    one.contains(other) || other.contains(one) || continues(one, other) || continues(other, one)
}

/// Whether `second` begins with an end of `first` of at least [`OVERLAP`] characters.
fn continues(first: &str, second: &str) -> bool {
    let ends = first.char_indices().rev().map(|(at, _)| &first[at..]);
    ends.skip(OVERLAP - 1).any(|end| second.starts_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_scores_the_earlier_comes_first() {
        assert_eq!(by_score(&[0.5, 2.0, 0.5, -1.0, 2.0]), [1, 4, 0, 2, 3]);
    }

    #[test]
    fn texts_overlap_from_150_characters_on() {
        let text: String = (0..200).map(|number| format!("{number:03}.")).collect();
        let long = |overlap: usize| overlap_of(&text[..400], &text[400 - overlap..]);
        fn overlap_of(one: &str, other: &str) -> bool {
            assert_eq!(overlap(one, other), overlap(other, one));
            overlap(one, other)
        }
        assert!(long(150) && long(200) && !long(149));
        assert!(overlap(&text, &text[20..40]));
        assert!(!overlap("one", "two"));
    }
}
