//! Why an encoder, or a metric that is computed with one, cannot be loaded or cannot read a text.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::fault::faults;
use crate::ops::OpsError;

faults! {
    /// Why texts have no vectors or scores.
    #[derive(Debug, Error)]
    pub enum EncoderError {
        /// A file or folder that is missing, damaged, or of another model; the problem reads on from the path.
        #[error("{}{} {problem}", prefix(*card), path.display())]
        Checkpoint {
            /// The card whose files were looked for; `None` for an encoder of the user's own.
            card: Option<&'static str>,
            path: PathBuf,
            problem: String,
        } => Artefact, match card {
            Some(card) => format!(
                "run `wardround models fetch {card} --to DIR` on a machine with a network, copy DIR here and name it"
            ),
            None => "name a card of `wardround models ls`, or a complete copy of an encoder's repository, with encoder.toml in it".to_owned(),
        };
        /// The message names the path.
        #[error(transparent)]
        Read(error: #[from] io::Error) => error.blame();
        #[error("cannot tokenise {length} bytes of text: {problem}")]
        Text { length: usize, problem: String } => Artefact;
        #[error("the encoder's arithmetic failed: {}", message(.0))]
        Compute(error: #[from] candle_core::Error) => Machine;
        #[error(transparent)]
        Machine(error: #[from] OpsError) => error.blame(), error.hint();
        #[error(
            "the encoder computed numbers that are not finite (NaN or infinity) of text {place} of {of}"
        )]
        NotFinite { place: usize, of: usize } => Artefact;
        #[error("encoders do not run on {device}")]
        Device { device: String } => Usage, "name another device: --device cpu";
        #[error("{} makes no vectors of {dims} numbers; known: {known}", path.display())]
        Width { path: PathBuf, dims: usize, known: String } => Usage,
            "name one of these with --dims";
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
