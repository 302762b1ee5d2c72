//! An encoder for tests whose vectors are a function of the words alone: each word adds to two of sixteen numbers.

use super::embed::Embed;
use crate::diagnosis::Failure;
use crate::encoder::{Document, Embedded};
use crate::random::mix;

pub(crate) const WIDTH: usize = 16;

pub(crate) struct FakeEncoder {
    pub(crate) name: &'static str,
    /// What it gives for a text with this word.
    pub(crate) broken: Option<(&'static str, f32)>,
}

impl FakeEncoder {
    pub(crate) fn new() -> FakeEncoder {
        FakeEncoder { name: "fake", broken: None }
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        if let Some((_, number)) = self.broken.filter(|(word, _)| text.contains(word)) {
            return vec![number; WIDTH];
        }
        let mut vector = [0.01; WIDTH];
        let lower = text.to_lowercase();
        let words = lower.split(|character: char| !character.is_alphanumeric());
        for word in words.filter(|word| !word.is_empty()) {
            let hash = word.bytes().fold(7, |hash, byte| mix(hash ^ u64::from(byte)));
            vector[hash as usize % WIDTH] += 1.0;
            vector[(hash >> 8) as usize % WIDTH] -= 0.25;
        }
        let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
        vector.iter().map(|number| number / length).collect()
    }
}

impl Embed for FakeEncoder {
    fn identity(&self) -> Result<toml::Table, Failure> {
        Ok([("weights_sha256".to_owned(), toml::Value::from(self.name))].into_iter().collect())
    }

    fn is_normalised(&self) -> bool {
        true
    }

    fn width(&self) -> usize {
        WIDTH
    }

    fn embed(&self, documents: &[Document<'_>]) -> Result<Vec<Vec<f32>>, Failure> {
        let vector =
            |document: &Document<'_>| self.vector(&format!("{} {}", document.title, document.text));
        Ok(documents.iter().map(vector).collect())
    }

    fn embed_queries(&self, queries: &[&str]) -> Result<Embedded, Failure> {
        let vectors = queries.iter().map(|query| self.vector(query)).collect();
        Ok(Embedded { vectors, cut: queries.iter().map(|query| query.len() > 500).collect() })
    }
}
