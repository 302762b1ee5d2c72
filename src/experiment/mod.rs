//! The run directory: a plan, two hash-chained logs, results; written append-only, checked, resumed, replayed.

mod appender;
pub mod chain;
pub mod clock;
pub mod compare;
pub mod contents;
pub mod difference;
pub mod directory;
pub mod error;
pub mod line;
pub mod link;
pub mod log;
pub mod merge;
pub mod plan;
pub mod private_file;
pub mod recipe;
pub mod results;
pub mod shard;
pub mod texts;
pub mod verify;

#[cfg(test)]
pub(crate) mod fixtures;
