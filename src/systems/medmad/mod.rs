//! MED-MAD: three general practitioners of different mindsets answer, debate anonymously, and vote.
//!
//! ```text
//! messages → (a completion) → record → brief → messages → … → vote
//! ```
//!
//! All of it is pure: text and records in, text and records out.

pub mod brief;
pub mod messages;
pub mod protocol;
pub mod record;
pub mod schema;
pub mod settings;
pub mod vote;
