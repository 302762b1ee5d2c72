//! Why an encoder, or a metric that is computed with one, cannot be loaded or cannot read a text.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::diagnosis::{Blame, Diagnosis};
use crate::ops::OpsError;

/// Why texts have no vectors or scores.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "what each means is its message")]
pub enum EncoderError {
    /// A file or folder that is missing, damaged, or of another model; the problem reads on from the path.
    #[error("{}{} {problem}", prefix(*card), path.display())]
    Checkpoint {
        /// The card whose files were looked for; `None` for an encoder of the user's own.
        card: Option<&'static str>,
        path: PathBuf,
        problem: String,
    },
    /// The message names the path.
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("cannot tokenise {length} bytes of text: {problem}")]
    Text { length: usize, problem: String },
    #[error("the encoder's arithmetic failed: {}", message(.0))]
    Compute(#[from] candle_core::Error),
    #[error(transparent)]
    Machine(#[from] OpsError),
    #[error(
        "the encoder computed numbers that are not finite (NaN or infinity) of text {place} of {of}"
    )]
    NotFinite { place: usize, of: usize },
    #[error("encoders do not run on {device}")]
    Device { device: String },
    #[error("{} makes no vectors of {dims} numbers; known: {known}", path.display())]
    Width { path: PathBuf, dims: usize, known: String },
}

impl Diagnosis for EncoderError {
    fn blame(&self) -> Blame {
        match self {
            EncoderError::Read(error) => error.blame(),
            EncoderError::Compute(_) => Blame::Machine,
            EncoderError::Machine(error) => error.blame(),
            EncoderError::Device { .. } | EncoderError::Width { .. } => Blame::Usage,
            EncoderError::Checkpoint { .. }
            | EncoderError::Text { .. }
            | EncoderError::NotFinite { .. } => Blame::Artefact,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            EncoderError::Checkpoint { card: Some(card), .. } => Some(format!(
                "run `wardround models fetch {card} --to DIR` on a machine with a network, copy DIR here and name it"
            )),
            EncoderError::Checkpoint { card: None, .. } => Some(
                "name a card of `wardround models ls`, or a complete copy, subfolders included, of an encoder's repository \
                 such as sentence-transformers/all-MiniLM-L6-v2"
                    .to_owned(),
            ),
            EncoderError::Device { .. } => {
                Some("name another device for them: --retrieval-device cpu".to_owned())
            }
            EncoderError::Width { .. } => Some("name one of these with --dims".to_owned()),
            EncoderError::Machine(error) => error.hint(),
            _ => None,
        }
    }
}

fn prefix(card: Option<&str>) -> String {
    card.map(|card| format!("{card}: ")).unwrap_or_default()
}

/// candle's message without the path, which our own message names, and without the backtrace that RUST_BACKTRACE adds.
pub(super) fn message(error: &candle_core::Error) -> String {
    match error {
        candle_core::Error::WithBacktrace { inner, .. }
        | candle_core::Error::WithPath { inner, .. } => message(inner),
        other => other.to_string(),
    }
}
