//! Figures over finished items; nothing here knows a model or a file.
//!
//! Verdicts are `[runs][questions]`: the questions with gold, in the same order in every run and every system that is compared.

pub mod agreement;
pub mod baseline;
pub mod bootstrap;
pub mod calibration;
pub mod cost;
mod error;
mod estimate;
pub mod kappa;
pub mod kpcs;
pub mod mcnemar;
pub mod multiplicity;
pub mod near_duplicates;
pub mod net_gain;
pub mod number;
pub mod over_runs;
pub mod paired_t;
pub mod rouge;
pub mod rouge_chinese;
pub mod rouge_score;
pub mod rouge_set;
pub mod similarity;

pub use error::MetricsError;
