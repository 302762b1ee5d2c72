//! Corpora on disk: described, built from published and own files, read by memory maps, checked by sums.
//!
//! A built corpus is a directory: `corpus.toml` says what it was made of and how, `texts.bin`, `chunks.bin`,
//! `documents.bin` and `vectors.bin` hold it. docs/corpora.md has the formats.

use std::fmt::Display;
use std::path::Path;

use crate::diagnosis::Failure;

pub mod build;
pub mod description;
pub mod embed;
#[cfg(test)]
pub(crate) mod fake;
pub mod formats;
pub mod split;
pub mod store;

pub use description::Description;
pub use embed::open_encoder;
pub use store::Corpus;

/// Of what lies on disk of a corpus.
fn damaged(path: &Path, problem: impl Display) -> Failure {
    Failure::missing(
        format!("{} is damaged: {problem}", path.display()),
        "copy the corpus again, or build it again; `wardround corpus verify DIR` says what else is damaged",
    )
}

/// Of two things that must be alike and are not.
pub fn differs(what: &str, one: impl Display, other: impl Display, hint: &str) -> Failure {
    Failure::usage(format!("{what} differs: {one} here, {other} there"), hint)
}

/// One sum of a model's folder: of its weights and its tokenizer.
pub fn folder_sum(directory: &Path) -> Result<String, Failure> {
    let mut files = Vec::new();
    for entry in fs_err::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_model =
            [".safetensors", ".bin", "tokenizer.json"].iter().any(|end| name.ends_with(end));
        if is_model && path.is_file() {
            files.push((name, path));
        }
    }
    files.sort();
    Ok(crate::hub::weights_digest(&crate::hub::digest_files(&files)?))
}
