//! The end of one chained log: lines that are pushed are durable after `commit`, or gone.

use std::collections::HashSet;
use std::io::{self, Write};

use fs_err::File;

use super::chain::{self, Chain};
use super::error::RunError;
use super::link::Link;

/// A log that is open for appending.
pub(super) struct Appender<R: Link> {
    file: File,
    pub(super) head: String,
    pub(super) lines: u64,
    /// Bytes of the file that are durable whole lines.
    bytes: u64,
    settled: HashSet<R::Key>,
    pending: Vec<u8>,
}

impl<R: Link> Appender<R> {
    /// Appends behind the lines of `chain`, which was read from `file`; what is torn behind them is cut off.
    pub(super) fn behind(file: File, chain: &Chain<R>) -> Result<Self, RunError> {
        if chain.torn_bytes > 0 {
            file.set_len(chain.bytes)?;
            file.sync_data()?;
        }
        Ok(Appender {
            file,
            head: chain.head.clone(),
            lines: chain.records.len() as u64,
            bytes: chain.bytes,
            settled: chain.settled.clone(),
            pending: Vec::new(),
        })
    }

    /// Chains a record as the next line, to be written by `commit`. On an error nothing has changed.
    pub(super) fn push(&mut self, mut record: R) -> Result<(), RunError> {
        let key = record.key();
        if self.settled.contains(&key) {
            return Err(RunError::AlreadyLogged { what: key.to_string() });
        }
        let line = chain::seal(&mut record, self.lines + 1, &self.head)?;
        self.pending.extend_from_slice(line.as_bytes());
        self.pending.push(b'\n');
        self.head = record.hash().to_owned();
        self.lines += 1;
        if record.is_final() {
            self.settled.insert(key);
        }
        Ok(())
    }

    /// Writes what was pushed and waits until it is on the disk.
    ///
    /// On an error the file is cut back to its last durable line, and the appender is of no further use.
    pub(super) fn commit(&mut self) -> Result<(), RunError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.write_pending() {
            // Where this fails too, the resumed run finds a torn tail; the first error is the one to report.
            let _ = self.file.set_len(self.bytes).and_then(|()| self.file.sync_data());
            return Err(error.into());
        }
        self.bytes += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    fn write_pending(&mut self) -> io::Result<()> {
        self.file.write_all(&self.pending)?;
        self.file.sync_data()
    }
}
