//! What lies in a folder, all the way down.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{SIGNATURE, SUMS};
use crate::console;

/// Problems that a message lists at most.
const MOST_LINES: usize = 50;

/// What a bundle holds beside its list and its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub files: usize,
    pub bytes: u64,
}

/// The files of a folder, and in words what no bundle holds.
#[derive(Default)]
pub struct Folder {
    /// The bytes of each by its name, but for the list of sums and its signature.
    pub files: BTreeMap<String, u64>,
    pub problems: Vec<String>,
}

impl Folder {
    /// No link is followed.
    pub fn read(directory: &Path) -> io::Result<Folder> {
        let mut folder = Folder::default();
        folder.add(directory, "")?;
        folder.files.retain(|name, _| ![SUMS, SIGNATURE].contains(&name.as_str()));
        Ok(folder)
    }

    fn add(&mut self, directory: &Path, prefix: &str) -> io::Result<()> {
        let mut is_empty = true;
        for entry in fs_err::read_dir(directory)? {
            let entry = entry?;
            is_empty = false;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            // Of the entry itself, not of what it may lead to.
            let metadata = entry.metadata()?;
            let mode = metadata.permissions().mode() & 0o7777;
            match metadata.file_type() {
                kind if kind.is_symlink() => self.problems.push(format!("linked   {name}")),
                kind if kind.is_dir() => self.add(&entry.path(), &format!("{name}/"))?,
                kind if !kind.is_file() => {
                    self.problems.push(format!("extra    {name}: it is no file"));
                }
                _ => {
                    // Copied by somebody's tool, it would run as its owner.
                    if mode & 0o7000 != 0 {
                        self.problems.push(format!("changed  {name}: its mode is {mode:04o}"));
                    }
                    self.files.insert(name, metadata.len());
                }
            }
        }
        if is_empty && !prefix.is_empty() {
            self.problems.push(format!("extra    {prefix}: it is an empty folder"));
        }
        Ok(())
    }

    pub fn size(&self) -> Size {
        Size { files: self.files.len(), bytes: self.files.values().sum() }
    }

    /// The problems, each on a line, sorted by kind and name.
    pub fn told(&mut self) -> String {
        self.problems.sort();
        let lines = self.problems.iter().take(MOST_LINES);
        let lines: String = lines.map(|line| format!("\n  {}", console::plain(line))).collect();
        match self.problems.len().saturating_sub(MOST_LINES) {
            0 => lines,
            more => format!("{lines}\n  … and {more} more"),
        }
    }
}
