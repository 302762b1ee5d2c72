//! Files of a bundle on the disk: found without following a link, read without following one, summed while they are copied.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt;
use fs_err::{File, OpenOptions};
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use super::path::BundlePath;
use crate::digest::hex;
use crate::outside;

const BUFFER_BYTES: usize = 1 << 20;

/// What lies in a directory.
#[derive(Debug, Default)]
pub struct Found {
    /// Bytes of each file, by its path.
    pub files: BTreeMap<BundlePath, u64>,
    /// Folders that hold nothing.
    pub empty_folders: Vec<String>,
    /// What no bundle holds: links, devices, names that it does not know. In words.
    pub strange: Vec<String>,
}

impl Found {
    /// Lists a directory, all the way down.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn list(directory: &Path) -> io::Result<Found> {
        let mut found = Found::default();
        found.add(directory, "")?;
        Ok(found)
    }

    fn add(&mut self, directory: &Path, prefix: &str) -> io::Result<()> {
        let mut is_empty = true;
        for entry in fs_err::read_dir(directory)? {
            let entry = entry?;
            is_empty = false;
            let name = entry.file_name();
            let place = format!("{prefix}{}", name.to_string_lossy());
            let Ok(path) = BundlePath::parse(&place) else {
                self.strange
                    .push(format!("extra    {}: no bundle has such a name", place.escape_debug()));
                continue;
            };
            // Of the entry itself, not of what it may lead to.
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.add(&entry.path(), &format!("{place}/"))?;
            } else if kind.is_file() {
                let metadata = entry.metadata()?;
                // Copied by somebody's tool, it would run as its owner.
                if metadata.permissions().mode() & 0o7000 != 0 {
                    let mode = metadata.permissions().mode() & 0o7777;
                    self.strange.push(format!("changed  {place}: its mode is {mode:04o}"));
                }
                self.files.insert(path, metadata.len());
            } else {
                let what = if kind.is_symlink() { "a link" } else { "no file" };
                self.strange.push(format!("extra    {place}: it is {what}"));
            }
        }
        if is_empty && !prefix.is_empty() {
            self.empty_folders.push(prefix.trim_end_matches('/').to_owned());
        }
        Ok(())
    }
}

/// Opens a file that is one itself, and no link to one.
pub fn open(path: &Path) -> io::Result<File> {
    // A named pipe would wait for its writer.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(|error| io::Error::other(error.to_string()))?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is no file", path.display()),
        )),
    }
}

/// Reads a file of `most_bytes` at most.
pub fn read_small(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most_bytes + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most_bytes {
        false => Ok(bytes),
        true => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} is larger than {most_bytes} bytes", path.display()),
        )),
    }
}

/// A SHA-256 and the number of bytes that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summed {
    pub sha256: String,
    pub size_bytes: u64,
}

/// Reads to the end of `from`, or for `most_bytes`, writes all of it to `to`, and sums it.
pub fn copy_summed(
    from: &mut impl Read,
    to: &mut impl Write,
    most_bytes: u64,
) -> io::Result<Summed> {
    let mut all = Joined::default();
    all.copy(from, to, most_bytes)?;
    Ok(all.finish())
}

/// The sum of several files as if they were one.
#[derive(Default)]
pub struct Joined {
    sum: Sha256,
    size_bytes: u64,
}

impl Joined {
    /// Takes in a whole file.
    pub fn add(&mut self, path: &Path) -> io::Result<()> {
        self.copy(&mut open(path)?, &mut io::sink(), u64::MAX)
    }

    fn copy(
        &mut self,
        from: &mut impl Read,
        to: &mut impl Write,
        most_bytes: u64,
    ) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut left = most_bytes;
        while left > 0 {
            let room = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let count = from.read(&mut buffer[..room])?;
            if count == 0 {
                break;
            }
            self.sum.update(&buffer[..count]);
            to.write_all(&buffer[..count])?;
            left -= count as u64;
            self.size_bytes += count as u64;
        }
        Ok(())
    }

    pub fn finish(self) -> Summed {
        Summed { sha256: hex(&self.sum.finalize()), size_bytes: self.size_bytes }
    }
}

/// Sums a file, which is no link.
pub fn sum(path: &Path) -> io::Result<Summed> {
    copy_summed(&mut open(path)?, &mut io::sink(), u64::MAX)
}

/// A new file to write to, with its folders.
pub fn create(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder)?;
    }
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// A directory that everybody may enter and read, whatever the mask of the process says. It and those above it are made where they are
/// not there; what is there stays as it is.
pub fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| *above != Path::new("")) {
        make_folder(above)?;
    }
    match fs_err::create_dir(path) {
        Ok(()) => fs_err::set_permissions(path, Permissions::from_mode(0o755)),
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes the names in a directory durable.
pub fn sync(directory: &Path) -> io::Result<()> {
    outside::sync_directory(directory)
}

/// Every directory below one, and itself, the innermost first.
pub fn folders(directory: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let mut all = Vec::new();
    for entry in fs_err::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            all.extend(folders(&entry.path())?);
        }
    }
    all.push(directory.to_owned());
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256;

    #[test]
    fn links_pipes_and_strange_names_are_told_and_never_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs_err::create_dir_all(root.join("models/llama")).unwrap();
        fs_err::create_dir(root.join("empty")).unwrap();
        fs_err::write(root.join("models/llama/config.json"), "{}").unwrap();
        fs_err::write(root.join("a b"), "").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("link")).unwrap();
        let found = Found::list(root).unwrap();
        let paths: Vec<&str> = found.files.keys().map(BundlePath::as_str).collect();
        assert_eq!(paths, ["models/llama/config.json"]);
        assert_eq!(found.empty_folders, ["empty"]);
        assert_eq!(found.strange.len(), 2, "{:?}", found.strange);
        assert!(open(&root.join("link")).is_err());
        assert!(open(root).is_err());
        assert!(read_small(&root.join("models/llama/config.json"), 1).is_err());
    }

    #[test]
    fn a_copy_is_summed_up_to_a_limit() {
        let mut to = Vec::new();
        let mut from: &[u8] = b"abcdef";
        let first = copy_summed(&mut from, &mut to, 3).unwrap();
        assert_eq!(first, Summed { sha256: sha256("abc"), size_bytes: 3 });
        assert_eq!(copy_summed(&mut from, &mut to, 9).unwrap().sha256, sha256("def"));
        assert_eq!(to, b"abcdef");
    }
}
