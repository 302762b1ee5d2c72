//! ROUGE as the Python package `rouge-score` 0.1.2 has it with its stemmer on: counted n-grams of stems in lower case.

use std::collections::HashMap;

use super::rouge::{Rouge, Score, share};
use crate::text::{lcs_length, porter_stem};

/// All 0 where either side has no letter or digit of ASCII.
pub fn rouge_score(hypothesis: &str, reference: &str) -> Rouge {
    let (hypothesis, reference) = (stems(hypothesis), stems(reference));
    let common = lcs_length(&reference, &hypothesis);
    Rouge {
        rouge1: n_gram_score(&hypothesis, &reference, 1),
        rouge2: n_gram_score(&hypothesis, &reference, 2),
        rouge_l: score(hypothesis.len(), reference.len(), common),
    }
}

/// Words of a to z and 0 to 9; those of more than three characters are stemmed.
fn stems(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let alien = |character: char| !matches!(character, 'a'..='z' | '0'..='9');
    text.split(alien)
        .filter(|word| !word.is_empty())
        .map(|word| match word.len() {
            0..=3 => word.to_owned(),
            _ => porter_stem(word),
        })
        .collect()
}

fn n_gram_score(hypothesis: &[String], reference: &[String], n: usize) -> Score {
    let (found, wanted) = (count(hypothesis, n), count(reference, n));
    let overlap =
        wanted.iter().map(|(n_gram, count)| found.get(n_gram).map_or(0, |other| *count.min(other)));
    let overlap = overlap.sum();
    score(found.values().sum(), wanted.values().sum(), overlap)
}

fn count(stems: &[String], n: usize) -> HashMap<&[String], usize> {
    let mut counts = HashMap::new();
    for n_gram in stems.windows(n) {
        *counts.entry(n_gram).or_insert(0) += 1;
    }
    counts
}

fn score(found: usize, wanted: usize, overlap: usize) -> Score {
    let (precision, recall) = (share(overlap, found), share(overlap, wanted));
    let f = match overlap {
        0 => 0.0,
        _ => 2.0 * precision * recall / (precision + recall),
    };
    Score { precision, recall, f }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_words_count_as_often_as_both_have_them() {
        let rouge = rouge_score("the the the cat", "the the cat sat");
        assert_eq!(rouge.rouge1.precision, 0.75);
        assert_eq!(rouge.rouge1.recall, 0.75);
        assert_eq!(rouge.rouge1.f, 0.75);
        assert_eq!(rouge.rouge2.precision, 2.0 / 3.0);
        assert_eq!(rouge.rouge_l.recall, 0.75);
    }

    #[test]
    fn words_are_compared_by_their_stems_without_case_and_punctuation() {
        let rouge = rouge_score(
            "Relating, to THE patient's infections!",
            "related to the patients infection",
        );
        assert_eq!(stems("patient's B-12"), ["patient", "s", "b", "12"]);
        assert_eq!(rouge.rouge1.recall, 1.0);
        assert_eq!(rouge.rouge1.precision, 5.0 / 6.0);
    }

    #[test]
    fn without_letters_nothing_overlaps() {
        for (hypothesis, reference) in [("", ""), ("...", "a"), ("a", "血氨")] {
            assert_eq!(rouge_score(hypothesis, reference), Rouge::default());
        }
        // One word has no pair.
        assert_eq!(rouge_score("a", "a").rouge2, Score::default());
    }
}
