//! Owns the files of a trail for a process: lines that wait together become durable together, then their senders are told.
//!
//! Several processes may write to one trail: each batch is written under a lock, behind whatever others have written meanwhile.

use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt;
use fs_err::{File, OpenOptions};
use serde_json::{Map, Value};

use super::event::{Content, Sealed};
use super::files::{self, End};
use super::key::Key;
use super::monotonic::Clock;
use super::witness::{self, Held};
use super::{AuditOptions, Event, Head, content};
use crate::appended;
use crate::console;
use crate::diagnosis::Failure;
use crate::experiment::{clock, line, whole_file};
use crate::outside;

const LOCK: &str = "lock";
/// A file that has grown so long is closed, and another begun.
const LONGEST_FILE: u64 = 64 << 20;
/// A head is told after so many lines, or so much time.
const HEAD_LINES: u64 = 1000;
const HEAD_TIME: Duration = Duration::from_secs(60);
/// How often a trail that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// A line on its way.
pub(super) struct Entry {
    pub sealed: Sealed,
    /// Told whether the line is durable.
    pub done: Box<dyn FnOnce(bool) + Send>,
    /// Whether the process is done with the trail: its head is told.
    pub is_last: bool,
}

/// The files, and where the chain stands.
pub(super) struct Writer {
    directory: PathBuf,
    key: Key,
    reserve_bytes: u64,
    lock: File,
    file: File,
    end: End,
    clock: Clock,
    told: End,
    told_at: Instant,
    /// Whether writing failed last.
    is_failing: Arc<AtomicBool>,
}

impl Writer {
    /// Opens the trail of a directory, and makes it where there is none; a line that was being written when a process was killed is
    /// cut off.
    ///
    /// # Errors
    /// A directory that cannot be written; a trail whose lines are not chained, or do not agree with its head and its key; a disk with
    /// less room than is to stay free.
    pub(super) fn open(
        options: &AuditOptions,
        is_failing: Arc<AtomicBool>,
    ) -> Result<Writer, Failure> {
        let directory = options.directory.clone();
        if !directory.is_dir() || !directory.join(LOCK).exists() {
            whole_file::create_private_directory(&directory)?;
        }
        let lock = open(&directory.join(LOCK))?;
        lock.lock()?;
        let end = files::end(&directory)?;
        let Held { key, is_new, accepted } = witness::hold(&directory, &end, options)?;
        let file = open(&files::current(&directory))?;
        let mut writer = Writer {
            reserve_bytes: options.reserve_bytes,
            directory,
            key,
            lock,
            file,
            told: end.clone(),
            end,
            clock: Clock::start(),
            told_at: Instant::now(),
            is_failing,
        };
        writer.check_room()?;
        writer.cut()?;
        if let Some(event) = accepted {
            writer.end = writer.write(&[event])?;
            writer.told = writer.end.clone();
            let head = writer.head();
            console::note(head.to_string());
            // It may be of an earlier line than the one before: what is accepted may be a trail that was cut off.
            head.write(&writer.directory)?;
        }
        if is_new {
            writer.key.write(&writer.directory)?;
        }
        writer.lock.unlock()?;
        Ok(writer)
    }

    /// The key of the trail's sums.
    pub(super) fn key(&self) -> Key {
        self.key.clone()
    }

    /// Bytes of a line that were cut off when the trail was opened.
    pub(super) fn torn_bytes(&self) -> u64 {
        self.end.torn_bytes
    }

    /// Writes what comes until nobody can send any more.
    pub(super) fn run(mut self, inbox: &Receiver<Entry>) {
        let mut failed_at: Option<String> = None;
        loop {
            let wait = if failed_at.is_some() { RETRY } else { HEAD_TIME };
            let first = match inbox.recv_timeout(wait) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let entries: Vec<Entry> = first.into_iter().chain(inbox.try_iter()).collect();
            let is_last = entries.iter().any(|entry| entry.is_last);
            let (sealed, waiting): (Vec<Sealed>, Vec<_>) =
                entries.into_iter().map(|entry| (entry.sealed, entry.done)).unzip();
            let written = match &failed_at {
                None => self.append(&sealed),
                // What was not logged while it failed stays out; that it failed goes in first.
                Some(since) => self.append(&[failure(since)]).and_then(|()| self.append(&sealed)),
            };
            match (&written, &failed_at) {
                (Ok(()), Some(_)) => {
                    console::note("the audit trail is written again");
                    failed_at = None;
                }
                (Err(error), None) => {
                    console::note(format!("the audit trail could not be written: {error}"));
                    failed_at = Some(clock::utc_now());
                }
                _ => {}
            }
            self.is_failing.store(written.is_err(), Relaxed);
            self.tell_head(is_last);
            for done in waiting {
                done(written.is_ok());
            }
        }
        self.tell_head(true);
    }

