//! Why an encoder cannot be opened, or a text not embedded.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum EncoderError {
    #[error("there is no encoder's directory at {}", path.display())]
    NoDirectory { path: PathBuf },
    #[error("{} is missing", path.display())]
    Missing { path: PathBuf },
    #[error(
        "the encoder in {} has no weights: neither model.safetensors nor pytorch_model.bin is there",
        directory.display()
    )]
    NoWeights { directory: PathBuf },
    /// The message names the path.
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("{} does not describe an encoder: {source}", path.display())]
    Json {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("{}: `{field}` is `{value}`; supported: {supported}", path.display())]
    Unsupported {
        path: PathBuf,
        field: String,
        value: String,
        supported: &'static str,
    },
    #[error("{} has not the weights that config.json describes: {problem}", path.display())]
    Weights { path: PathBuf, problem: String },
    #[error("{} is no tokenizer for this encoder: {problem}", path.display())]
    Tokenizer { path: PathBuf, problem: String },
    #[error("cannot tokenise {length} bytes of text: {problem}")]
    Text { length: usize, problem: String },
    #[error("the encoder's arithmetic failed: {}", said(.0))]
    Compute(#[from] candle_core::Error),
}

impl EncoderError {
    /// Whether an artefact is missing or corrupt, rather than a name or a text at fault.
    pub fn is_missing_artefact(&self) -> bool {
        match self {
            EncoderError::NoDirectory { .. }
            | EncoderError::Read(_)
            | EncoderError::Unsupported { .. }
            | EncoderError::Text { .. }
            | EncoderError::Compute(_) => false,
            EncoderError::Missing { .. }
            | EncoderError::NoWeights { .. }
            | EncoderError::Json { .. }
            | EncoderError::Weights { .. }
            | EncoderError::Tokenizer { .. } => true,
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            EncoderError::NoDirectory { .. } => {
                "name the folder of an encoder, such as a copy of sentence-transformers/all-MiniLM-L6-v2"
            }
            EncoderError::Missing { .. } | EncoderError::NoWeights { .. } => {
                "copy the whole of the encoder's repository, subfolders too"
            }
            EncoderError::Json { .. }
            | EncoderError::Weights { .. }
            | EncoderError::Tokenizer { .. } => {
                "the files are damaged or not of one encoder: copy all of them again"
            }
            EncoderError::Read(_)
            | EncoderError::Unsupported { .. }
            | EncoderError::Text { .. }
            | EncoderError::Compute(_) => return None,
        };
        Some(hint.to_owned())
    }
}

/// What candle says, without the path that our own message names and the backtrace that RUST_BACKTRACE adds.
pub(crate) fn said(error: &candle_core::Error) -> String {
    match error {
        candle_core::Error::WithBacktrace { inner, .. }
        | candle_core::Error::WithPath { inner, .. } => said(inner),
        other => other.to_string(),
    }
}
