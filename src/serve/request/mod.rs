//! Requests as typed structs; unknown fields are reported, never dropped silently.

pub mod chat;
pub mod completions;
pub mod decoding;
pub mod fields;
pub mod format;
