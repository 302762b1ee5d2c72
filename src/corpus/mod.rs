//! Corpora on disk: described, built from published and own files, read by memory maps, checked by sums.
//!
//! A built corpus is a directory: `corpus.toml` says what it was made of and how, `texts.bin`, `chunks.bin`,
//! `documents.bin` and `vectors.bin` hold it, `build.jsonl` has the sums of its segments. docs/corpora.md has the formats.

pub mod build;
pub mod description;
mod error;
pub mod formats;
pub mod overlap;
pub mod postings;
pub mod split;
pub mod store;
pub mod verify;

pub use description::Description;
pub use error::CorpusError;
pub use store::Corpus;
