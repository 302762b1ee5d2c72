//! Vectors of texts by an encoder, each computed once in a process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::Exemplars;
use crate::diagnosis::Failure;
use crate::panel::PanelError;

/// An encoder of texts: `[texts][width]`, each a function of its text alone.
pub type Encode = Box<dyn Fn(&[&str]) -> Result<Vec<Vec<f32>>, Failure> + Send>;

/// An encoder, and what it gave.
pub struct Vectors {
    known: Mutex<Known>,
}

struct Known {
    encode: Encode,
    vectors: HashMap<String, Vec<f32>>,
}

impl Vectors {
    pub fn new(encode: Encode) -> Vectors {
        Vectors { known: Mutex::new(Known { encode, vectors: HashMap::new() }) }
    }

    fn of(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Failure> {
        // Whoever failed left no vector half written.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unknown: Vec<&str> =
            texts.iter().copied().filter(|text| !known.vectors.contains_key(*text)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        let vectors = (known.encode)(&unknown)?;
        let named = unknown.into_iter().map(str::to_owned);
        known.vectors.extend(named.zip(vectors));
        let vector = |text: &&str| known.vectors.get(*text).cloned().unwrap_or_default();
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

/// What settings that compare vectors say without an encoder.
pub fn no_encoder() -> Failure {
    Failure::usage(
        "exemplars are to be compared by their vectors, and there is no encoder",
        "give --exemplar-encoder the folder of one, or --set choice=bm25",
    )
}
