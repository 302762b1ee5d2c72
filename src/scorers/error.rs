//! Why a scorer cannot be loaded, or a pair not scored.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::encoder::said;

#[derive(Debug, Error)]
pub enum ScorerError {
    #[error("the weights of {card} are not here: there is no directory {}", path.display())]
    NoDirectory { path: PathBuf, card: &'static str },
    #[error("{card} is not whole: {} is missing", path.display())]
    Missing { path: PathBuf, card: &'static str },
    #[error(
        "the weights of {card} are not here: {} has neither model.safetensors nor pytorch_model.bin",
        directory.display()
    )]
    NoWeights {
        directory: PathBuf,
        card: &'static str,
    },
    /// The message names the path.
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("{} does not describe {card}: {source}", path.display())]
    Json {
        path: PathBuf,
        card: &'static str,
        source: serde_json::Error,
    },
    #[error("{} is not of {card}: `{field}` is `{value}`, not {expected}", path.display())]
    Unsupported {
        path: PathBuf,
        card: &'static str,
        field: &'static str,
        value: String,
        expected: String,
    },
    #[error("{} has not the weights that config.json describes: {problem}", path.display())]
    Weights {
        path: PathBuf,
        card: &'static str,
        problem: String,
    },
    #[error("{} is no tokenizer of {card}: {problem}", path.display())]
    Tokenizer {
        path: PathBuf,
        card: &'static str,
        problem: String,
    },
    #[error("cannot tokenise {length} bytes of text: {problem}")]
    Text { length: usize, problem: String },
    #[error("the scorer's arithmetic failed: {}", said(.0))]
    Compute(#[from] candle_core::Error),
}

impl ScorerError {
    /// Whether an artefact is missing or corrupt, rather than a name or a text at fault.
    pub fn is_missing_artefact(&self) -> bool {
        self.card().is_some()
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        let card = self.card()?;
        Some(format!(
            "run `wardround models fetch {card} --to DIR` where there is a network, carry DIR here and name it"
        ))
    }

    /// The card whose files would put it right.
    fn card(&self) -> Option<&'static str> {
        match self {
            ScorerError::NoDirectory { card, .. }
            | ScorerError::Missing { card, .. }
            | ScorerError::NoWeights { card, .. }
            | ScorerError::Json { card, .. }
            | ScorerError::Unsupported { card, .. }
            | ScorerError::Weights { card, .. }
            | ScorerError::Tokenizer { card, .. } => Some(card),
            ScorerError::Read(_) | ScorerError::Text { .. } | ScorerError::Compute(_) => None,
        }
    }
}
