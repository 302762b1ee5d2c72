//! The audit log: what was done with which text, a line an event, each chained to the one before; texts lie beside it or nowhere.
//!
//! `DIR/trail.jsonl` has the lines, `DIR/key` the key of the sums, `DIR/content/AA/ID.json` the texts where they are kept. A thread owns
//! the files; whoever tells it of something waits until the line is durable.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use clap::ValueEnum;
use fs_err::os::unix::fs::OpenOptionsExt;
use fs_err::{File, OpenOptions};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::app::Caller;
use super::case::{Ask, words};
use super::error::{ApiError, Code};
use super::system_chat::usage;
use crate::console;
use crate::diagnosis::Failure;
use crate::digest::hex;
use crate::experiment::case::Worked;
use crate::experiment::{clock, line, private_file};
use crate::record::{ItemLine, ItemText};

const TRAIL: &str = "trail.jsonl";
const KEY: &str = "key";
/// Events that wait for the disk.
const WAITING: usize = 256;
/// What the first line of a trail is chained to.
const ANCHOR: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What is kept of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AuditContent {
    /// The texts, in files of their own that can be deleted
    Full,
    /// Sums under a secret key
    Hash,
    /// Nothing
    None,
}

/// Where the log lies, and what it keeps.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    pub directory: PathBuf,
    pub content: AuditContent,
}

/// A line on its way, and who waits for it.
struct Entry {
    event: Map<String, Value>,
    content: Option<(String, Value)>,
    done: SyncSender<bool>,
}

/// The way to the log; without one nothing is kept.
#[derive(Clone, Default)]
pub struct Audit {
    trail: Option<Arc<Trail>>,
}

struct Trail {
    content: AuditContent,
    key: [u8; 32],
    entries: SyncSender<Entry>,
    has_failed: AtomicBool,
}

/// A case that has ended.
pub struct CaseRecord<'a> {
    pub id: Option<&'a str>,
    pub ask: &'a Ask,
    pub caller: Option<&'a Caller>,
    pub outcome: &'a Result<Worked, ApiError>,
    pub elapsed_ms: u64,
}

/// What somebody thinks of a case.
pub struct Feedback<'a> {
    pub case: &'a str,
    pub is_helpful: Option<bool>,
    pub comment: &'a str,
}

impl Audit {
    /// Opens the log of a directory, and makes it where there is none; writes that the server starts.
    ///
    /// # Errors
    /// A directory that cannot be written; a log whose lines are not chained.
    pub fn open(options: &AuditOptions) -> Result<Audit, Failure> {
        let AuditOptions { directory, content } = options;
        private_file::create_directory(directory)?;
        let path = directory.join(TRAIL);
        let (seq, head) = last_line(&path)?;
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        let (entries, inbox) = sync_channel(WAITING);
        let writer =
            Writer { directory: directory.clone(), file, seq, head, started: Instant::now() };
        std::thread::Builder::new()
            .name("serve-audit".to_owned())
            .spawn(move || writer.run(&inbox))?;
        let trail = Trail {
            content: *content,
            key: key(&directory.join(KEY))?,
            entries,
            has_failed: AtomicBool::new(false),
        };
        let audit = Audit { trail: Some(Arc::new(trail)) };
        let event = json!({"event": "start", "version": env!("CARGO_PKG_VERSION"), "content": content.name()});
        audit
            .write(event, None)
            .map_err(|error| Failure::usage(error.message, "give --audit another directory"))?;
        Ok(audit)
    }

    /// Whether anything is kept.
    pub fn is_on(&self) -> bool {
        self.trail.is_some()
    }

    /// # Errors
    /// A log that could not be written: what cannot be logged is not served.
    pub fn check(&self) -> Result<(), ApiError> {
        match &self.trail {
            Some(trail) if trail.has_failed.load(Relaxed) => Err(failed()),
            _ => Ok(()),
        }
    }