    /// Makes lines durable, behind whatever other processes have written.
    fn append(&mut self, sealed: &[Sealed]) -> io::Result<()> {
        if sealed.is_empty() {
            return Ok(());
        }
        self.lock.lock()?;
        let written = self.append_locked(sealed);
        let unlocked = self.lock.unlock();
        written.and(unlocked)
    }

    fn append_locked(&mut self, sealed: &[Sealed]) -> io::Result<()> {
        self.check_room()?;
        self.catch_up()?;
        let written = self.write(sealed);
        if written.is_err() {
            // Where this fails too, the next one to write cuts it off.
            let _ = self.file.set_len(self.end.bytes);
            for Content { id, .. } in sealed.iter().filter_map(|sealed| sealed.content.as_ref()) {
                let _ = content::remove(&self.directory, id);
            }
        }
        self.end = written?;
        match self.end.bytes >= LONGEST_FILE {
            true => self.rotate(),
            false => Ok(()),
        }
    }

    /// Writes texts and their lines. Gives where the chain stands then.
    fn write(&mut self, sealed: &[Sealed]) -> io::Result<End> {
        let mut end = self.end.clone();
        let mut text = String::new();
        for Sealed { fields, content } in sealed {
            if let Some(content) = content {
                content::keep(&self.directory, content)?;
            }
            let (line, hash) = line::seal(&self.fields(end.seq + 1, &end.hash, fields));
            text += &line;
            text.push('\n');
            (end.seq, end.hash) = (end.seq + 1, hash);
        }
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()?;
        end.bytes += text.len() as u64;
        Ok(end)
    }

    /// The fields of a line, without braces.
    fn fields(&self, seq: u64, prev: &str, event: &Map<String, Value>) -> String {
        let mut fields = Map::new();
        fields.insert("seq".to_owned(), seq.into());
        fields.insert("at_utc".to_owned(), clock::utc_now().into());
        fields.insert("monotonic_ms".to_owned(), self.clock.monotonic_ms().into());
        fields.insert("boot_id".to_owned(), self.clock.boot_id.as_str().into());
        fields.extend(event.clone());
        fields.insert("prev".to_owned(), prev.into());
        let json = Value::Object(fields).to_string();
        json[1..json.len() - 1].to_owned()
    }

    /// Reads what other processes have written since, behind what this one wrote last.
    fn catch_up(&mut self) -> io::Result<()> {
        let path = files::current(&self.directory);
        let is_same = match fs_err::metadata(&path) {
            Ok(there) => there.ino() == self.file.metadata()?.ino(),
            Err(_) => false,
        };
        if is_same && self.file.metadata()?.len() == self.end.bytes {
            return Ok(());
        }
        let failed = |failure: Failure| io::Error::other(failure.to_string());
        // In its own file a line is found by its place; a file that was closed since is looked through.
        let is_whole = match is_same && self.end.bytes > 0 {
            true => files::has_at(&path, &self.end).map_err(failed)?,
            false => witness::has(&self.directory, &self.head()).map_err(failed)?,
        };
        if !is_whole {
            let message = format!(
                "{} was cut off or written again: its line {} is not the one that was written here last",
                self.directory.display(),
                self.end.seq
            );
            return Err(io::Error::other(message));
        }
        self.end = files::end(&self.directory).map_err(failed)?;
        self.file = open(&path)?;
        self.cut()
    }

