//! Bundles: a folder of models in the hub's layout, data, corpora and the program that is carried behind an air gap, and used where it lies.
//!
//! ```text
//! create: every file → SHA256SUMS; people sign it with minisign
//! verify: signature → SHA256SUMS → every file
//! ```
//!
//! A bundle cannot vouch for the program that it brings: `minisign -V` and `sha256sum -c` check it first, and know nothing of us.

pub mod create;
mod folder;
pub mod sums;
pub mod verify;

pub use self::folder::Size;

/// The sum of every other file, as `sha256sum` writes and checks it.
pub const SUMS: &str = "SHA256SUMS";
/// minisign's signature of [`SUMS`], and so of all files.
pub const SIGNATURE: &str = "SHA256SUMS.minisig";
