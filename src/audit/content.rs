//! The texts that a trail keeps beside it: a file each, which can be deleted without a word of the chain.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::event::Content;
use super::files::Line;
use super::key::Key;
use crate::diagnosis::Failure;
use crate::experiment::whole_file;

const FOLDER: &str = "content";
const EXTENSION: &str = "json";
/// Zeros that are written over a text at a time.
const BLOCK: usize = 64 << 10;

/// Where a text lies.
fn path(directory: &Path, id: &str) -> PathBuf {
    let folder = directory.join(FOLDER).join(id.get(..2).unwrap_or("00"));
    folder.join(id).with_extension(EXTENSION)
}

/// Writes a text, durably.
pub(super) fn keep(directory: &Path, content: &Content) -> io::Result<()> {
    let path = path(directory, &content.id);
    for folder in [path.parent().and_then(Path::parent), path.parent()].into_iter().flatten() {
        if !folder.is_dir() {
            whole_file::create_private_directory(folder)?;
        }
    }
    whole_file::write_private(&path, content.text.as_bytes())
}

/// Whether a text is still there.
pub fn exists(directory: &Path, id: &str) -> bool {
    path(directory, id).is_file()
}

/// A text as it was kept: one whose sum its line has.
///
/// # Errors
/// One that was deleted or changed, or cannot be read; a trail without its key, by which nobody can tell.
pub fn read(directory: &Path, line: &Line, key: Option<&Key>) -> Result<Value, Failure> {
    let id = line.text("content");
    let Some(key) = key else {
        return Err(Failure::missing(
            "the trail is without its key, so nobody can tell whether its texts are as they were",
            "put `key` beside the trail, from where it was written",
        ));
    };
    let path = path(directory, id);
    let bytes = fs_err::read(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::mismatch(format!("the text {id} was deleted")),
        _ => error.into(),
    })?;
    let read: Value = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::mismatch(format!("{}: {error}", path.display())))?;
    let is_same = match line.text("kept") {
        // Of a version that summed no more than these.
        "" => ["input", "output"].into_iter().all(|name| {
            let found = Some(&read[name]).filter(|value| !value.is_null());
            found.map(|value| key.sum(value)).as_deref() == line.fields[name].as_str()
        }),
        sum => key.sum_bytes(&bytes) == sum,
    };
    match is_same {
        true => Ok(read),
        false => Err(Failure::mismatch(format!("{}: the text was changed", path.display()))),
    }
}

/// Deletes the text of an id; one that is gone already is no error.
pub(super) fn remove(directory: &Path, id: &str) -> io::Result<()> {
    match erase(&path(directory, id)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Writes zeros over a file and deletes it. File systems that copy on write, and the flash behind any, may still have the old
/// blocks.
pub(super) fn erase(path: &Path) -> io::Result<()> {
    let mut file = fs_err::OpenOptions::new().write(true).open(path)?;
    let mut left = file.metadata()?.len() as usize;
    while left > 0 {
        let size = left.min(BLOCK);
        file.write_all(&vec![0; size])?;
        left -= size;
    }
    file.sync_all()?;
    fs_err::remove_file(path)
}

/// The files of all texts that are there, and of those that were being written when a process was killed.
///
/// # Errors
/// A folder that cannot be read.
pub fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let folder = directory.join(FOLDER);
    if folder.is_dir() {
        for folder in fs_err::read_dir(folder)? {
            for file in fs_err::read_dir(folder?.path())? {
                files.push(file?.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The id of a text by its file; `None`: it was never finished.
pub fn id(path: &Path) -> Option<&str> {
    let is_whole = path.extension().is_some_and(|end| end == EXTENSION);
    path.file_stem().filter(|_| is_whole).and_then(|stem| stem.to_str())
}