    /// Logs an event of a name, by whom.
    ///
    /// # Errors
    /// See [`Audit::check`].
    pub fn event(&self, event: &str, actor: Option<&str>) -> Result<(), ApiError> {
        self.write(json!({"event": event, "actor": actor}), None)
    }

    /// Logs what came of a case: the outcome without its text, and the text as the log is to keep it.
    ///
    /// # Errors
    /// See [`Audit::check`].
    pub fn case(&self, case: &CaseRecord<'_>) -> Result<(), ApiError> {
        let Some(trail) = &self.trail else { return Ok(()) };
        let CaseRecord { id, ask, caller, outcome, elapsed_ms } = case;
        let input = json!(ItemText::from(&ask.item));
        let output = match outcome {
            Ok(worked) => words::outcome(&ask.item, worked),
            Err(error) => error.json(),
        };
        let mut event = json!({
            "event": "case",
            "actor": caller.map(|caller| &caller.key.name),
            "role": caller.map(|caller| caller.key.role.name()),
            "case": id,
            "system": ask.system.id,
            "fingerprint": ask.system.fingerprint,
            "seed": ask.seed,
            "run": ask.run,
            "usage": outcome.as_ref().ok().map(|worked| usage(std::iter::once(worked.usage))),
            "elapsed_ms": elapsed_ms,
            "status": outcome.as_ref().map_or_else(|error| error.code.name(), |_| "done"),
            "record": outcome.as_ref().ok().map(|worked| without_text(&worked.line)),
        });
        let mut content = None;
        if trail.content != AuditContent::None {
            event["input"] = trail.sum(&input).into();
            event["output"] = trail.sum(&output).into();
        }
        if trail.content == AuditContent::Full {
            let id = super::session::random_word()?;
            event["content"] = id.as_str().into();
            content = Some((id, json!({"input": input, "output": output})));
        }
        self.write(event, content)
    }

    /// Logs what somebody thinks of a case.
    ///
    /// # Errors
    /// See [`Audit::check`].
    pub fn feedback(&self, actor: Option<&str>, feedback: &Feedback<'_>) -> Result<(), ApiError> {
        let Some(trail) = &self.trail else { return Ok(()) };
        let Feedback { case, is_helpful, comment } = feedback;
        let mut event =
            json!({"event": "feedback", "actor": actor, "case": case, "is_helpful": is_helpful});
        let mut content = None;
        if !comment.is_empty() && trail.content == AuditContent::Full {
            let id = super::session::random_word()?;
            event["content"] = id.as_str().into();
            content = Some((id, json!({"comment": comment})));
        }
        self.write(event, content)
    }

    fn write(&self, event: Value, content: Option<(String, Value)>) -> Result<(), ApiError> {
        let (Some(trail), Value::Object(event)) = (&self.trail, event) else { return Ok(()) };
        let (done, written) = sync_channel(1);
        let is_sent = trail.entries.send(Entry { event, content, done }).is_ok();
        match is_sent && written.recv().unwrap_or(false) {
            true => Ok(()),
            false => {
                trail.has_failed.store(true, Relaxed);
                Err(failed())
            }
        }
    }
}

fn failed() -> ApiError {
    let message = "the audit log could not be written, and nothing is served without it";
    ApiError::new(Code::AuditFailed, message).retry_after(60)
}

impl AuditContent {
    fn name(self) -> &'static str {
        match self {
            AuditContent::Full => "full",
            AuditContent::Hash => "hash",
            AuditContent::None => "none",
        }
    }
}

impl Trail {
    /// HMAC-SHA-256 (RFC 2104) of a value's JSON: a bare sum of a short note could be guessed.
    fn sum(&self, value: &Value) -> String {
        hex(&hmac(&self.key, value.to_string().as_bytes()))
    }
}

