//! Parses requests field by field; unknown fields are reported, never dropped silently.

pub mod address;
pub mod chat;
pub mod completions;
pub mod decoding;
pub mod embeddings;
pub mod fields;
pub mod format;
pub mod rerank;
