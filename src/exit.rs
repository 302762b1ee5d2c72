//! Every way a command ends, and the exit code of each: 0 ok, 1 finished but something failed, 2 usage or
//! configuration, 3 a missing or corrupt artefact, 130 interrupted.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use thiserror::Error;

use crate::analysis::comparison::ComparisonError;
use crate::analysis::mediqa_corr::SubmissionError;
use crate::analysis::metrics::MetricsError;
use crate::analysis::rating::RatingError;
use crate::console;
use crate::data::DataError;
use crate::encoder::EncoderError;
use crate::engine::EngineError;
use crate::experiment::error::{Blame, RunError};
use crate::experiment::merge::MergeError;
use crate::experiment::recipe::RecipeError;
use crate::hub::HubError;
use crate::model::ModelError;
use crate::ops::OpsError;
use crate::ops::checkpoint::CheckpointError;
use crate::panel::PanelError;
use crate::prompts::PromptError;
use crate::report::ReportError;
use crate::synth::SynthError;
use crate::systems::settings::SettingsError;

const OUTCOME: u8 = 1;
const USAGE: u8 = 2;
const ARTEFACT: u8 = 3;
const INTERRUPTED: u8 = 130;

/// Why a command did not end well.
#[derive(Debug, Error)]
pub enum Failure {
    #[error("{message}")]
    Usage {
        message: String,
        hint: Option<String>,
    },
    /// The command did its work, and the outcome is not what was hoped for.
    #[error("{message}")]
    Outcome {
        message: String,
        hint: Option<String>,
    },
    /// A signal ended a run that can go on.
    #[error("interrupted after {items} of {total} items")]
    Interrupted {
        items: u64,
        total: u64,
        directory: PathBuf,
    },
    /// A file does not say what it was noted to say.
    #[error("{0}")]
    Mismatch(String),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error(transparent)]
    Panel(#[from] PanelError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Comparison(#[from] ComparisonError),
    #[error(transparent)]
    Rating(#[from] RatingError),
    #[error(transparent)]
    Submission(#[from] SubmissionError),
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    #[error(transparent)]
    Encoder(#[from] EncoderError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Synth(#[from] SynthError),
    #[error(transparent)]
    Ops(#[from] OpsError),
    #[error("cannot start the pool of threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Failure {
    pub fn usage(message: impl Into<String>, hint: &str) -> Failure {
        Failure::Usage {
            message: message.into(),
            hint: Some(hint.to_owned()),
        }
    }

    /// Decided here and nowhere else.
    fn code(&self) -> u8 {
        match self {
            Failure::Outcome { .. } => OUTCOME,
            Failure::Mismatch(_) => ARTEFACT,
            Failure::Interrupted { .. } | Failure::Panel(PanelError::Interrupted) => INTERRUPTED,
            Failure::Panel(error) => match error {
                PanelError::Model(_)
                | PanelError::Tokenizer(_)
                | PanelError::Chat(_)
                | PanelError::Generation(_)
                | PanelError::NoEndOfTurn { .. } => ARTEFACT,
                PanelError::Hub(error) => hub_code(error),
                PanelError::Run(error) => blame_code(error.blame()),
                _ => USAGE,
            },
            Failure::Hub(error) => hub_code(error),
            Failure::Run(error) => blame_code(error.blame()),
            Failure::Comparison(ComparisonError::Run(error)) => blame_code(error.blame()),
            Failure::Rating(RatingError::Run(error)) => blame_code(error.blame()),
            Failure::Merge(error) => blame_code(error.blame()),
            Failure::Recipe(RecipeError::Run(error)) => blame_code(error.blame()),
            Failure::Recipe(RecipeError::Merge(error)) => blame_code(error.blame()),
            Failure::Recipe(RecipeError::Encoder(_)) | Failure::Encoder(_) => ARTEFACT,
            _ => USAGE,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Failure::Usage { hint, .. } | Failure::Outcome { hint, .. } => hint.clone(),
            Failure::Interrupted { directory, .. } => Some(resume(directory)),
            Failure::Data(error) => error.hint(),
            Failure::Settings(error) => error.hint(),
            Failure::Prompt(error) => error.hint(),
            Failure::Hub(error) => error.hint(),
            Failure::Panel(error) => error.hint(),
            Failure::Run(error) => error.hint(),
            Failure::Comparison(error) => error.hint(),
            Failure::Rating(error) => error.hint(),
            Failure::Submission(error) => error.hint(),
            Failure::Metrics(error) => error.hint(),
            Failure::Merge(error) => error.hint(),
            Failure::Recipe(error) => error.hint(),
            Failure::Encoder(error) => error.hint(),
            Failure::Report(error) => error.hint(),
            Failure::Ops(error) => error.hint(),
            _ => None,
        }
    }

    fn is_broken_pipe(&self) -> bool {
        matches!(self, Failure::Io(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

/// The command line that takes up the run in `directory`.
pub fn resume(directory: &Path) -> String {
    format!(
        "`wardround run --resume --out {}` goes on",
        directory.display()
    )
}

fn hub_code(error: &HubError) -> u8 {
    if error.is_missing_artefact() {
        ARTEFACT
    } else {
        USAGE
    }
}

fn blame_code(blame: Blame) -> u8 {
    match blame {
        Blame::Artefact => ARTEFACT,
        Blame::Usage | Blame::Machine => USAGE,
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Failure {
        Failure::Panel(error.into())
    }
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Failure {
        Failure::Panel(ModelError::from(error).into())
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        Failure::Panel(error.into())
    }
}

/// Ends the process where it stands, for a second interrupt: every line that was counted is durable.
#[expect(clippy::exit, reason = "nothing is left to unwind for")]
pub fn at_once() -> ! {
    std::process::exit(i32::from(INTERRUPTED))
}

/// Tells stderr what went wrong, where, and what may help; a reader of stdout that went away is no error.
pub fn report(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            console::note(format!("error: {failure}"));
            if let Some(hint) = failure.hint() {
                console::note(format!("hint: {hint}"));
            }
            ExitCode::from(failure.code())
        }
    }
}