fn hmac(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    const BLOCK: usize = 64;
    let pad = |byte: u8| {
        let mut block = [byte; BLOCK];
        block.iter_mut().zip(key).for_each(|(pad, key)| *pad ^= key);
        block
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
}

/// What an outcome says without a word of the note's or the agents'.
fn without_text(line: &ItemLine) -> Value {
    match line {
        ItemLine::Answer(line) => json!({
            "kind": "question", "item": line.item, "answer": line.answer, "team_confidence": line.team_confidence,
            "rounds_run": line.rounds_run, "calls": line.calls, "tie": line.tie,
        }),
        ItemLine::Note(line) => json!({
            "kind": "note", "item": line.item, "flag": line.flag, "sentence_id": line.sentence_id,
            "confidence": line.confidence, "calls": line.calls,
            "votes": line.detection.as_ref().map(|detection| &detection.flags),
            "located": line.localisation.as_ref().map(|localisation| &localisation.sentence_ids),
        }),
    }
}

/// The key of the sums; made where there is none.
fn key(path: &Path) -> Result<[u8; 32], Failure> {
    if !path.exists() {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| {
            Failure::usage(error.to_string(), "the machine gives no random numbers")
        })?;
        private_file::write(path, &key)?;
    }
    let bytes = fs_err::read(path)?;
    <[u8; 32]>::try_from(bytes.as_slice())
        .map_err(|_| Failure::mismatch(format!("{} is no key of an audit log", path.display())))
}

/// Number and hash of the last line; every line is checked. A last line that was cut off when the power went is an error too: what
/// is missing is for a person to judge.
fn last_line(path: &Path) -> Result<(u64, String), Failure> {
    let bytes = match fs_err::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let (mut seq, mut head) = (0, ANCHOR.to_owned());
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let broken =
            |why: &str| Failure::mismatch(format!("{}, line {}: {why}", path.display(), index + 1));
        let whole = line.strip_suffix(b"\n").ok_or_else(|| broken("the line is cut off"))?;
        let opened = line::open(whole).map_err(|defect| broken(&defect.to_string()))?;
        let fields: Value = serde_json::from_slice(&opened.without_hash())
            .map_err(|error| broken(&error.to_string()))?;
        seq += 1;
        if fields["seq"] != seq || fields["prev"] != head.as_str() {
            return Err(broken("it does not follow the line before"));
        }
        head = opened.hash;
    }
    Ok((seq, head))
}

/// Owns the files.
struct Writer {
    directory: PathBuf,
    file: File,
    seq: u64,
    head: String,
    started: Instant,
}

impl Writer {
    /// Writes what comes until nobody can send any more. Lines that wait together become durable together.
    fn run(mut self, inbox: &Receiver<Entry>) {
        let mut is_whole = true;
        while let Ok(first) = inbox.recv() {
            let entries: Vec<Entry> = std::iter::once(first).chain(inbox.try_iter()).collect();
            // Behind a line that is not whole nothing may follow.
            if is_whole && let Err(error) = self.append(&entries) {
                console::note(format!("the audit log: {error}"));
                is_whole = false;
            }
            for entry in entries {
                let _ = entry.done.send(is_whole);
            }
        }
    }

    fn append(&mut self, entries: &[Entry]) -> std::io::Result<()> {
        let mut text = String::new();
        for entry in entries {
            if let Some((id, content)) = &entry.content {
                self.keep(id, content)?;
            }
            self.seq += 1;
            let mut fields = Map::new();
            fields.insert("seq".to_owned(), self.seq.into());
            fields.insert("at_utc".to_owned(), clock::utc_now().into());
            let monotonic = self.started.elapsed().as_millis() as u64;
            fields.insert("monotonic_ms".to_owned(), monotonic.into());
            fields.extend(entry.event.clone());
            fields.insert("prev".to_owned(), self.head.as_str().into());
            let json = Value::Object(fields).to_string();
            let (sealed, hash) = line::seal(&json[1..json.len() - 1]);
            text += &sealed;
            text.push('\n');
            self.head = hash;
        }
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()
    }

    fn keep(&self, id: &str, content: &Value) -> std::io::Result<()> {
        let folder = self.directory.join("content").join(&id[..2]);
        private_file::create_directory(&folder)?;
        private_file::write(&folder.join(format!("{id}.json")), content.to_string().as_bytes())
    }
}
