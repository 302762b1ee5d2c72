//! Ranks texts by the terms that they share with a query: Okapi BM25, and the cosine of TF-IDF vectors.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use crate::text::porter_stem;

/// The defaults of rank-bm25's `BM25Okapi`: k1, b, and ε, the fraction of the mean weight that a term of most documents gets.
const K1: f64 = 1.5;
const B: f64 = 0.75;
const EPSILON: f64 = 0.25;

/// Stop words.
const STOP_WORD_LIST: &str = "a about above after again against all am an and any are as at be because been before being below \
    between both but by can could did do does doing don down during each few for from further had has have having he her here \
    hers herself him himself his how i if in into is it its itself just me more most my myself no nor not now of off on once \
    only or other our ours ourselves out over own s same she should so some such t than that the their theirs them themselves \
    then there these they this those through to too under until up very was we were what when where which while who whom why \
    will with would you your yours yourself yourselves";

/// By a word in lower case, its lemma, which is stemmed in its place.
pub type Lemmas = HashMap<String, String>;

/// The terms of a text for BM25: the stems of its words or their lemmas, in lower case, without stop words.
pub fn stems(text: &str, lemmas: &Lemmas) -> Vec<String> {
    static STOP_WORDS: LazyLock<HashSet<&str>> =
        LazyLock::new(|| STOP_WORD_LIST.split_ascii_whitespace().collect());
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphabetic());
    let words = words.filter(|word| !word.is_empty() && !STOP_WORDS.contains(word));
    words.map(|word| porter_stem(lemmas.get(word).map_or(word, String::as_str))).collect()
}

/// The terms of a text for TF-IDF: words of two or more characters in lower case, the default of scikit-learn's `TfidfVectorizer`.
pub fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.filter(|word| word.chars().nth(1).is_some()).map(str::to_owned).collect()
}

/// Term counts of documents. Terms are numbered in the order in which they first occur.
#[derive(Default)]
struct Counts {
    numbers: HashMap<String, usize>,
    /// For each document its terms' numbers in ascending order, with the count of each.
    documents: Vec<Vec<(usize, f64)>>,
    /// By a term's number, the number of documents that contain it.
    spread: Vec<f64>,
}

impl Counts {
    fn new(documents: impl Iterator<Item = Vec<String>>) -> Counts {
        let mut counts = Counts::default();
        for terms in documents {
            for term in &terms {
                let next = counts.numbers.len();
                counts.numbers.entry(term.clone()).or_insert(next);
            }
            counts.spread.resize(counts.numbers.len(), 0.0);
            let document = counts.count(&terms);
            document.iter().for_each(|(term, _)| counts.spread[*term] += 1.0);
            counts.documents.push(document);
        }
        counts
    }

    /// The numbers of those of these terms that are known, ascending, with the count of each.
    fn count(&self, terms: &[String]) -> Vec<(usize, f64)> {
        let mut numbers: Vec<usize> =
            terms.iter().filter_map(|term| self.numbers.get(term).copied()).collect();
        numbers.sort_unstable();
        let runs = numbers.chunk_by(|one, other| one == other);
        runs.map(|run| (run[0], run.len() as f64)).collect()
    }
}

/// Documents under Okapi BM25, with rank-bm25's weight of terms that more than half of them contain.
pub struct Bm25 {
    counts: Counts,
    lengths: Vec<f64>,
    /// By a term's number.
    weights: Vec<f64>,
    lemmas: Lemmas,
}

impl Bm25 {
    pub fn new<'a>(texts: impl Iterator<Item = &'a str>, lemmas: Lemmas) -> Bm25 {
        let counts = Counts::new(texts.map(|text| stems(text, &lemmas)));
        let total = counts.documents.len() as f64;
        let weight = |spread: &f64| libm::log(total - spread + 0.5) - libm::log(spread + 0.5);
        let mut weights: Vec<f64> = counts.spread.iter().map(weight).collect();
        let floor = EPSILON * weights.iter().sum::<f64>() / weights.len().max(1) as f64;
        weights.iter_mut().filter(|weight| **weight < 0.0).for_each(|weight| *weight = floor);
        let length = |document: &Vec<(usize, f64)>| document.iter().map(|(_, count)| count).sum();
        let lengths = counts.documents.iter().map(length).collect();
        Bm25 { counts, lengths, weights, lemmas }
    }

    /// The score of every document, in order.
    pub fn scores(&self, query: &str) -> Vec<f64> {
        let asked = self.counts.count(&stems(query, &self.lemmas));
        let mean = self.lengths.iter().sum::<f64>() / self.lengths.len().max(1) as f64;
        let score = |(document, length): (&Vec<(usize, f64)>, &f64)| {
            let terms = asked.iter().map(|(term, times)| {
                let count = value_of(document, *term);
                let saturated = count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / mean));
                times * self.weights[*term] * saturated
            });
            terms.sum()
        };
        self.counts.documents.iter().zip(&self.lengths).map(score).collect()
    }
}

