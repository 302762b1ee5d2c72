//! Why runs cannot be compared.

use std::path::PathBuf;

use thiserror::Error;

use crate::analysis::metrics::MetricsError;
use crate::experiment::difference::FieldDifference;
use crate::experiment::error::RunError;
use crate::fault::faults;

const OTHER_ITEMS: &str = "only runs over the same items are compared";

faults! {
    #[derive(Debug, Error)]
    pub enum ComparisonError {
        #[error("{} and {} ran over different files: {difference}", first.display(), other.display())]
        OtherFile { first: PathBuf, other: PathBuf, difference: FieldDifference } => Usage,
            "only runs over one and the same file are compared";
        #[error("{} and {} ran over different items: {}", first.display(), other.display(), only.join(", "))]
        OtherItems {
            first: PathBuf,
            other: PathBuf,
            /// What either has alone.
            only: Vec<String>,
            n_shared: usize,
        } => Usage,
            match n_shared {
                0 => OTHER_ITEMS.to_owned(),
                _ => format!("--common compares the items that all of them ran, {n_shared} of these two"),
            };
        #[error("the runs share no item")]
        NothingShared => Usage, OTHER_ITEMS;
        #[error(transparent)]
        Run(error: #[from] RunError) => error.blame(), error.hint();
        #[error(transparent)]
        Metrics(error: #[from] MetricsError) => error.blame(), error.hint();
    }
}
