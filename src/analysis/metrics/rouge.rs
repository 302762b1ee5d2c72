//! What every ROUGE gives (Lin, 2004): the overlap of a hypothesis with its reference in words, pairs of words, and subsequences.
//!
//! `rouge_set` is the Python package `rouge` 1.0.1: n-grams as sets, words as they are written. `rouge_score` is the package `rouge-score`
//! 0.1.2 with its stemmer on: counted n-grams of stems in lower case. `rouge_chinese` is the package `rouge-chinese` 1.0.3 on jieba's words:
//! n-grams as sets, all words in a row for ROUGE-L.

use std::collections::HashSet;

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::over_runs;
use crate::text::{chinese_words, is_whitespace, lcs_length, porter_stem, split_words};

/// Each 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The share of the hypothesis that the reference has.
    pub precision: f64,
    /// The share of the reference that the hypothesis has.
    pub recall: f64,
    pub f: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rouge {
    pub rouge1: Score,
    pub rouge2: Score,
    pub rouge_l: Score,
}

/// `overlap / of`, and 0 of nothing.
fn share(overlap: usize, of: usize) -> f64 {
    over_runs::share(overlap, of).unwrap_or(0.0)
}

/// The most pairs of a word of either text, which are compared each with each: those of two texts of 65,536 words.
const MOST_PAIRS: usize = 1 << 32;

/// What the official scorer of MEDIQA-CORR 2024 takes; case counts, and punctuation stays with its word.
/// ROUGE-L counts the different words in the union of the longest common subsequences of all pairs of sentences.
///
/// `None` of a hypothesis or a reference that is empty, or has full stops alone, and of texts of more than 2³² pairs of words.
pub fn rouge_set(hypothesis: &str, reference: &str) -> Option<Rouge> {
    let [hypothesis, reference] = [hypothesis, reference].map(|text| words_of_sentences(text, '.'));
    let words = |sentences: &Sentences| sentences.iter().map(Vec::len).sum::<usize>();
    let pairs = words(&reference).saturating_mul(words(&hypothesis));
    // No sentence is without a word.
    if pairs == 0 || pairs > MOST_PAIRS {
        return None;
    }
    let mut union: HashSet<&str> = HashSet::new();
    for sentence in &reference {
        for other in &hypothesis {
            union.extend(common_subsequence(sentence, other));
        }
    }
    let (hypothesis, reference) = (hypothesis.concat(), reference.concat());
    let (words, wanted) = (n_grams(&hypothesis, 1), n_grams(&reference, 1));
    Some(Rouge {
        rouge1: n_gram_score(&hypothesis, &reference, 1),
        rouge2: n_gram_score(&hypothesis, &reference, 2),
        rouge_l: score(words.len(), wanted.len(), union.len()),
    })
}

type Sentences<'t> = Vec<Vec<&'t str>>;

/// The words of every sentence that is not empty. A blank one has one word, the empty one: so the package counts.
fn words_of_sentences(text: &str, end: char) -> Sentences<'_> {
    let sentences = text.split(end).filter(|sentence| !sentence.is_empty());
    let words = sentences.map(|sentence| {
        let words: Vec<&str> = split_words(sentence).collect();
        if words.is_empty() { vec![""] } else { words }
    });
    words.collect()
}

fn n_grams<'w, 't>(words: &'w [&'t str], n: usize) -> HashSet<&'w [&'t str]> {
    words.windows(n).collect()
}

fn n_gram_score(hypothesis: &[&str], reference: &[&str], n: usize) -> Score {
    let (found, wanted) = (n_grams(hypothesis, n), n_grams(reference, n));
    let overlap = found.intersection(&wanted).count();
    score(found.len(), wanted.len(), overlap)
}

