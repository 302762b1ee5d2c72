//! Whether a corpus is as it was built: every sum, and of a file that differs the bytes where.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use super::CorpusError;
use super::build::segments::read_lines;
use super::store::Corpus;
use super::store::layout::{CHUNKS, HEADER_BYTES, SEGMENTS};
use super::store::manifest::{MANIFEST, ManifestFile, StoredFile};
use crate::digest::sha256;
use crate::hub::sha256_file;
use crate::ops::mapped::MappedFile;

/// What was found of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCheck {
    pub name: String,
    /// `None` where all is well.
    pub problem: Option<String>,
}

/// Checks every file, and where all are well every chunk's text against its own sum.
pub fn verify(directory: &Path) -> Result<Vec<FileCheck>, CorpusError> {
    let path = directory.join(MANIFEST);
    if !path.is_file() {
        // Opening says whether it is unfinished.
        Corpus::open(directory)?;
    }
    let file = ManifestFile::read(&path)?;
    let mut checks = Vec::new();
    for stored in &file.manifest.files {
        checks.push(FileCheck { name: stored.name.clone(), problem: check(directory, stored)? });
    }
    if checks.iter().all(|check| check.problem.is_none()) {
        let corpus = Corpus::open(directory)?;
        if let Some(error) = (0..corpus.len()).find_map(|number| corpus.chunk(number).err()) {
            let name = CHUNKS.to_owned();
            checks.retain(|check| check.name != name);
            checks.push(FileCheck { name, problem: Some(error.to_string()) });
        }
    }
    Ok(checks)
}

fn check(directory: &Path, stored: &StoredFile) -> Result<Option<String>, CorpusError> {
    let path = directory.join(&stored.name);
    if !path.is_file() {
        return Ok(Some("is missing".to_owned()));
    }
    let found = fs_err::metadata(&path)?.len();
    if found != stored.size_bytes {
        return Ok(Some(format!("has {found} bytes, and corpus.toml says {}", stored.size_bytes)));
    }
    if sha256_file(&path)? == stored.sha256 {
        return Ok(None);
    }
    Ok(Some(match damaged_range(directory, &stored.name)? {
        Some(range) => format!("differs in bytes {} to {}", range.start, range.end),
        None => "has another sha256 than corpus.toml says".to_owned(),
    }))
}

/// The first segment's part of the file whose sum is another.
fn damaged_range(directory: &Path, name: &str) -> Result<Option<Range<u64>>, CorpusError> {
    let path = directory.join(SEGMENTS);
    let (true, Ok(lines)) = (name != SEGMENTS, read_lines(&path)) else { return Ok(None) };
    let map = MappedFile::open(&directory.join(name))?;
    let mut start = None;
    for line in lines {
        let files: BTreeMap<_, _> = line.files;
        let Some(part) = files.get(name) else { return Ok(None) };
        let from = start.unwrap_or_else(|| first(name));
        let bytes = map.get(from as usize..part.end as usize);
        if bytes.is_none_or(|bytes| sha256(bytes) != part.sha256) {
            return Ok(Some(from..part.end));
        }
        start = Some(part.end);
    }
    Ok(start.map(|_| 0..first(name)).filter(|range| !range.is_empty()))
}

/// Where the first segment begins: matrices have a header.
fn first(name: &str) -> u64 {
    use super::store::layout::{FULL_VECTORS, VECTORS};
    if [VECTORS, FULL_VECTORS].contains(&name) { HEADER_BYTES as u64 } else { 0 }
}
