//! Corpora on disk: described, built from published and own files, read by memory maps, checked by sums.
//!
//! A built corpus is a directory: `corpus.toml` says what it was made of and how, `texts.bin`, `chunks.bin`,
//! `documents.bin` and `vectors.bin` hold it, `build.jsonl` has the sums of its segments. docs/corpora.md has the formats.

use std::path::Path;

pub mod build;
pub mod description;
pub mod embed;
mod error;
#[cfg(test)]
pub(crate) mod fake;
pub mod formats;
pub mod split;
pub mod store;
pub mod verify;

pub use description::Description;
pub use embed::open_encoder;
pub use error::CorpusError;
pub use store::Corpus;

/// One sum of a model's folder: of its weights and its tokenizer.
pub fn folder_sum(directory: &Path) -> Result<String, CorpusError> {
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
