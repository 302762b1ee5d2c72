//! What a client asks, read field by field; nothing is dropped in silence.

pub mod address;
pub mod chat;
pub mod completions;
pub mod decoding;
pub mod fields;
pub mod format;
