//! Figures over finished items; nothing here knows a model or a file.
//!
//! Verdicts are `[runs][questions]`: the questions with gold, in the same order in every run and every system that is compared.

use thiserror::Error;

use crate::fault::faults;

pub mod agreement;
pub mod bootstrap;
pub mod calibration;
pub mod cost;
pub mod kpcs;
pub mod near_duplicates;
pub mod net_gain;
pub mod over_runs;
pub mod rouge;
pub mod significance;

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
