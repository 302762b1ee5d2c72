//! Whether a corpus is as it was built: every sum.

use std::path::Path;

use super::store::Corpus;
use super::store::layout::CHUNKS;
use super::store::manifest::{MANIFEST, ManifestFile, StoredFile};
use crate::diagnosis::Failure;
use crate::hub::sha256_file;

/// Checks every file, and where all are well every chunk's text against its own sum. Gives each file's name with its problem, if it has one.
pub fn verify(directory: &Path) -> Result<Vec<(String, Option<String>)>, Failure> {
    let path = directory.join(MANIFEST);
    if !path.is_file() {
        // Opening says whether it is unfinished.
        Corpus::open(directory)?;
    }
    let file = ManifestFile::read(&path)?;
    let mut checks = Vec::new();
    for stored in &file.manifest.files {
        checks.push((stored.name.clone(), check(directory, stored)?));
    }
    if checks.iter().all(|(_, problem)| problem.is_none()) {
        let corpus = Corpus::open(directory)?;
        if let Some(error) = (0..corpus.len()).find_map(|number| corpus.chunk(number).err()) {
            checks.retain(|(name, _)| name != CHUNKS);
            checks.push((CHUNKS.to_owned(), Some(error.to_string())));
        }
    }
    Ok(checks)
}

fn check(directory: &Path, stored: &StoredFile) -> Result<Option<String>, Failure> {
    let path = directory.join(&stored.name);
    if !path.is_file() {
        return Ok(Some("is missing".to_owned()));
    }
    let found = fs_err::metadata(&path)?.len();
    if found != stored.size_bytes {
        return Ok(Some(format!("has {found} bytes, and corpus.toml says {}", stored.size_bytes)));
    }
    let is_right = sha256_file(&path)? == stored.sha256;
    Ok((!is_right).then(|| "has another sha256 than corpus.toml says".to_owned()))
}
