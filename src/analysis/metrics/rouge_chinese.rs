//! ROUGE as the Python package `rouge-chinese` 1.0.3 has it, on jieba's words: n-grams as sets, all words in a row for ROUGE-L.

use super::MetricsError;
use super::rouge::Rouge;
use super::rouge_set::{both, n_gram_score, score, words_of_sentences};
use crate::text::{chinese_words, is_whitespace, lcs_length};

/// The ends of sentences, one pass each: the characters of the mark, and what may not follow it.
const ENDS: [(&[&str], &str); 4] = [
    (&["。！？?"], "”’"),
    (&[".", ".", ".", ".", ".", "."], "”’"),
    (&["…", "…"], "”’"),
    (&["。！？?", "”’"], "，。！？?"),
];

/// Unlike [`rouge_set`](super::rouge_set::rouge_set)'s, its ROUGE-L counts words as often as they come.
///
/// # Errors
/// A hypothesis or a reference that is empty.
pub fn rouge_chinese(hypothesis: &str, reference: &str) -> Result<Rouge, MetricsError> {
    let [hypothesis, reference] =
        [hypothesis, reference].map(|text| sentence_a_line(&chinese_words(text).join(" ")));
    let (hypothesis, reference) =
        both(&hypothesis, &reference, |text| words_of_sentences(text.split('\n')))?;
    let (hypothesis, reference) = (hypothesis.concat(), reference.concat());
    let common = lcs_length(&reference, &hypothesis);
    Ok(Rouge {
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
        let error = rouge_chinese("血氨", "").unwrap_err();
        assert_eq!(error.to_string(), "ROUGE: no reference to compute it from");
        assert!(rouge_chinese(" \n", "血氨").is_err());
    }
}
