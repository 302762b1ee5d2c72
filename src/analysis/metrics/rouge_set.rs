//! ROUGE as the Python package `rouge` 1.0.1 has it: n-grams as sets, words as they are written.

use std::collections::HashSet;

use super::MetricsError;
use super::rouge::{Rouge, Score, share};
use crate::text::split_words;

/// The most pairs of a word of either text, which are compared each with each: those of two texts of 65,536 words.
const MOST_PAIRS: usize = 1 << 32;

/// What the official scorer of MEDIQA-CORR 2024 takes; case counts, and punctuation stays with its word.
/// ROUGE-L counts the different words in the union of the longest common subsequences of all pairs of sentences.
///
/// # Errors
/// A hypothesis or a reference that is empty, or has full stops alone; texts of more than 2³² pairs of words.
pub fn rouge_set(hypothesis: &str, reference: &str) -> Result<Rouge, MetricsError> {
    let (hypothesis, reference) =
        both(hypothesis, reference, |text| words_of_sentences(text.split('.')))?;
    let words = |sentences: &Sentences| sentences.iter().map(Vec::len).sum::<usize>();
    let pairs = words(&reference).saturating_mul(words(&hypothesis));
    if pairs > MOST_PAIRS {
        return Err(MetricsError::Long { figure: "ROUGE-L", pairs, most: MOST_PAIRS });
    }
    let mut union: HashSet<&str> = HashSet::new();
    for sentence in &reference {
        for other in &hypothesis {
            union.extend(common_subsequence(sentence, other));
        }
    }
    let (hypothesis, reference) = (hypothesis.concat(), reference.concat());
    let (words, wanted) = (n_grams(&hypothesis, 1), n_grams(&reference, 1));
    Ok(Rouge {
        rouge1: n_gram_score(&hypothesis, &reference, 1),
        rouge2: n_gram_score(&hypothesis, &reference, 2),
        rouge_l: score(words.len(), wanted.len(), union.len()),
    })
}

pub(super) type Sentences<'t> = Vec<Vec<&'t str>>;

/// Hypothesis and reference, each cut into sentences.
pub(super) fn both<'t>(
    hypothesis: &'t str,
    reference: &'t str,
    cut: impl Fn(&'t str) -> Sentences<'t>,
) -> Result<(Sentences<'t>, Sentences<'t>), MetricsError> {
    let cut = |text, what| match cut(text) {
        none if none.is_empty() => Err(MetricsError::Empty { figure: "ROUGE", what }),
        sentences => Ok(sentences),
    };
    Ok((cut(hypothesis, "hypothesis")?, cut(reference, "reference")?))
}

/// The words of every sentence that is not empty. A blank one has one word, the empty one: so the package counts.
pub(super) fn words_of_sentences<'t>(sentences: impl Iterator<Item = &'t str>) -> Sentences<'t> {
    sentences
        .filter(|sentence| !sentence.is_empty())
        .map(|sentence| {
            let words: Vec<&str> = split_words(sentence).collect();
            if words.is_empty() { vec![""] } else { words }
        })
        .collect()
}

fn n_grams<'w, 't>(words: &'w [&'t str], n: usize) -> HashSet<&'w [&'t str]> {
    words.windows(n).collect()
}

pub(super) fn n_gram_score(hypothesis: &[&str], reference: &[&str], n: usize) -> Score {
    let (found, wanted) = (n_grams(hypothesis, n), n_grams(reference, n));
    let overlap = found.intersection(&wanted).count();
    score(found.len(), wanted.len(), overlap)
}

/// The package keeps F from dividing by 0 with a small number.
pub(super) fn score(found: usize, wanted: usize, overlap: usize) -> Score {
    let (precision, recall) = (share(overlap, found), share(overlap, wanted));
    Score { precision, recall, f: 2.0 * ((precision * recall) / (precision + recall + 1e-8)) }
}

/// One of the longest common subsequences, the one that `rouge` reads from its table: from the end, passing over a word of
/// `other` unless that shortens it.
fn common_subsequence<'t>(sentence: &[&'t str], other: &[&str]) -> Vec<&'t str> {
    let width = other.len();
    // The lengths up to a word of either, and whether the table was left upwards there: a bit a pair.
    let (mut above, mut row) = (vec![0_u32; width + 1], vec![0_u32; width + 1]);
    let mut leads_up = vec![0_u64; (sentence.len() * width).div_ceil(64)];
    for (i, word) in sentence.iter().enumerate() {
        for (j, counterpart) in other.iter().enumerate() {
            row[j + 1] = match word == counterpart {
                true => above[j] + 1,
                false => above[j + 1].max(row[j]),
            };
            let at = i * width + j;
            leads_up[at / 64] |= u64::from(above[j + 1] > row[j]) << (at % 64);
        }
        std::mem::swap(&mut above, &mut row);
    }
    let (mut i, mut j) = (sentence.len(), other.len());
    let mut common = Vec::new();
    while i > 0 && j > 0 {
        let at = (i - 1) * width + j - 1;
        if sentence[i - 1] == other[j - 1] {
            common.push(sentence[i - 1]);
            (i, j) = (i - 1, j - 1);
        } else if leads_up[at / 64] >> (at % 64) & 1 == 1 {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-7, "{found}, not {expected}");
    }

    #[test]
    fn repeated_words_count_once() {
        let rouge = rouge_set("the the the cat", "the cat sat").unwrap();
        assert_eq!(rouge.rouge1.precision, 1.0);
        assert_eq!(rouge.rouge1.recall, 2.0 / 3.0);
        assert_eq!(rouge.rouge2.precision, 0.5);
        near(rouge.rouge1.f, 0.8);
    }

    #[test]
    fn case_and_punctuation_count() {
        let rouge = rouge_set("Take aspirin, daily.", "take aspirin daily").unwrap();
        assert_eq!(rouge.rouge1.precision, 1.0 / 3.0);
    }

    #[test]
    fn rouge_l_unites_the_subsequences_of_all_sentences() {
        // The paper's example, §3.2: w1 w2 and w1 w3 w5 unite to four of five words.
        let hypothesis = "w1 w2 w6 w7 w8.w1 w3 w8 w9 w5";
        let rouge = rouge_set(hypothesis, "w1 w2 w3 w4 w5").unwrap();
        assert_eq!(rouge.rouge_l.recall, 4.0 / 5.0);
        assert_eq!(rouge.rouge_l.precision, 4.0 / 8.0);
    }

    #[test]
    fn long_sentences_take_a_bit_a_pair_and_endless_ones_are_refused() {
        let text = |count: usize, step: usize| {
            (0..count).map(|n| format!("w{} ", n * step)).collect::<String>()
        };
        let rouge = rouge_set(&text(3000, 1), &text(1000, 3)).unwrap();
        assert_eq!(rouge.rouge_l.recall, 1.0);
        let endless = "w ".repeat((1 << 16) + 1);
        let error = rouge_set(&endless, &endless).unwrap_err();
        assert!(matches!(error, MetricsError::Long { .. }), "{error}");
    }

    #[test]
    fn nothing_to_compare_is_refused() {
        for (hypothesis, reference) in [("", "a"), ("...", "a"), ("a", "")] {
            assert!(rouge_set(hypothesis, reference).is_err());
        }
        let error = rouge_set("a", "").unwrap_err();
        assert_eq!(error.to_string(), "ROUGE: no reference to compute it from");
        // A blank is a word: the empty one.
        assert_eq!(rouge_set(" ", " ").unwrap().rouge1.recall, 1.0);
    }
}
