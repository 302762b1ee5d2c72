//! Checkpoints: found in a directory or the Hugging Face cache, fetched from the hub, verified by their sums. Datasets:
//! fetched from where they are published, in the layout that recipes expect.
//!
//! `source` turns what a user typed into a [`Checkpoint`]; `card` knows the models by name; `cache` reads the hub's
//! cache layout; `proxy` knows the way to it; `dataset` knows datasets; `gguf` makes a checkpoint of llama.cpp's file of it; `fetch` is the only module that opens a connection, and a build without the feature `hub` has
//! `fetch_absent` in its place.

mod cache;
mod card;
mod checkpoint;
mod dataset;
mod error;
#[cfg_attr(not(feature = "hub"), path = "fetch_absent.rs")]
mod fetch;
pub mod gguf;
mod options;
mod provenance;
pub mod proxy;
mod repository;
mod source;
mod verify;

pub use cache::CachedRepository;
pub use card::{Card, CardFile, Kind, Licence};
pub use checkpoint::Checkpoint;
pub use dataset::{Conversion, DatasetCard, DatasetFile, matches};
pub use error::{HubError, OfflineReason};
pub use fetch::fetch_dataset;
pub use options::{HubOptions, Token};
pub use provenance::{PROVENANCE, Provenance};
pub use repository::Repository;
pub use source::{check, fetch, folder, resolve};
pub use verify::{Authority, FileCheck, Status, verify, verify_datasets};

pub use crate::checkpoint::{CheckpointFiles, FilesError};
pub use crate::digest::{FileDigest, digest_files, sha256_file, weights_digest};
