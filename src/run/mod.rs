//! The run directory: a plan, two hash-chained logs, results; written append-only, checked, resumed, replayed.

pub mod plan;
pub mod records;
