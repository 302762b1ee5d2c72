//! What a figure cannot be computed from.

use thiserror::Error;

use crate::fault::faults;

faults! {
    #[derive(Clone, Debug, PartialEq, Error)]
    pub enum MetricsError {
        #[error("{figure}: no {what} to compute it from")]
        Empty { figure: &'static str, what: &'static str } => Usage;
        #[error("{figure}: two texts of {pairs} pairs of words; at most {most} are compared")]
        Long { figure: &'static str, pairs: usize, most: usize } => Usage;
        #[error("{system} and {other} have not run on the same datasets: one of them lacks {dataset}")]
        Datasets { system: String, other: String, dataset: String } => Usage,
            "run both on every dataset, or leave one dataset or system out";
    }
}
