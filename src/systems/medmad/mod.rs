//! MED-MAD: three general practitioners of different mindsets answer, debate anonymously, and vote.
//!
//! ```text
//! messages → (a completion) → parse → record → brief → messages → … → vote
//! ```
//!
//! All of it is pure: text and records in, text and records out.

pub mod brief;
pub mod messages;
pub mod parse;
pub mod protocol;
pub mod record;
pub mod schema;
pub mod settings;
pub mod vote;
