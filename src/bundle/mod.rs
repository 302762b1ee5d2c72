//! Bundles: models in the hub's layout, data and the program as one folder that is carried behind an air gap, and used where it lies.
//!
//! ```text
//! create: what is asked for → DIR.partial → sums of what was written → DIR; people sign SHA256SUMS with minisign
//! verify: signature → SHA256SUMS → bundle.toml → every file
//! ```
//!
//! A bundle cannot vouch for the program that it brings: `minisign -V` and `sha256sum -c` check it first, and know nothing of us.

pub mod create;
pub mod sums;
pub mod verify;

use serde::{Deserialize, Serialize};

/// The sum of every other file, as `sha256sum` writes and checks it.
pub const SUMS: &str = "SHA256SUMS";
/// minisign's signature of [`SUMS`], and so of all files.
pub const SIGNATURE: &str = "SHA256SUMS.minisig";
/// What people read; one of the files that are summed.
pub const CONTENTS: &str = "bundle.toml";

/// `bundle.toml`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bundle {
    pub name: String,
    pub made_by: String,
    /// All files but this one, the sums and the signature.
    pub files: usize,
    /// Of these files together; no file of the bundle is longer.
    pub bytes: u64,
    pub parts: Vec<Part>,
}

/// A model or a dataset.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    pub name: String,
    /// Its folder in the bundle.
    pub folder: String,
    /// `org/name@commit`.
    pub origin: Option<String>,
    pub licence: String,
    /// What has to travel with copies: lines, words to be shown, where it says what the model may be used for; and what hinders copies.
    pub notices: Vec<String>,
    /// Whether somebody else than the sender says what all its files should be.
    pub sums_published: bool,
}
