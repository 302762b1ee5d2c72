//! A finished run in the formats of others. What a run does not know is left out, or is said to be unknown; an item without an answer is
//! marked as such.

mod attestation;
mod every_eval_ever;
mod facts;
mod identity;
mod inspect;
mod judge;
mod sample;
#[cfg(test)]
mod tests;

use std::io;

use clap::ValueEnum;
use serde::Serialize;

pub use self::attestation::check;
use super::metrics::MetricsError;
use crate::experiment::contents::Contents;
use crate::experiment::error::RunError;
use crate::experiment::results::Results;
use crate::fault::faults;
use crate::prompts::PromptError;

/// Whose format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Every Eval Ever's: figures and samples, below data/
    EveryEvalEver,
    /// A log of inspect_ai, as JSON
    Inspect,
    /// A statement of in-toto with the sums of the run's files, to be signed
    InToto,
    /// Answers to open questions as questions for a judge, on a scale from 1 to 10
    Judge,
    /// The same, on a scale of wrong and right
    JudgeRight,
}

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFile {
    /// Below the folder of the export; `/` between components.
    pub path: String,
    pub bytes: Vec<u8>,
}

faults! {
    #[derive(Debug, thiserror::Error)]
    pub enum ExportError {
        #[error("{run} has no item with gold, and a sample of Every Eval Ever has a score")]
        NoGold { run: String } => Usage, "`--as inspect` takes items without gold";
        #[error("{run} has no answers in words that a judge could hold against references")]
        NothingToJudge { run: String } => Usage, "give a run on open questions: --format open or pubmedqa-open";
        #[error("{run}, question {item}: there is no reference to hold its answer against")]
        NoReference { run: String, item: String } => Usage,
            "write an `answer` for every question, or leave those without out with --ids";
        #[error(transparent)]
        Prompt(error: #[from] PromptError) => error.blame(), error.hint();
        #[error("the run's time {text} is none: {reason}")]
        Time { text: String, reason: String } => Artefact;
        #[error("{path} is no statement of in-toto about an evaluation: {reason}")]
        NoStatement { path: String, reason: String } => Artefact, "`wardround export RUN --as in-toto` writes one";
        #[error("{path} is of another run: {difference}")]
        OtherRun { path: String, difference: String } => Artefact,
            "take the statement that was made of this run, or the run that it was made of";
        #[error(transparent)]
        Metrics(error: #[from] MetricsError) => error.blame(), error.hint();
        #[error(transparent)]
        Run(error: #[from] RunError) => error.blame(), error.hint();
        #[error(transparent)]
        Io(error: #[from] io::Error) => error.blame(), error.hint();
    }
}

impl Form {
    /// The files of a finished run. The same run gives the same bytes.
    ///
    /// # Errors
    /// A run that the format cannot say; see [`ExportError`].
    pub fn files(
        self,
        contents: &Contents,
        results: &Results,
    ) -> Result<Vec<ExportedFile>, ExportError> {
        match self {
            Form::EveryEvalEver => every_eval_ever::files(contents, results),
            Form::Inspect => Ok(vec![inspect::file(contents, results)?]),
            Form::InToto => Ok(vec![attestation::file(contents, results)?]),
            Form::Judge => Ok(vec![judge::file(contents, "steps")?]),
            Form::JudgeRight => Ok(vec![judge::file(contents, "right")?]),
        }
    }
}

/// A file's text: indented JSON, one newline at its end.
fn pretty(value: &impl Serialize) -> Result<Vec<u8>, ExportError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(io::Error::from)?;
    bytes.push(b'\n');
    Ok(bytes)
}
