//! The audit trail: what was done with which text, a line an event, each chained by its hash to the one before.
//!
//! ```text
//! Event → Trail → writer (one thread) → trail.jsonl, content/, trail.head
//! and back: lines → verify · forget · show
//! ```
//!
//! The chain holds sums of texts under a secret key, never a text: so a text that is kept beside it can be deleted, and the chain
//! still verifies. A chain does not tell that its end was cut off; its heads, which go to stderr, do.

pub mod case;
mod content;
pub mod event;
pub mod files;
pub mod forget;
pub mod head;
pub mod kept;
pub mod key;
mod monotonic;
pub mod read;
#[cfg(test)]
mod tests;
pub mod trail;
pub mod verify;
mod witness;
mod writer;

use std::path::PathBuf;

use clap::ValueEnum;

pub use self::event::Event;
pub use self::head::Head;
pub use self::trail::Trail;

/// What is kept of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AuditContent {
    /// The texts, in files of their own that can be deleted
    Full,
    /// Sums under a secret key
    Hash,
    /// Nothing: who, when, how many tokens
    None,
}

impl AuditContent {
    pub fn name(self) -> &'static str {
        match self {
            AuditContent::Full => "full",
            AuditContent::Hash => "hash",
            AuditContent::None => "none",
        }
    }
}

/// Who goes on with a trail that was cut off or written again, and why.
#[derive(Clone, Debug)]
pub struct Accepted {
    pub actor: String,
    pub why: String,
}

/// Where the trail lies, and what it keeps.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    pub directory: PathBuf,
    pub content: AuditContent,
    /// Whether the addresses of clients are kept.
    pub addresses: bool,
    /// Bytes that must stay free on the file system; with fewer nothing is written, and so nothing is served.
    pub reserve_bytes: u64,
    /// Who goes on with a trail that is not as its head says; `None`: it is refused.
    pub accepted: Option<Accepted>,
    /// Days after which kept texts are deleted; `None`: never.
    pub keep_days: Option<u32>,
}

impl AuditOptions {
    /// A trail of sums, which deletes nothing.
    pub fn new(directory: impl Into<PathBuf>) -> AuditOptions {
        AuditOptions {
            directory: directory.into(),
            content: AuditContent::Hash,
            addresses: true,
            reserve_bytes: 0,
            accepted: None,
            keep_days: None,
        }
    }
}
