//! Figures over finished items; nothing here knows a model or a file.
//!
//! Verdicts are `[runs][questions]`: the questions with gold, in the same order in every run and every system that is compared.

pub mod agreement;
pub mod bootstrap;
pub mod cost;
pub mod kpcs;
pub mod near_duplicates;
pub mod net_gain;
pub mod over_runs;
pub mod rouge;
pub mod significance;
