//! A file of the store: a header, and lines that one process appended.

use std::fs::TryLockError;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::line::{self, Key, LONGEST};
use crate::outside;

/// The first line of every file.
pub(super) const HEADER: &str = "wardround calls 1";
/// What the names of files end with.
pub(super) const EXTENSION: &str = "calls";
/// Before the number of calls in the last line of an exported file.
pub(super) const END: &str = "end ";
/// What they end with while they are being put together.
pub(super) const PARTIAL: &str = "part";

/// Where a line stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Which of the store's files.
    pub file: usize,
    pub at: u64,
    /// Without the newline.
    pub length: usize,
}

/// A whole line of a file.
pub(super) struct Line {
    /// Counted from 1, the header being the first.
    pub number: usize,
    pub at: u64,
    /// Without the newline; `None` of one that is longer than any.
    pub bytes: Option<Vec<u8>>,
}

/// Where the last whole line of a file ends, and how many calls it says that there are, if it does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct End {
    pub at: u64,
    pub count: Option<usize>,
}

/// Gives `each` the whole lines from byte `from` on, but for header and end; returns where the last one ends.
///
/// # Errors
/// A file that cannot be read, or whose first line is not the header.
pub(super) fn read(path: &Path, from: u64, mut each: impl FnMut(Line)) -> io::Result<End> {
    let mut file = BufReader::new(outside::open_beside(path)?);
    file.seek(SeekFrom::Start(from))?;
    let (mut at, mut number, mut count) = (from, 0, None);
    loop {
        let mut bytes = Vec::new();
        let read = file.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut bytes)?;
        let is_whole = bytes.pop_if(|last| *last == b'\n').is_some();
        let mut length = read as u64;
        if !is_whole && read > LONGEST {
            let (more, ends) = skip(&mut file)?;
            if !ends {
                return Ok(End { at, count });
            }
            length += more;
        } else if !is_whole {
            return Ok(End { at, count });
        }
        number += 1;
        match at == 0 {
            true if bytes != HEADER.as_bytes() => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no file of calls"));
            }
            true => {}
            false => {
                count = end(&bytes);
                if count.is_none() {
                    each(Line { number, at, bytes: is_whole.then_some(bytes) });
                }
            }
        }
        at += length;
    }
}

/// The number of calls, where the line is the end of an exported file.
fn end(line: &[u8]) -> Option<usize> {
    let count = std::str::from_utf8(line).ok()?.strip_prefix(END)?;
    count.parse().ok().filter(|parsed: &usize| parsed.to_string() == count)
}

/// Passes over the rest of a line; how long it is, and whether it ends.
fn skip(file: &mut impl BufRead) -> io::Result<(u64, bool)> {
    let mut length = 0;
    loop {
        let buffer = file.fill_buf()?;
        if buffer.is_empty() {
            return Ok((length, false));
        }
        let (used, ends) = match buffer.iter().position(|&byte| byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (buffer.len(), false),
        };
        length += used as u64;
        file.consume(used);
        if ends {
            return Ok((length, true));
        }
    }
}

/// The bytes of a line.
pub(super) fn read_line(path: &Path, place: Place) -> io::Result<Vec<u8>> {
    let mut file = outside::open_beside(path)?;
    file.seek(SeekFrom::Start(place.at))?;
    let mut bytes = vec![0; place.length];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The files of a store, by name.
///
/// # Errors
/// A directory that cannot be read; the first entry that no store has, as its name.
pub(super) fn list(directory: &Path) -> io::Result<Result<Vec<PathBuf>, String>> {
    let mut files = Vec::new();
    for entry in fs_err::read_dir(directory)? {
        let path = entry?.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some(EXTENSION) => files.push(path),
            Some(PARTIAL) => {}
            _ => {
                let name = path.file_name().unwrap_or_default();
                return Ok(Err(name.to_string_lossy().into_owned()));
            }
        }
    }
    files.sort();
    Ok(Ok(files))
}

/// A file that this process appends to, locked so that nobody clears it away.
pub(super) struct Appender {
    pub path: PathBuf,
    file: fs_err::File,
    length: u64,
}

impl Appender {
    /// A new file of a name that no other has, with this extension.
    pub fn create(directory: &Path, extension: &str) -> io::Result<Appender> {
        loop {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let name = format!("{:032x}-{:08x}.{extension}", now.as_nanos(), std::process::id());
            if let Some(mut appender) = Appender::take(directory.join(name))? {
                appender.append(format!("{HEADER}\n").as_bytes())?;
                return Ok(appender);
            }
        }
    }

    /// A new file, locked; `None` where a clearing that goes on has taken it between its making and its lock.
    fn take(path: PathBuf) -> io::Result<Option<Appender>> {
        let file = outside::create(&path)?;
        let is_ours = held(&file)? && file.metadata()?.nlink() > 0;
        Ok(is_ours.then_some(Appender { path, file, length: 0 }))
    }

    /// Appends a line; returns where it begins.
    ///
    /// # Errors
    /// When it could not be written whole: then nothing of it stays, as far as the disk allows.
    pub fn append(&mut self, line: &[u8]) -> io::Result<u64> {
        let at = self.length;
        match self.file.write_all(line) {
            Ok(()) => self.length += line.len() as u64,
            Err(error) => {
                // What stays has no newline, or a sum that is wrong.
                let _ = self.file.set_len(at);
                return Err(error);
            }
        }
        Ok(at)
    }

    /// Waits until all is on the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    #[cfg(test)]
    pub fn onto(&mut self, other: &str) {
        self.file = fs_err::OpenOptions::new().write(true).open(other).unwrap();
    }
}

/// Whether some process appends to a file, or clears it away; the file is locked as long as the result is held.
pub(super) fn lock(path: &Path) -> io::Result<Option<fs_err::File>> {
    let file = outside::open_beside(path)?;
    Ok(held(&file)?.then_some(file))
}

/// Locks a file, or a directory; `false` where another has locked it.
pub(super) fn held(file: &fs_err::File) -> io::Result<bool> {
    match file.file().try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The key of a line that may be one.
pub(super) fn key_of(line: &Line) -> Option<Key> {
    line.bytes.as_deref().and_then(line::key)
}
