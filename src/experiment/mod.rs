//! An experiment: a spec of what was asked, a plan with everything resolved, and its execution into a run directory.
//!
//! ```text
//! Spec → Run (its plan, items, models) → Driver::execute → run directory → Contents
//! ```
//!
//! A [`case`] is one item worked on by a system whose models are loaded already, without a directory.
//!
//! A run directory holds a plan, the items' texts, two hash-chained logs and results; it is written append-only, checked, resumed
//! and replayed.

pub mod appender;
pub mod case;
pub mod chain;
pub mod compare;
pub mod contents;
pub mod directory;
pub mod driver;
pub mod error;
pub mod exemplars;
pub mod hardware;
pub mod library;
pub mod line;
pub mod link;
pub mod log;
pub mod models;
pub mod plan;
pub mod queued;
pub mod replay;
pub mod results;
pub mod run;
pub mod spec;
pub mod texts;
pub mod verify;
pub mod versions;
pub mod whole_file;

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod schemas;

/// Now, in UTC to the second (RFC 3339), as in `2026-03-01T09:30:00Z`: the wall clock as the run directory spells it.
pub fn utc_now() -> String {
    humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()
}
