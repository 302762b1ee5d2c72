//! The texts that a trail keeps beside it: a file each, named by its sum, which can be deleted without a word of the chain.

use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::key::TrailKey;
use crate::diagnosis::Failure;
use crate::digest::is_sha256;
use crate::experiment::whole_file;
use crate::outside;

pub(super) const FOLDER: &str = "content";
const ENDING: &str = ".json";

/// Where the text of a sum lies. A line may name any: what is no sum could lead out of the directory.
fn path(directory: &Path, sum: &str) -> io::Result<PathBuf> {
    match is_sha256(sum) {
        true => Ok(directory.join(FOLDER).join(format!("{sum}{ENDING}"))),
        false => Err(io::Error::new(ErrorKind::InvalidData, "a line names what is no text")),
    }
}

/// Writes a text, durably. Gives its sum.
pub(super) fn keep(directory: &Path, key: &TrailKey, text: &str) -> io::Result<String> {
    let sum = key.sum(text);
    let folder = directory.join(FOLDER);
    if !folder.is_dir() {
        whole_file::create_private_directory(&folder)?;
    }
    whole_file::write_private(&path(directory, &sum)?, text.as_bytes())?;
    Ok(sum)
}

/// The text of a line, if it is as it was kept.
pub(super) fn read(
    directory: &Path,
    key: &TrailKey,
    sum: &str,
    line: u64,
) -> Result<Value, Failure> {
    let wrong = |why: &str| Failure::mismatch(format!("line {line}: the text {why}"));
    let bytes = outside::bytes_beside(&path(directory, sum)?, outside::LONGEST_FILE);
    let bytes = bytes.map_err(|error| match error.kind() {
        ErrorKind::NotFound => wrong("is gone"),
        _ => error.into(),
    })?;
    match key.sum(&bytes) == sum {
        true => serde_json::from_slice(&bytes).map_err(|error| wrong(&error.to_string())),
        false => Err(wrong("was changed")),
    }
}

/// Deletes the text of a sum; one that is gone already is no error.
pub(super) fn remove(directory: &Path, sum: &str) -> io::Result<()> {
    outside::if_there(fs_err::remove_file(path(directory, sum)?)).map(|_| ())
}

/// The sums of the texts that are there. Files of other names are none.
pub(super) fn list(directory: &Path) -> io::Result<HashSet<String>> {
    let entries = outside::if_there(fs_err::read_dir(directory.join(FOLDER)))?;
    let entries = entries.into_iter().flatten().collect::<Result<Vec<_>, _>>()?;
    let names = entries.iter().filter_map(|entry| entry.file_name().into_string().ok());
    let sums = names.filter_map(|name| name.strip_suffix(ENDING).map(str::to_owned));
    Ok(sums.filter(|sum| is_sha256(sum)).collect())
}
