//! Embedding vectors of texts by an encoder, each computed once per process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::Exemplars;
use crate::diagnosis::Failure;
use crate::panel::PanelError;
pub use crate::retrieval::cosine;

/// An encoder of texts, which returns `[texts][width]`; each vector depends on its text alone.
pub type Encode = Box<dyn Fn(&[&str]) -> Result<Vec<Vec<f32>>, Failure> + Send>;

pub struct Vectors {
    cached: Mutex<(Encode, HashMap<String, Vec<f32>>)>,
}

impl Vectors {
    pub fn new(encode: Encode) -> Vectors {
        Vectors { cached: Mutex::new((encode, HashMap::new())) }
    }

    fn of(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Failure> {
        // A thread that panicked left no vector half written.
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let (encode, known) = &mut *cached;
        let mut new: Vec<&str> =
            texts.iter().copied().filter(|text| !known.contains_key(*text)).collect();
        if !new.is_empty() {
            new.sort_unstable();
            new.dedup();
            let vectors = encode(&new)?;
            known.extend(new.into_iter().map(str::to_owned).zip(vectors));
        }
        Ok(texts.iter().map(|text| known.get(*text).cloned().unwrap_or_default()).collect())
    }
}

impl Exemplars {
    /// The cosine of a text's vector with that of each other.
    pub fn likeness<'a>(
        &self,
        text: &'a str,
        others: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<f64>, PanelError> {
        let texts: Vec<&str> = std::iter::once(text).chain(others).collect();
        let vectors = self.vectors.as_ref().ok_or_else(no_encoder);
        let vectors = vectors.and_then(|vectors| vectors.of(&texts));
        let vectors = vectors?;
        let [first, others @ ..] = &vectors[..] else { return Ok(Vec::new()) };
        Ok(others.iter().map(|other| cosine(first, other)).collect())
    }
}

/// The error of settings that need an encoder where there is none.
pub fn no_encoder() -> Failure {
    Failure::usage(
        "exemplars are to be compared by their vectors, and there is no encoder",
        "give --exemplar-encoder the folder of one, or --set choice=tfidf",
    )
}
