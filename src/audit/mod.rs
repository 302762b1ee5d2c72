//! The audit trail: what was done, by whom, with which text, a line an event.
//!
//! ```text
//! Event → Trail → one thread → trail.jsonl (the chain of run directories, under a key), content/, trail.head
//! and back: survey → verify · forget · show
//! ```
//!
//! Nobody makes or changes a line without the key. Lines hold sums of texts and never a text, so that one that is kept beside them can be
//! deleted. A chain does not tell that its end was cut off; its heads, which go to stderr too, do.

mod content;
pub mod forget;
mod key;
pub mod line;
pub mod survey;
#[cfg(test)]
mod tests;
pub mod trail;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

pub use self::key::random_name;
pub use self::line::{Event, Input, Line};
pub use self::trail::Trail;

/// What is kept of texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditContent {
    /// The texts, in files of their own that can be deleted
    Full,
    /// Sums under the trail's key
    #[default]
    Hash,
}

/// The trail that a server writes, and what that keeps.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Audit")]
pub struct AuditOptions {
    /// Write an audit trail to this directory: a line per answer and deletion. Each process has a trail of its own
    #[arg(id = "audit", long, value_name = "DIR", required = false, env = "WARDROUND_AUDIT")]
    pub directory: PathBuf,
    /// What the trail keeps of texts
    #[arg(
        long = "audit-content",
        default_value = "hash",
        requires = "audit",
        env = "WARDROUND_AUDIT_CONTENT"
    )]
    pub content: AuditContent,
    /// Delete kept texts after this many days
    #[arg(long = "audit-keep", value_name = "DAYS", requires = "audit", value_parser = clap::value_parser!(u32).range(1..), env = "WARDROUND_AUDIT_KEEP")]
    pub keep_days: Option<u32>,
}

/// An event of the user who runs this program.
pub fn own(name: &str) -> Event {
    let uid = rustix::process::getuid().as_raw();
    Event::new(name).with("actor", format!("uid {uid}")).with("identity", format!("unix:{uid}"))
}
