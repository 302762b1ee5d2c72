//! Bundles: the program, models, data and licences as one signed directory that is carried behind an air gap, and what comes of it there.
//!
//! ```text
//! create: what is asked for → items (known sums) → DIR.partial → DIR; people sign SHA256SUMS with tools of their own
//! verify: signature → SHA256SUMS → MANIFEST.json → every file
//! install: the same → ROOT/versions/VERSION (summed as it is written) → selftest → ROOT/current
//! ```
//!
//! A bundle cannot vouch for the program that it brings: README.html in it says how `ssh-keygen` and `sha256sum` check it first.

mod crate_list;
pub mod create;
pub mod deep;
pub mod error;
mod files;
pub mod install;
pub mod manifest;
pub mod path;
mod program;
pub mod root;
pub mod signature;
pub mod sums;
mod trust;
pub mod verify;
pub mod version;

pub use self::error::BundleError;
pub use crate::hub::installed::{MANIFEST, SUMS};

/// The page that a person reads first.
pub const README: &str = "README.html";
