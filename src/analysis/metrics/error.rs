//! What a figure cannot be computed from.

use thiserror::Error;

use crate::diagnosis::{Blame, Diagnosis};
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MetricsError {
    #[error("{figure}: no {what} to compute it from")]
    Empty { figure: &'static str, what: &'static str },
    #[error("{figure}: {expected} {what} on one side, {found} on the other")]
    Unequal { figure: &'static str, what: &'static str, expected: usize, found: usize },
    #[error("{figure}: value {position}, counted from 0, is {value}; {wanted}")]
    Value { figure: &'static str, position: usize, value: f64, wanted: &'static str },
    #[error("{figure}: two texts of {pairs} pairs of words; at most {most} are compared")]
    Long { figure: &'static str, pairs: usize, most: usize },
    #[error("{system} and {other} have not run on the same datasets: one of them lacks {dataset}")]
    Datasets { system: String, other: String, dataset: String },
}

impl Diagnosis for MetricsError {
    fn blame(&self) -> Blame {
        Blame::Usage
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            MetricsError::Empty { .. } | MetricsError::Value { .. } | MetricsError::Long { .. } => {
                return None;
            }
            MetricsError::Unequal { .. } => "only runs over the same questions are compared",
            MetricsError::Datasets { .. } => {
                "run both on every dataset, or leave one dataset or system out"
            }
        };
        Some(hint.to_owned())
    }
}

/// Errors unless both sides have as many.
pub(super) fn equal(
    figure: &'static str,
    what: &'static str,
    expected: usize,
    found: usize,
) -> Result<(), MetricsError> {
    match expected == found {
        true => Ok(()),
        false => Err(MetricsError::Unequal { figure, what, expected, found }),
    }
}
