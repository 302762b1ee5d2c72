//! MED-MAD: three general practitioners of different mindsets answer, debate anonymously, and vote.
//!
//! ```text
//! messages → (a completion) → record → brief → messages → … → vote
//! ```
//!
//! `protocol` alone makes calls; the other files turn text and records into text and records.

pub mod brief;
pub mod messages;
mod peers;
#[cfg(test)]
mod planted_effects;
pub mod protocol;
pub mod record;
pub mod schema;
pub mod settings;
pub mod vote;
