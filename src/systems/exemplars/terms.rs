//! Texts as TF-IDF unit vectors, by which they are compared.

use std::collections::HashMap;

/// Documents as TF-IDF unit vectors, with scikit-learn's default words and weights: ln((1 + n) / (1 + df)) + 1.
pub struct TfIdf {
    /// The numbers of the terms, in the order in which they first occur.
    numbers: HashMap<String, usize>,
    weights: Vec<f64>,
    /// Of each document its terms' numbers in ascending order, each with its value.
    vectors: Vec<Vec<(usize, f64)>>,
}

impl TfIdf {
    pub fn new<'a>(texts: impl Iterator<Item = &'a str>) -> TfIdf {
        let mut numbers = HashMap::new();
        // In how many documents each term is.
        let mut spread: Vec<f64> = Vec::new();
        let mut documents = Vec::new();
        for text in texts {
            let terms = words(text);
            for term in &terms {
                let next = numbers.len();
                numbers.entry(term.clone()).or_insert(next);
            }
            spread.resize(numbers.len(), 0.0);
            let document = counts(&numbers, &terms);
            document.iter().for_each(|(term, _)| spread[*term] += 1.0);
            documents.push(document);
        }
        let total = documents.len() as f64;
        let weight = |spread: &f64| libm::log((1.0 + total) / (1.0 + spread)) + 1.0;
        let weights: Vec<f64> = spread.iter().map(weight).collect();
        let vectors = documents.iter().map(|document| weighed(document, &weights)).collect();
        TfIdf { numbers, weights, vectors }
    }

    /// The cosine of every document with the query, in order.
    pub fn scores(&self, query: &str) -> Vec<f64> {
        let query = weighed(&counts(&self.numbers, &words(query)), &self.weights);
        let cosine = |document: &Vec<(usize, f64)>| {
            query.iter().map(|(term, weight)| weight * value_of(document, *term)).sum()
        };
        self.vectors.iter().map(cosine).collect()
    }
}

/// The terms of a text: words of two or more characters in lower case.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.filter(|word| word.chars().nth(1).is_some()).map(str::to_owned).collect()
}

/// The numbers of those of these terms that are known, ascending, with the count of each.
fn counts(known: &HashMap<String, usize>, terms: &[String]) -> Vec<(usize, f64)> {
    let mut numbers: Vec<usize> =
        terms.iter().filter_map(|term| known.get(term).copied()).collect();
    numbers.sort_unstable();
    let runs = numbers.chunk_by(|one, other| one == other);
    runs.map(|run| (run[0], run.len() as f64)).collect()
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

    /// By scikit-learn.
    #[test]
    fn scores_are_those_of_the_published_implementation() {
        assert_eq!(words("A 39-year-old_x, I b"), ["39", "year", "old_x"]);
        let found = TfIdf::new(TEXTS.into_iter()).scores("A cat with a mat on a mat, fever");
        let expected = [0.4842641039614366, 0.0, 0.5388040912034111, 0.3489041796641082];
        assert_eq!(found.len(), expected.len());
        let is_close = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-9;
        assert!(found.iter().zip(&expected).all(is_close), "{found:?} against {expected:?}");
        assert!(TfIdf::new(std::iter::empty()).scores("cat").is_empty());
    }
}
