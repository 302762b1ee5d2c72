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

use clap::ValueEnum;
use serde::Serialize;

pub use self::key::random_name;
pub use self::line::{Event, Input, Line};
pub use self::trail::Trail;

/// What is kept of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditContent {
    /// The texts, in files of their own that can be deleted
    Full,
    /// Sums under the trail's key
    Hash,
}

/// Where the trail lies, and what it keeps.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    pub directory: PathBuf,
    pub content: AuditContent,
    /// Days after which kept texts are deleted; `None`: never.
    pub keep_days: Option<u32>,
}

impl AuditOptions {
    /// A trail of sums, which deletes nothing.
    pub fn new(directory: impl Into<PathBuf>) -> AuditOptions {
        let directory = directory.into();
        AuditOptions { directory, content: AuditContent::Hash, keep_days: None }
    }
}

/// An event of the user who runs this program.
pub fn own(name: &str) -> Event {
    let uid = rustix::process::getuid().as_raw();
    Event::new(name).with("actor", format!("uid {uid}")).with("identity", format!("unix:{uid}"))
}
