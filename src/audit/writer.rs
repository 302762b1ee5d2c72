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
use super::files::{self, End, Line};
use super::key::Key;
use super::{AuditOptions, Event, Head, content, head, read};
use crate::appended;
use crate::console;
use crate::diagnosis::Failure;
use crate::experiment::{clock, line, whole_file};

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
    /// A directory that cannot be written; a trail whose lines are not chained; a disk with less room than is to stay free.
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
        let accepted = hold_against_its_head(&directory, &end, options)?;
        let file = open(&files::current(&directory))?;
        let mut writer = Writer {
            reserve_bytes: options.reserve_bytes,
            directory,
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
            writer.tell_head(true);
        }
        writer.lock.unlock()?;
        Ok(writer)
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
            false => {
                let written = Head { seq: self.end.seq, hash: self.end.hash.clone() };
                has(&self.directory, &written).map_err(failed)?
            }
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
        File::open(&self.directory)?.sync_all()
    }

    /// Tells the head where it is time.
    fn tell_head(&mut self, is_last: bool) {
        let lines = self.end.seq - self.told.seq.min(self.end.seq);
        let is_due = is_last || lines >= HEAD_LINES || self.told_at.elapsed() >= HEAD_TIME;
        if lines == 0 || !is_due {
            return;
        }
        let head = Head { seq: self.end.seq, hash: self.end.hash.clone() };
        console::note(head.to_string());
        // Other processes write it too.
        let written = self.lock.lock().and_then(|()| head.write(&self.directory));
        if let Err(error) = written.and(self.lock.unlock()) {
            console::note(format!("the head of the audit trail could not be kept: {error}"));
        }
        (self.told, self.told_at) = (self.end.clone(), Instant::now());
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

/// Holds a trail's end against the head that was told last. A head is written behind the lines that it is of, so no power cut leaves
/// one that is ahead: lines were cut off, or written again. Where somebody goes on all the same, gives the line that says so.
///
/// # Errors
/// A trail that is behind its head, has another line there, or has lost its head.
fn hold_against_its_head(
    directory: &Path,
    end: &End,
    options: &AuditOptions,
) -> Result<Option<Sealed>, Failure> {
    let head = match Head::beside(directory)? {
        // A trail's key is made behind its first head.
        None if end.seq == 0 && Key::find(directory)?.is_none() => {
            Head::before_the_first().write(directory)?;
            return Ok(None);
        }
        head => head,
    };
    let told = match &head {
        None => format!("{} is missing", head::FILE),
        Some(head) if head.seq > end.seq => {
            format!("its head is of line {}, and it ends with line {}", head.seq, end.seq)
        }
        Some(head) if !has(directory, head)? => {
            format!("its line {} is not the one that its head is of", head.seq)
        }
        Some(_) => return Ok(None),
    };
    let Some(accepted) = &options.accepted else {
        return Err(Failure::missing(
            format!("the audit trail {} was cut off or written again: {told}", directory.display()),
            "find out who did; `wardround audit accept DIR --why TEXT` goes on, and writes that down",
        ));
    };
    let event = Event::new("accept")
        .with("actor", accepted.actor.as_str())
        .with("why", accepted.why.as_str())
        .with("problem", told)
        .with("head_seq", head.as_ref().map(|head| head.seq))
        .with("head", head.map(|head| head.hash))
        .with("end_seq", end.seq);
    Ok(Some(Sealed { fields: event.into_fields(), content: None }))
}

/// Whether the trail has the line of a head.
fn has(directory: &Path, head: &Head) -> Result<bool, Failure> {
    let mut found = *head == Head::before_the_first();
    read::raw(directory, |raw| {
        let opened = Line::open(&raw.bytes).ok().filter(|line| line.seq() == head.seq);
        found |= opened.is_some_and(|line| line.hash == head.hash);
        Ok(())
    })?;
    Ok(found)
}

/// The line that says that lines could not be written.
fn failure(since: &str) -> Sealed {
    let event = Event::new("error").with("error", "the trail could not be written");
    Sealed { fields: event.with("since_utc", since).into_fields(), content: None }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// A clock that nobody can set: how long the machine has been up, and which start of it that was.
struct Clock {
    boot_id: String,
    up_ms: u64,
    began: Instant,
}

impl Clock {
    /// Where the system does not tell, it counts from here.
    fn start() -> Clock {
        let read = |path: &str| fs_err::read_to_string(path).unwrap_or_default();
        let up = read("/proc/uptime");
        let seconds: f64 =
            up.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
        Clock {
            boot_id: read("/proc/sys/kernel/random/boot_id").trim().to_owned(),
            up_ms: (seconds * 1000.0) as u64,
            began: Instant::now(),
        }
    }

    fn monotonic_ms(&self) -> u64 {
        self.up_ms + self.began.elapsed().as_millis() as u64
    }
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
        // The second has nowhere to go.
        whole_file::create_private_directory(&folder.path().join("content")).unwrap();
        fs_err::write(folder.path().join("content/bb"), "").unwrap();
        writer.append(&[sealed("aa1"), sealed("bb1")]).unwrap_err();
        assert!(!content::exists(folder.path(), "aa1"));
        assert_eq!(fs_err::read(files::current(folder.path())).unwrap(), b"");
        writer.append(&[sealed("aa1")]).unwrap();
        assert!(content::exists(folder.path(), "aa1"));
    }
}
