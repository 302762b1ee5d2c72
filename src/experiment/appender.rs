//! The end of one chained log: lines that are pushed are durable after `commit`, or gone. One process at a time has it.

use std::collections::HashSet;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt;
use fs_err::{File, OpenOptions};

use super::chain::{self, Chain};
use super::error::RunError;
use super::line::Hasher;
use super::link::Link;
use crate::{appended, console, outside};

/// Opens a log at its end, or makes one (mode 0600).
///
/// # Errors
/// What is no file: whoever opens a pipe waits for its other end, and a link leads to a file that is none of ours.
pub fn open(path: &Path, is_new: bool) -> Result<File, RunError> {
    match fs_err::symlink_metadata(path) {
        Ok(there) if !there.is_file() => {
            let (path, reason) = (path.to_owned(), "it is no file".to_owned());
            return Err(RunError::Unreadable { path, reason });
        }
        Err(_) if !is_new => return Err(RunError::Missing { path: path.to_owned() }),
        _ => {}
    }
    Ok(OpenOptions::new().append(true).create(is_new).mode(0o600).open(path)?)
}

/// Keeps other writers out until the file is closed, be it by a kill. Some network file systems have no locks: they forgo the guard,
/// not the run, and the user is told.
pub fn lock(log: &File, directory: &Path) -> Result<(), RunError> {
    match outside::lock(log) {
        Ok(true) => {}
        Ok(false) => return Err(RunError::Busy { path: directory.to_owned() }),
        Err(error) => console::note(format!(
            "note: {} cannot be locked ({error}): let no other process write to it",
            directory.display()
        )),
    }
    Ok(())
}

/// A log that is open for appending.
pub struct Appender<R: Link> {
    file: File,
    hasher: Hasher,
    pub head: String,
    pub lines: u64,
    settled: HashSet<R::Key>,
    pending: Vec<u8>,
    /// What is durable: the head, the lines, and the bytes of the file.
    durable: (String, u64, u64),
    /// Whether the file may have more bytes, of a write that failed.
    is_torn: bool,
}

impl<R: Link> Appender<R> {
    /// Appends behind the lines of `chain`, which was read from `file`; what is torn behind them is cut off, and said.
    pub fn behind(file: File, chain: &Chain<R>, hasher: Hasher) -> Result<Self, RunError> {
        if chain.torn_bytes > 0 {
            file.set_len(chain.bytes)?;
            file.sync_data()?;
            let notice = appended::notice(file.path(), chain.torn_bytes);
            console::note(format!("note: {notice}"));
        }
        Ok(Appender {
            file,
            hasher,
            head: chain.head.clone(),
            lines: chain.lines,
            settled: chain.settled.clone(),
            pending: Vec::new(),
            durable: (chain.head.clone(), chain.lines, chain.bytes),
            is_torn: false,
        })
    }

    /// Chains a record as the next line, to be written by `commit`. On an error nothing has changed.
    pub fn push(&mut self, mut record: R) -> Result<(), RunError> {
        let key = record.key();
        if self.settled.contains(&key) {
            return Err(RunError::Unlogged(format!("{key} is logged already")));
        }
        let (line, hash) = chain::seal(&mut record, self.lines + 1, &self.head, &self.hasher)?;
        self.pending.extend_from_slice(line.as_bytes());
        self.pending.push(b'\n');
        self.head = hash;
        self.lines += 1;
        if record.is_final() {
            self.settled.insert(key);
        }
        Ok(())
    }

    /// Writes what was pushed and waits until it is on the disk.
    ///
    /// On an error the file is cut back to its last durable line, and what was pushed is as if it had not been, but for the keys that no
    /// further line may bear.
    pub fn commit(&mut self) -> Result<(), RunError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.write_pending() {
            self.undo();
            return Err(error.into());
        }
        self.durable = (self.head.clone(), self.lines, self.durable.2 + self.pending.len() as u64);
        self.pending.clear();
        Ok(())
    }

    /// Takes back what was pushed and not written.
    pub fn undo(&mut self) {
        self.pending.clear();
        (self.head, self.lines) = (self.durable.0.clone(), self.durable.1);
        // Where this fails too, the next write does it, or a resumed run finds a torn tail; the first error is the one to report.
        let _ = self.cut();
    }

    fn cut(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.durable.2)?;
            self.file.sync_data()?;
            self.is_torn = false;
        }
        Ok(())
    }

    fn write_pending(&mut self) -> io::Result<()> {
        self.cut()?;
        let there = self.file.metadata()?;
        if there.len() != self.durable.2 || there.nlink() == 0 {
            let path = self.file.path().display();
            return Err(io::Error::other(format!("{path} was cut, written or removed by another")));
        }
        self.is_torn = true;
        self.file.write_all(&self.pending)?;
        self.file.sync_data()?;
        self.is_torn = false;
        Ok(())
    }
}
