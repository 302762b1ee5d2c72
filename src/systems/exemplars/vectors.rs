//! Embedding vectors of texts by an encoder, each computed once per process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::Exemplars;
use crate::diagnosis::Failure;
use crate::panel::PanelError;

/// An encoder of texts, which returns `[texts][width]`; each vector depends on its text alone.
pub type Encode = Box<dyn Fn(&[&str]) -> Result<Vec<Vec<f32>>, Failure> + Send>;

/// An encoder, and a cache of its vectors.
pub struct Vectors {
    cached: Mutex<Cached>,
}

struct Cached {
    encode: Encode,
    vectors: HashMap<String, Vec<f32>>,
}

impl Vectors {
    pub fn new(encode: Encode) -> Vectors {
        Vectors { cached: Mutex::new(Cached { encode, vectors: HashMap::new() }) }
    }

    fn of(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Failure> {
        // A thread that panicked left no vector half written.
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new: Vec<&str> =
            texts.iter().copied().filter(|text| !cached.vectors.contains_key(*text)).collect();
        if !new.is_empty() {
            new.sort_unstable();
            new.dedup();
            let vectors = (cached.encode)(&new)?;
            cached.vectors.extend(new.into_iter().map(str::to_owned).zip(vectors));
        }
        let vector = |text: &&str| cached.vectors.get(*text).cloned().unwrap_or_default();
        Ok(texts.iter().map(vector).collect())
    }
}

impl Exemplars {
    /// The vectors of these texts, in their order.
    ///
    /// # Errors
    /// No encoder; a text that cannot be encoded.
    pub fn vectors(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, PanelError> {
        let vectors = self.vectors.as_ref().ok_or_else(|| PanelError::Exemplars(no_encoder()))?;
        vectors.of(texts).map_err(PanelError::Exemplars)
    }
}

/// The error of settings that need an encoder where there is none.
pub fn no_encoder() -> Failure {
    Failure::usage(
        "exemplars are to be compared by their vectors, and there is no encoder",
        "give --exemplar-encoder the folder of one, or --set choice=bm25",
    )
}
