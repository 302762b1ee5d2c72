//! The way to a trail: any number of threads send events, one thread writes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::time::Duration;

use serde_json::Value;

use super::event::Input;
use super::forget::{self, Request, Selection};
use super::key::Key;
use super::writer::{Entry, Writer};
use super::{AuditContent, AuditOptions, Event};
use crate::console;
use crate::diagnosis::Failure;

/// How often texts that are too old are looked for.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A trail that is open for writing.
#[derive(Clone)]
pub struct Trail {
    shared: Arc<Shared>,
}

struct Shared {
    options: AuditOptions,
    key: Key,
    entries: Sender<Entry>,
    is_failing: Arc<AtomicBool>,
}

/// A line that is not in the trail.
#[derive(Debug, thiserror::Error)]
#[error("the audit trail could not be written, and nothing is served without it")]
pub struct NotWritten;

impl crate::diagnosis::Diagnosis for NotWritten {
    fn blame(&self) -> crate::diagnosis::Blame {
        crate::diagnosis::Blame::Machine
    }
}

impl Trail {
    /// Opens the trail of a directory, and makes it where there is none.
    ///
    /// # Errors
    /// A directory that cannot be written, or that others may; a trail that was changed, or has lost its key; a disk with too little room.
    pub fn open(options: &AuditOptions) -> Result<Trail, Failure> {
        let is_failing = Arc::new(AtomicBool::new(false));
        let writer = Writer::open(options, is_failing.clone())?;
        let torn_bytes = writer.torn_bytes();
        let (entries, inbox) = channel();
        let shared = Shared { key: writer.key(), options: options.clone(), entries, is_failing };
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&inbox))?;
        let trail = Trail { shared: Arc::new(shared) };
        if torn_bytes > 0 {
            let event =
                Event::new("error").with("error", "a line was cut short when its process ended");
            trail.write(event.with("cut_bytes", torn_bytes))?;
        }
        if let Some(days) = options.keep_days {
            let trail = trail.clone();
            std::thread::Builder::new()
                .name("audit-keep".to_owned())
                .spawn(move || trail.forget_daily(days))?;
        }
        Ok(trail)
    }

    /// What a line has of a body of JSON, and keeps of it.
    pub fn sent(&self, json: &[u8]) -> Input {
        let Shared { options, key, .. } = &*self.shared;
        let kept = options.content == AuditContent::Full;
        match options.content {
            AuditContent::None => Input::Value(Value::Null),
            _ => Input::Sent {
                sum: key.sum_bytes(json),
                json: kept.then(|| String::from_utf8_lossy(json).into_owned()),
            },
        }
    }

    pub fn options(&self) -> &AuditOptions {
        &self.shared.options
    }

    /// Whether lines could not be written lately: nothing new should be begun.
    pub fn is_failing(&self) -> bool {
        self.shared.is_failing.load(Relaxed)
    }

    /// Sends an event; `done` is told, on the writing thread, whether its line is durable.
    pub fn send(&self, event: Event, done: impl FnOnce(bool) + Send + 'static) {
        self.hand(event, false, Box::new(done));
    }

    /// Sends an event and waits until its line is durable.
    pub fn write(&self, event: Event) -> Result<(), NotWritten> {
        self.wait(event, false)
    }

    /// Sends the last event of this process, and waits until the head is told.
    pub fn finish(&self, event: Event) -> Result<(), NotWritten> {
        self.wait(event, true)
    }

    fn wait(&self, event: Event, is_last: bool) -> Result<(), NotWritten> {
        let (sender, written) = sync_channel(1);
        let done = move |is_written| {
            let _ = sender.send(is_written);
        };
        self.hand(event, is_last, Box::new(done));
        match written.recv() {
            Ok(true) => Ok(()),
            _ => Err(NotWritten),
        }
    }

    fn hand(&self, event: Event, is_last: bool, done: Box<dyn FnOnce(bool) + Send>) {
        let Shared { options, key, entries, is_failing } = &*self.shared;
        match event.seal(key, options) {
            // Where the thread is gone, `done` is dropped, which its receiver sees.
            Ok(sealed) => {
                let _ = entries.send(Entry { sealed, done, is_last });
            }
            Err(_) => {
                is_failing.store(true, Relaxed);
                done(false);
            }
        }
    }

    /// Deletes what is older than so many days, now and every day.
    fn forget_daily(&self, days: u32) {
        loop {
            let request = Request {
                selection: Selection::OlderThan { days },
                why: format!("older than {days} days"),
                actor: None,
            };
            if let Err(error) = forget::forget(self, &request) {
                console::note(format!("old texts of the audit trail were not deleted: {error}"));
            }
            std::thread::sleep(DAY);
        }
    }
}
