//! Why a sheet cannot be made, or its ratings not be read.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::BEST;
use crate::analysis::comparison::ComparisonError;
use crate::analysis::metrics::MetricsError;
use crate::experiment::error::RunError;
use crate::fault::faults;

const EXPORT_AGAIN: &str = "export the file again from the page";

faults! {
    #[derive(Debug, Error)]
    pub enum RatingError {
        #[error("{} exists and is not an empty directory", path.display())]
        OutputTaken { path: PathBuf } => Usage, "choose another `--out`";
        #[error("{} and {} are the same run", first.display(), other.display())]
        SameRun { first: PathBuf, other: PathBuf } => Usage, "name every run once";
        #[error("there is nothing to rate: no item ended without an error in every run")]
        NothingToRate => Usage, "`wardround resume DIR` tries items again that errored";
        #[error("{} is no {what}: {reason}", path.display())]
        NotRead { path: PathBuf, what: &'static str, reason: String } => Usage,
            "`rate export` writes the key, the page that it writes exports the raters' files";
        #[error("{} rates sheet {found}, the key is that of sheet {expected}", path.display())]
        OtherSheet { path: PathBuf, expected: String, found: String } => Usage,
            "score a rater's file with the key that was written beside the page";
        #[error("{}: the score of entry {code} is {score}, not one of 0 to {BEST}", path.display())]
        Score { path: PathBuf, code: String, score: i64 } => Usage, EXPORT_AGAIN;
        #[error("{}: entry {code} has verdicts on {found} sources, the sheet shows {expected}", path.display())]
        Citations { path: PathBuf, code: String, found: usize, expected: usize } => Usage, EXPORT_AGAIN;
        #[error("{}: the sheet has no entry {code}", path.display())]
        UnknownEntry { path: PathBuf, code: String } => Usage, EXPORT_AGAIN;
        #[error("{}: entry {code} comes twice", path.display())]
        RepeatedEntry { path: PathBuf, code: String } => Usage, EXPORT_AGAIN;
        #[error("{} does not say who rated", path.display())]
        NoRater { path: PathBuf } => Usage,
            "fill in the rater's initials on the page, and export again";
        #[error("{} and {} are both of rater {rater}", first.display(), other.display())]
        SameRater { rater: String, first: PathBuf, other: PathBuf } => Usage,
            "give one file a rater, and every rater initials of their own";
        #[error("{} is none of the runs that were rated", path.display())]
        NotRated { path: PathBuf } => Usage,
            "`--join` takes the run directories that were exported";
        #[error("{} holds the ratings of another sheet, {sheet}", path.display())]
        JoinedBefore { path: PathBuf, sheet: String } => Usage,
            "move it away to join these ratings";
        #[error("{} holds the ratings of {} too, which would be lost", path.display(), raters.join(", "))]
        RatersLost { path: PathBuf, raters: Vec<String> } => Usage,
            "score the files of all raters together";
        #[error("{} holds the ratings of another run", path.display())]
        OtherRun { path: PathBuf } => Usage, "remove it, and join its own ratings";
        #[error(transparent)]
        Run(error: #[from] RunError) => error.blame(), error.hint();
        #[error(transparent)]
        Comparison(error: #[from] ComparisonError) => error.blame(), error.hint();
        #[error(transparent)]
        Metrics(error: #[from] MetricsError) => error.blame(), error.hint();
        #[error(transparent)]
        Io(error: #[from] io::Error) => error.blame();
    }
}