/// The package keeps F from dividing by 0 with a small number.
fn score(found: usize, wanted: usize, overlap: usize) -> Score {
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

/// All 0 where either side has no letter or digit of ASCII.
pub fn rouge_score(hypothesis: &str, reference: &str) -> Rouge {
    let (hypothesis, reference) = (stems(hypothesis), stems(reference));
    let common = lcs_length(&reference, &hypothesis);
    Rouge {
        rouge1: stems_score(&hypothesis, &reference, 1),
        rouge2: stems_score(&hypothesis, &reference, 2),
        rouge_l: stemmed_score(hypothesis.len(), reference.len(), common),
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

fn stems_score(hypothesis: &[String], reference: &[String], n: usize) -> Score {
    let [found, wanted] = [hypothesis, reference].map(|stems| stems.windows(n).counts());
    let overlap =
        wanted.iter().map(|(n_gram, count)| found.get(n_gram).map_or(0, |other| *count.min(other)));
    let overlap = overlap.sum();
    stemmed_score(found.values().sum(), wanted.values().sum(), overlap)
}

fn stemmed_score(found: usize, wanted: usize, overlap: usize) -> Score {
    let (precision, recall) = (share(overlap, found), share(overlap, wanted));
    let f = match overlap {
        0 => 0.0,
        _ => 2.0 * precision * recall / (precision + recall),
    };
    Score { precision, recall, f }
}

/// The ends of sentences, one pass each: the characters of the mark, and what may not follow it.
const ENDS: [(&[&str], &str); 4] = [
    (&["。！？?"], "”’"),
    (&[".", ".", ".", ".", ".", "."], "”’"),
    (&["…", "…"], "”’"),
    (&["。！？?", "”’"], "，。！？?"),
];

/// Unlike [`rouge_set`]'s, its ROUGE-L counts words as often as they come. `None` of a hypothesis or a reference that is empty.
pub fn rouge_chinese(hypothesis: &str, reference: &str) -> Option<Rouge> {
    let [hypothesis, reference] =
        [hypothesis, reference].map(|text| sentence_a_line(&chinese_words(text).join(" ")));
    let [hypothesis, reference] =
        [&hypothesis, &reference].map(|text| words_of_sentences(text, '\n').concat());
    let common = lcs_length(&reference, &hypothesis);
    (!hypothesis.is_empty() && !reference.is_empty()).then(|| Rouge {
        rouge1: n_gram_score(&hypothesis, &reference, 1),
        rouge2: n_gram_score(&hypothesis, &reference, 2),
        rouge_l: score(hypothesis.len(), reference.len(), common),
    })
}

/// Sentences matter little here: a blank one counts as a word, the empty one.
fn sentence_a_line(text: &str) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for (mark, unlike) in ENDS {
        text = break_after(&text, mark, unlike);
    }
    while text.last().is_some_and(|last| is_whitespace(*last)) {
        text.pop();
    }
    text.into_iter().collect()
}

/// A mark that follows a break is passed over, as the package's regular expressions pass over it.
fn break_after(text: &[char], mark: &[&str], unlike: &str) -> Vec<char> {
    let mut lines = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let is_mark = rest.iter().zip(mark).all(|(it, any)| any.contains(*it));
        match rest.get(mark.len()) {
            Some(next) if is_mark && !unlike.contains(*next) => {
                lines.extend_from_slice(&rest[..mark.len()]);
                lines.extend(['\n', *next]);
                rest = &rest[mark.len() + 1..];
            }
            _ => {
                lines.push(first);
                rest = &rest[1..];
            }
        }
    }
    lines
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
        assert_eq!(rouge_set(&endless, &endless), None);
    }

    #[test]
    fn nothing_to_compare_is_refused() {
        for (hypothesis, reference) in [("", "a"), ("...", "a"), ("a", "")] {
            assert_eq!(rouge_set(hypothesis, reference), None);
        }
        // A blank is a word: the empty one.
        assert_eq!(rouge_set(" ", " ").unwrap().rouge1.recall, 1.0);
    }
}

#[cfg(test)]
mod rouge_score_tests {
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

#[cfg(test)]
mod rouge_chinese_tests {
    use super::*;

    #[test]
    fn repeated_words_count_in_rouge_l_alone() {
        let rouge = rouge_chinese("患者，患者", "患者").unwrap();
        assert_eq!(rouge.rouge1.precision, 0.5);
        assert_eq!(rouge.rouge_l.precision, 1.0 / 3.0);
        assert_eq!(rouge.rouge_l.recall, 1.0);
    }

    #[test]
    fn sentences_end_where_the_package_ends_them() {
        let text = "甲。乙！？丙......丁……戊。”己。";
        let lines = "甲。\n乙！\n？丙......\n丁……\n戊。”\n己。";
        assert_eq!(sentence_a_line(text), lines);
        assert_eq!(sentence_a_line("甲。 \n"), "甲。");
    }

    #[test]
    fn nothing_to_compare_is_refused() {
        assert_eq!(rouge_chinese("血氨", ""), None);
        assert_eq!(rouge_chinese(" \n", "血氨"), None);
    }
}
