//! The texts that a trail keeps beside it: a file each, which can be deleted without a word of the chain.

use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::event::Content;
use super::files::Line;
use super::key::{Key, is_random_name};
use crate::console;
use crate::diagnosis::Failure;
use crate::experiment::whole_file;
use crate::outside;

const FOLDER: &str = "content";
/// What ends the name of a text's file, and what ends it while that is written, behind a dot at its front.
const ENDING: &str = ".json";
const PARTIAL: &str = ".partial";
/// Zeros that are written over a text at a time.
const BLOCK: usize = 64 << 10;

/// Where a text lies. The ids of a trail are whatever its lines say: one that is no name of a text could be a way out of the
/// directory, and so could a link.
///
/// # Errors
/// An id that is never given to a text; a folder that is a link.
fn path(directory: &Path, id: &str) -> io::Result<PathBuf> {
    refuse_strange(id)?;
    let all = directory.join(FOLDER);
    let own = all.join(&id[..2]);
    match [&all, &own].into_iter().find(|folder| is_link(folder)) {
        None => Ok(own.join(format!("{id}{ENDING}"))),
        Some(link) => {
            Err(refused(format!("{} is a link: no texts are kept behind one", link.display())))
        }
    }
}

/// Refuses an id that is never given to a text.
pub(super) fn refuse_strange(id: &str) -> io::Result<()> {
    match is_random_name(id) {
        true => Ok(()),
        false => Err(refused(format!("`{}` is no id of a text", console::plain(id)))),
    }
}

fn refused(message: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, message)
}

fn is_link(path: &Path) -> bool {
    fs_err::symlink_metadata(path).is_ok_and(|there| there.is_symlink())
}

/// Writes a text, durably.
pub(super) fn keep(directory: &Path, content: &Content) -> io::Result<()> {
    let path = path(directory, &content.id)?;
    for folder in [path.parent().and_then(Path::parent), path.parent()].into_iter().flatten() {
        if !folder.is_dir() {
            whole_file::create_private_directory(folder)?;
        }
    }
    whole_file::write_private(&path, content.text.as_bytes())
}

/// Whether a text is still there.
pub fn exists(directory: &Path, id: &str) -> bool {
    let there = path(directory, id).and_then(fs_err::symlink_metadata);
    there.is_ok_and(|there| there.is_file())
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
    let path = path(directory, id).map_err(|error| Failure::mismatch(error.to_string()))?;
    let bytes = outside::file(&path).map_err(|error| match error.kind() {
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
    match erase(&path(directory, id)?) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Writes zeros over a file and deletes it. File systems that copy on write, and the flash behind any, may still have the old
/// blocks. A link or a pipe in its place is only deleted, and so is a file that has a second name, by which it stays elsewhere.
pub(super) fn erase(path: &Path) -> io::Result<()> {
    let there = fs_err::symlink_metadata(path)?;
    match there.is_file() {
        true if there.nlink() == 1 => overwrite(path)?,
        true => console::note(format!(
            "{} has a second name, by which its text stays: `find / -xdev -inum {}` finds it",
            path.display(),
            there.ino()
        )),
        false => {}
    }
    fs_err::remove_file(path)
}

fn overwrite(path: &Path) -> io::Result<()> {
    let mut file = fs_err::OpenOptions::new().write(true).open(path)?;
    let mut left = file.metadata()?.len() as usize;
    while left > 0 {
        let size = left.min(BLOCK);
        file.write_all(&vec![0; size])?;
        left -= size;
    }
    file.sync_all()
}

/// The files of all texts that are there, and of those that were being written when a process was killed. Files of other names, and
/// what lies behind links, are none of a trail.
pub fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let folder = directory.join(FOLDER);
    if folder.is_dir() && !is_link(&folder) {
        for folder in fs_err::read_dir(folder)? {
            let folder = folder?;
            if !folder.file_type()?.is_dir() {
                continue;
            }
            for file in fs_err::read_dir(folder.path())? {
                files.push(file?.path());
            }
        }
    }
    files.retain(|path| is_of_text(path));
    files.sort();
    Ok(files)
}

/// The id of a text by its file; `None`: it was never finished.
pub fn id(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(ENDING).filter(|id| is_random_name(id))
}

/// Whether a file is a text's, or was to become one.
fn is_of_text(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let begun = name.strip_prefix('.').and_then(|name| name.strip_suffix(PARTIAL));
    begun.unwrap_or(name).strip_suffix(ENDING).is_some_and(is_random_name)
}
