//! Soft alignment: which sentence of a note a model's opinion means (MedGuards, §3.2).

use std::collections::HashSet;

use super::{Language, SequenceMatcher, chinese_words, normalise_arabic};

/// A sentence by its place, from 0, and how alike it is to the opinion: above 0, up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    pub index: usize,
    pub ratio: f64,
}

/// The sentence that is most like `opinion`, the first of several; `None` where none is alike at all. As the authors' code has it: by matching
/// blocks of characters, where Eq. 4 has the longest common subsequence; in Chinese by the Jaccard index of the words.
pub fn align<S: AsRef<str>>(sentences: &[S], opinion: &str, language: Language) -> Option<Match> {
    let sentences = sentences.iter().map(AsRef::as_ref);
    let characters = |text: &str| -> Vec<char> {
        match language {
            Language::Arabic => normalise_arabic(text).chars().collect(),
            Language::English | Language::Chinese => text.chars().collect(),
        }
    };
    if language == Language::Chinese {
        let opinion: HashSet<&str> = chinese_words(opinion).into_iter().collect();
        return best(sentences.map(|sentence| jaccard(&chinese_words(sentence), &opinion)));
    }
    let opinion = characters(opinion);
    let matcher = SequenceMatcher::new(&opinion);
    best(sentences.map(|sentence| matcher.ratio(&characters(sentence))))
}

/// The first of the greatest that are above 0.
fn best(ratios: impl Iterator<Item = f64>) -> Option<Match> {
    ratios.enumerate().fold(None, |best: Option<Match>, (index, ratio)| {
        let beaten = ratio > best.map_or(0.0, |best| best.ratio);
        if beaten { Some(Match { index, ratio }) } else { best }
    })
}

/// The share of all words that both sides have; 0 where neither has any.
fn jaccard(words: &[&str], others: &HashSet<&str>) -> f64 {
    let words: HashSet<&str> = words.iter().copied().collect();
    let common = words.intersection(others).count();
    match words.len() + others.len() - common {
        0 => 0.0,
        all => common as f64 / all as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(sentences: &[&str], opinion: &str, language: Language) -> Option<usize> {
        align(sentences, opinion, language).map(|found| found.index)
    }

    #[test]
    fn the_most_alike_sentence_is_meant() {
        let sentences = ["He has a cough.", "Amoxicillin was given.", "He recovered."];
        let opinion = "Amoxicillin is given to him.";
        assert_eq!(index(&sentences, opinion, Language::English), Some(1));
        assert_eq!(index(&sentences, sentences[2], Language::English), Some(2));
    }

    #[test]
    fn of_equals_the_first_is_meant() {
        let sentences = ["No fever.", "No cough.", "No fever."];
        assert_eq!(index(&sentences, "No fever.", Language::English), Some(0));
    }

    #[test]
    fn what_is_like_no_sentence_means_none() {
        for language in [Language::English, Language::Chinese, Language::Arabic] {
            assert_eq!(index(&["abc", "def"], "xyz", language), None);
            assert_eq!(index(&[], "xyz", language), None);
            assert_eq!(index(&["abc"], "", language), None);
        }
    }

    #[test]
    fn arabic_is_compared_without_its_vowel_signs() {
        let sentences = ["الجرعة كبيرة", "الجُرْعَةُ صَغيرة"];
        let found = align(&sentences, "الجرعه صغيره", Language::Arabic);
        assert_eq!(found, Some(Match { index: 1, ratio: 1.0 }));
    }

    #[test]
    fn chinese_is_compared_by_words() {
        let sentences = ["患者发热三天。", "应限制蛋白质摄入。"];
        let found = align(&sentences, "应限制苯丙氨酸摄入。", Language::Chinese);
        assert_eq!(found.map(|found| found.index), Some(1));
    }
}