    /// Cuts off a line that was never finished, and says so.
    fn cut(&mut self) -> io::Result<()> {
        if self.end.torn_bytes > 0 {
            let path = files::current(&self.directory);
            console::note(appended::notice(&path, self.end.torn_bytes));
            self.file.set_len(self.end.bytes)?;
            self.file.sync_data()?;
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let number = files::parts(&self.directory) + 1;
        let current = files::current(&self.directory);
        fs_err::rename(&current, files::part(&self.directory, number))?;
        self.file = open(&current)?;
        self.end.bytes = 0;
        outside::sync_directory(&self.directory)
    }

    /// Tells the head where it is time.
    fn tell_head(&mut self, is_last: bool) {
        if self.end.seq == self.told.seq {
            return;
        }
        let lines = self.end.seq.saturating_sub(self.told.seq);
        if is_last || lines >= HEAD_LINES || self.told_at.elapsed() >= HEAD_TIME {
            self.told_at = Instant::now();
            if let Err(error) = self.keep_head() {
                console::note(format!("the head of the audit trail could not be kept: {error}"));
            }
        }
    }

    /// Says the head, and keeps it beside the trail.
    ///
    /// # Errors
    /// One of an earlier line than the head that was told last, which must stay; a disk that takes no more.
    fn keep_head(&mut self) -> io::Result<()> {
        let (head, told) = (self.head(), self.told.seq);
        if head.seq < told {
            let message = format!("it is of line {}, and one of line {told} was told", head.seq);
            return Err(io::Error::other(message));
        }
        console::note(head.to_string());
        self.told = self.end.clone();
        self.lock.lock()?;
        // Other processes write it too, and may be further.
        let beside = Head::beside(&self.directory).ok().flatten();
        let written = match beside.is_some_and(|beside| beside.seq > head.seq) {
            true => Ok(()),
            false => head.write(&self.directory),
        };
        written.and(self.lock.unlock())
    }

    /// The last line, as far as it is known here.
    fn head(&self) -> Head {
        Head { seq: self.end.seq, hash: self.end.hash.clone() }
    }

    fn check_room(&self) -> io::Result<()> {
        if self.reserve_bytes == 0 {
            return Ok(());
        }
        let system = rustix::fs::statvfs(&self.directory)?;
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        if free >= self.reserve_bytes {
            return Ok(());
        }
        let message = format!(
            "{} has {free} bytes free, and --audit-reserve keeps {}",
            self.directory.display(),
            self.reserve_bytes
        );
        Err(io::Error::new(io::ErrorKind::StorageFull, message))
    }
}

/// The line that says that lines could not be written.
fn failure(since: &str) -> Sealed {
    let event = Event::new("error").with("error", "the trail could not be written");
    Sealed { fields: event.with("since_utc", since).into_fields(), content: None }
}

/// Opens a file for appending, and makes it where there is none.
fn open(path: &Path) -> io::Result<File> {
    // A pipe would be waited for; a link leads to a file that is not the trail's.
    if fs_err::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        let problem = format!("{}: it is no file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_cannot_be_kept_whole_leaves_no_text_and_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let options = AuditOptions::new(folder.path());
        let mut writer = Writer::open(&options, Arc::default()).unwrap();
        let sealed = |id: &str| {
            let content = Content { id: id.to_owned(), text: "a note".to_owned() };
            Sealed { fields: Event::new("case").into_fields(), content: Some(content) }
        };
        let (one, two) = ("a".repeat(32), "b".repeat(32));
        // The second has nowhere to go.
        whole_file::create_private_directory(&folder.path().join("content")).unwrap();
        fs_err::write(folder.path().join("content/bb"), "").unwrap();
        writer.append(&[sealed(&one), sealed(&two)]).unwrap_err();
        assert!(!content::exists(folder.path(), &one));
        assert_eq!(fs_err::read(files::current(folder.path())).unwrap(), b"");
        writer.append(&[sealed(&one)]).unwrap();
        assert!(content::exists(folder.path(), &one));
    }

    #[test]
    fn no_head_is_written_over_one_of_a_later_line() {
        let folder = tempfile::tempdir().unwrap();
        let options = AuditOptions::new(folder.path());
        let mut writer = Writer::open(&options, Arc::default()).unwrap();
        let line = || Sealed { fields: Event::new("case").into_fields(), content: None };
        writer.append(&[line()]).unwrap();
        let first = writer.end.clone();
        writer.append(&[line()]).unwrap();
        writer.tell_head(true);
        let told = Head::beside(folder.path()).unwrap().unwrap();
        assert_eq!(told.seq, 2);
        writer.end = first;
        assert!(writer.keep_head().unwrap_err().to_string().contains("one of line 2 was told"));
        writer.tell_head(true);
        assert_eq!(Head::beside(folder.path()).unwrap(), Some(told.clone()));
        // Nor over that of a process that is further.
        writer.told.seq = 0;
        writer.keep_head().unwrap();
        assert_eq!(Head::beside(folder.path()).unwrap(), Some(told));
    }
}
