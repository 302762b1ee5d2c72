//! Why runs cannot be compared.

use std::path::PathBuf;

use thiserror::Error;

use crate::analysis::metrics::MetricsError;
use crate::diagnosis::{Blame, Diagnosis};
use crate::experiment::difference::FieldDifference;
use crate::experiment::error::RunError;

#[derive(Debug, Error)]
pub enum ComparisonError {
    #[error("{} and {} ran over different files: {difference}", first.display(), other.display())]
    OtherFile { first: PathBuf, other: PathBuf, difference: FieldDifference },
    #[error("{} and {} ran over different items: {}", first.display(), other.display(), only.join(", "))]
    OtherItems {
        first: PathBuf,
        other: PathBuf,
        /// What either has alone.
        only: Vec<String>,
        n_shared: usize,
    },
    #[error("the runs share no item")]
    NothingShared,
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Metrics(#[from] MetricsError),
}

impl Diagnosis for ComparisonError {
    fn blame(&self) -> Blame {
        match self {
            ComparisonError::Run(error) => error.blame(),
            ComparisonError::Metrics(error) => error.blame(),
            _ => Blame::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ComparisonError::OtherFile { .. } => {
                Some("only runs over one and the same file are compared".to_owned())
            }
            ComparisonError::OtherItems { n_shared: 0, .. } | ComparisonError::NothingShared => {
                Some("only runs over the same items are compared".to_owned())
            }
            ComparisonError::OtherItems { n_shared, .. } => Some(format!(
                "--common compares the items that all of them ran, {n_shared} of these two"
            )),
            ComparisonError::Run(error) => error.hint(),
            ComparisonError::Metrics(error) => error.hint(),
        }
    }
}