/// Documents as TF-IDF unit vectors, with scikit-learn's default weights: ln((1 + n) / (1 + df)) + 1.
pub struct TfIdf {
    counts: Counts,
    weights: Vec<f64>,
    vectors: Vec<Vec<(usize, f64)>>,
}

impl TfIdf {
    pub fn new<'a>(texts: impl Iterator<Item = &'a str>) -> TfIdf {
        let counts = Counts::new(texts.map(words));
        let total = counts.documents.len() as f64;
        let weight = |spread: &f64| libm::log((1.0 + total) / (1.0 + spread)) + 1.0;
        let weights: Vec<f64> = counts.spread.iter().map(weight).collect();
        let vectors = counts.documents.iter().map(|document| weighed(document, &weights)).collect();
        TfIdf { counts, weights, vectors }
    }

    /// The cosine of every document with the query, in order.
    pub fn scores(&self, query: &str) -> Vec<f64> {
        let query = weighed(&self.counts.count(&words(query)), &self.weights);
        let cosine = |document: &Vec<(usize, f64)>| {
            query.iter().map(|(term, weight)| weight * value_of(document, *term)).sum()
        };
        self.vectors.iter().map(cosine).collect()
    }
}

/// The value of a term in a document, 0 where it is not in it.
fn value_of(document: &[(usize, f64)], term: usize) -> f64 {
    let found = document.binary_search_by_key(&term, |(term, _)| *term);
    found.map_or(0.0, |at| document[at].1)
}

fn weighed(document: &[(usize, f64)], weights: &[f64]) -> Vec<(usize, f64)> {
    let mut vector: Vec<(usize, f64)> =
        document.iter().map(|(term, count)| (*term, count * weights[*term])).collect();
    let length = vector.iter().map(|(_, weight)| weight * weight).sum::<f64>().sqrt();
    vector.iter_mut().for_each(|(_, weight)| *weight /= length.max(f64::MIN_POSITIVE));
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 4] = [
        "The cat sat on the mat.",
        "Dogs and cats are living together!",
        "A mat is a mat.",
        "Fever of 39 was treated with aspirin in the cat.",
    ];

    fn close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        let is_close = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-9;
        assert!(found.iter().zip(expected).all(is_close), "{found:?} against {expected:?}");
    }

    #[test]
    fn terms_are_stems_of_words_of_letters() {
        let none = Lemmas::new();
        assert_eq!(stems("The patients, treated 2x at 9!", &none), ["patient", "treat", "x"]);
        let lemmas = Lemmas::from([("diagnoses".to_owned(), "diagnosis".to_owned())]);
        assert_eq!(stems("Diagnoses", &lemmas), stems("diagnosis", &none));
        assert_ne!(stems("Diagnoses", &none), stems("diagnosis", &none));
        assert_eq!(words("A 39-year-old_x, I b"), ["39", "year", "old_x"]);
    }

    /// By rank-bm25 0.2.2 on the stems, and by scikit-learn.
    #[test]
    fn scores_are_those_of_the_published_implementations() {
        let bm25 = Bm25::new(TEXTS.into_iter(), Lemmas::new());
        let found = bm25.scores("The cat, mat, mat: fever?");
        close(&found, &[0.14627984309473635, 0.12793115197483912, 0.0, 0.8955180638238738]);
        let tfidf = TfIdf::new(TEXTS.into_iter());
        let found = tfidf.scores("A cat with a mat on a mat, fever");
        close(&found, &[0.4842641039614366, 0.0, 0.5388040912034111, 0.3489041796641082]);
        assert!(bm25.scores("unknown words").iter().all(|score| *score == 0.0));
        assert!(Bm25::new(std::iter::empty(), Lemmas::new()).scores("cat").is_empty());
    }
}
