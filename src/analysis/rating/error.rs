//! Why a sheet cannot be made, or its ratings not be read.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::BEST;
use crate::analysis::comparison::ComparisonError;
use crate::analysis::metrics::MetricsError;
use crate::diagnosis::{Blame, Diagnosis};
use crate::experiment::error::RunError;

#[derive(Debug, Error)]
pub enum RatingError {
    #[error("{} exists and is not an empty directory", path.display())]
    OutputTaken { path: PathBuf },
    #[error("{} and {} are the same run", first.display(), other.display())]
    SameRun { first: PathBuf, other: PathBuf },
    #[error("there is nothing to rate: no item ended without an error in every run")]
    NothingToRate,
    #[error("{} is no {what}: {reason}", path.display())]
    NotRead { path: PathBuf, what: &'static str, reason: String },
    #[error("{} rates sheet {found}, the key is that of sheet {expected}", path.display())]
    OtherSheet { path: PathBuf, expected: String, found: String },
    #[error("{}: the score of entry {code} is {score}, not one of 0 to {BEST}", path.display())]
    Score { path: PathBuf, code: String, score: i64 },
    #[error("{}: entry {code} has verdicts on {found} sources, the sheet shows {expected}", path.display())]
    Citations { path: PathBuf, code: String, found: usize, expected: usize },
    #[error("{}: the sheet has no entry {code}", path.display())]
    UnknownEntry { path: PathBuf, code: String },
    #[error("{}: entry {code} comes twice", path.display())]
    RepeatedEntry { path: PathBuf, code: String },
    #[error("{} does not say who rated", path.display())]
    NoRater { path: PathBuf },
    #[error("{} and {} are both of rater {rater}", first.display(), other.display())]
    SameRater { rater: String, first: PathBuf, other: PathBuf },
    #[error("{} is none of the runs that were rated", path.display())]
    NotRated { path: PathBuf },
    #[error("{} holds the ratings of another sheet, {sheet}", path.display())]
    JoinedBefore { path: PathBuf, sheet: String },
    #[error("{} holds the ratings of {} too, which would be lost", path.display(), raters.join(", "))]
    RatersLost { path: PathBuf, raters: Vec<String> },
    #[error("{} holds the ratings of another run", path.display())]
    OtherRun { path: PathBuf },
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Comparison(#[from] ComparisonError),
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Diagnosis for RatingError {
    fn blame(&self) -> Blame {
        match self {
            RatingError::Run(error) => error.blame(),
            RatingError::Comparison(error) => error.blame(),
            RatingError::Metrics(error) => error.blame(),
            RatingError::Io(error) => error.blame(),
            _ => Blame::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            RatingError::OutputTaken { .. } => "choose another `--out`",
            RatingError::SameRun { .. } => "name every run once",
            RatingError::NothingToRate => "`wardround resume DIR` tries items again that errored",
            RatingError::NotRead { .. } => {
                "`rate export` writes the key, the page that it writes exports the raters' files"
            }
            RatingError::OtherSheet { .. } => {
                "score a rater's file with the key that was written beside the page"
            }
            RatingError::Score { .. }
            | RatingError::Citations { .. }
            | RatingError::UnknownEntry { .. }
            | RatingError::RepeatedEntry { .. } => "export the file again from the page",
            RatingError::NoRater { .. } => {
                "fill in the rater's initials on the page, and export again"
            }
            RatingError::SameRater { .. } => {
                "give one file a rater, and every rater initials of their own"
            }
            RatingError::NotRated { .. } => "`--join` takes the run directories that were exported",
            RatingError::JoinedBefore { .. } => "move it away to join these ratings",
            RatingError::RatersLost { .. } => "score the files of all raters together",
            RatingError::OtherRun { .. } => "remove it, and join its own ratings",
            RatingError::Run(error) => return error.hint(),
            RatingError::Comparison(error) => return error.hint(),
            RatingError::Metrics(error) => return error.hint(),
            RatingError::Io(_) => return None,
        };
        Some(hint.to_owned())
    }
}
