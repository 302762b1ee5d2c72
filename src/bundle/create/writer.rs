//! The bundle on the disk: written as `.DIR.partial` beside its place, every byte summed again, and renamed when it is whole.

use std::fs::{Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fs_err::File;
use rayon::prelude::*;

use super::Request;
use super::contents::{Contents, Item};
use crate::bundle::files::{self, Joined, Summed, copy_summed};
use crate::bundle::manifest::{FileEntry, Manifest, Mode, Part, Role};
use crate::bundle::path::BundlePath;
use crate::bundle::sums::Sums;
use crate::bundle::{BundleError, MANIFEST, SUMS};
use crate::digest::sha256;
use crate::outside;

/// Parts are numbered by three digits.
const MOST_PARTS: u64 = 999;

/// A bundle that is being written; dropped before it is finished nothing of it stays.
pub struct Partial<'a> {
    request: &'a Request,
    directory: PathBuf,
    partial: PathBuf,
    /// Keeps other processes out, whatever becomes of this one.
    lock: File,
    is_finished: bool,
}

impl Drop for Partial<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            // The error to report is another; the next attempt begins by removing it.
            let _ = fs_err::remove_dir_all(&self.partial);
        }
        // Closed alone, it would stay locked as long as a program that another thread is just starting has its copy.
        let _ = self.lock.file().unlock();
    }
}

impl<'a> Partial<'a> {
    /// Begins one, and removes what a killed process left there.
    ///
    /// # Errors
    /// A directory that holds something; another process at the same.
    pub fn begin(request: &'a Request) -> Result<Partial<'a>, BundleError> {
        let directory = std::path::absolute(&request.directory)?;
        let is_taken = match fs_err::read_dir(&directory) {
            Ok(mut entries) => entries.next().is_some(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(_) => true,
        };
        let name = directory.file_name().filter(|_| !is_taken);
        let name = name.ok_or_else(|| BundleError::Exists { path: directory.clone() })?;
        let partial = directory.with_file_name(format!(".{}.partial", name.to_string_lossy()));
        fs_err::create_dir_all(&partial)?;
        let lock = outside::open_directory(&partial)?;
        match lock.file().try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(BundleError::Busy { path: directory }),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let begun = Partial { request, directory, partial, lock, is_finished: false };
        for entry in fs_err::read_dir(&begun.partial)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => fs_err::remove_dir_all(entry.path())?,
                false => fs_err::remove_file(entry.path())?,
            }
        }
        Ok(begun)
    }

    /// Writes every file; gives how each lies in the bundle.
    ///
    /// # Errors
    /// A file that changed since it was summed; a place that cannot be written.
    pub fn write(&self, contents: &Contents) -> Result<Vec<FileEntry>, BundleError> {
        let mut items: Vec<(&BundlePath, &Item)> = contents.items.iter().collect();
        items.sort_by_key(|(_, item)| std::cmp::Reverse(item.summed.size_bytes));
        let written =
            items.par_iter().with_max_len(1).map(|(path, item)| self.write_item(path, item));
        let mut files = written.collect::<Result<Vec<FileEntry>, BundleError>>()?;
        files.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(files)
    }

    fn write_item(&self, path: &BundlePath, item: &Item) -> Result<FileEntry, BundleError> {
        let mut entry = item.entry(path);
        if item.unchanged {
            return Ok(entry);
        }
        let size_bytes = item.summed.size_bytes;
        let limit = self.request.split_bytes;
        let limit = limit.filter(|limit| size_bytes > *limit && is_split(item.role));
        let changed = || BundleError::Changed { path: item.place() };
        let mut from = item.open()?;
        let Some(limit) = limit else {
            let summed = self.write_file(path, &mut from, u64::MAX, entry.mode)?;
            return if summed == item.summed { Ok(entry) } else { Err(changed()) };
        };
        let parts = size_bytes.div_ceil(limit);
        if parts > MOST_PARTS {
            return Err(BundleError::BadFile {
                file: path.to_string(),
                why: format!("it would lie in more than {MOST_PARTS} parts"),
            });
        }
        let mut read = 0;
        for number in 1..=parts {
            let part = BundlePath::parse(&format!("{path}.{number:03}"))?;
            let Summed { sha256, size_bytes } =
                self.write_file(&part, &mut from, limit, Mode::Plain)?;
            read += size_bytes;
            entry.parts.push(Part { path: part, size_bytes, sha256 });
        }
        // The parts put together are what was summed: all of it is read again.
        let is_at_end = from.read(&mut [0])? == 0;
        let mut whole = Joined::default();
        for part in &entry.parts {
            whole.add(&part.path.below(&self.partial))?;
        }
        match is_at_end && read == size_bytes && whole.finish() == item.summed {
            true => Ok(entry),
            false => Err(changed()),
        }
    }

    fn write_file(
        &self,
        path: &BundlePath,
        from: &mut impl Read,
        most_bytes: u64,
        mode: Mode,
    ) -> Result<Summed, BundleError> {
        let mut to = files::create(&path.below(&self.partial))?;
        let summed = copy_summed(from, &mut to, most_bytes)?;
        settle(&to, mode, self.request.time)?;
        Ok(summed)
    }

    /// Writes the manifest and the sums, and puts the bundle in its place.
    ///
    /// # Errors
    /// A place that cannot be written.
    pub fn finish(mut self, manifest: &Manifest, text: &str) -> Result<(), BundleError> {
        let carried = manifest.files.iter().flat_map(FileEntry::carried);
        let mut sums = Sums(carried.map(|file| (file.path, file.sha256)).collect());
        sums.0.insert(BundlePath::parse(MANIFEST)?, sha256(text));
        for (name, text) in [(MANIFEST, text), (SUMS, &sums.to_string())] {
            let mut to = files::create(&self.partial.join(name))?;
            to.write_all(text.as_bytes())?;
            settle(&to, Mode::Plain, self.request.time)?;
        }
        for folder in files::folders(&self.partial)? {
            let opened = outside::open_directory(&folder)?;
            allow(&opened, 0o755)?;
            opened.file().set_modified(self.request.time)?;
            opened.sync_all()?;
        }
        fs_err::rename(&self.partial, &self.directory)?;
        self.is_finished = true;
        Ok(files::sync(self.directory.parent().unwrap_or(Path::new("/")))?)
    }
}

/// What is read before it is installed lies whole.
fn is_split(role: Role) -> bool {
    matches!(role, Role::Model | Role::Scorer | Role::Encoder | Role::Data)
}

fn settle(file: &File, mode: Mode, modified: SystemTime) -> io::Result<()> {
    allow(file, mode.bits())?;
    file.file().set_modified(modified)?;
    file.sync_all()
}

/// File systems of sticks keep no modes and may refuse them; those that count are in the manifest.
fn allow(file: &File, mode: u32) -> io::Result<()> {
    match file.set_permissions(Permissions::from_mode(mode)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}
