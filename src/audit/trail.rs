//! The way to a trail: any number of threads tell it of events, and one writes their lines, those that wait together with one sync.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use super::forget;
use super::key::{self, TrailKey};
use super::line::{Event, Input, Line};
use super::survey::{ANCHOR, Survey, head, refuse_open, write_head};
use super::{AuditContent, AuditOptions, content, own, random_name};
use crate::appended;
use crate::console;
use crate::diagnosis::Failure;
use crate::experiment::appender::{self, Appender};
use crate::experiment::error::RunError;
use crate::experiment::link::Link;
use crate::experiment::{clock, whole_file};
use crate::outside;
use crate::sandbox;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a trail that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Events of a minute that are counted apart; more are counted together.
const MOST_COUNTED: usize = 256;

/// A trail that is open for writing, by this process alone.
#[derive(Clone)]
pub struct Trail(Arc<Shared>);

struct Shared {
    options: AuditOptions,
    key: TrailKey,
    inbox: Sender<Message>,
    is_failing: Arc<AtomicBool>,
}

type Done = Box<dyn FnOnce(bool) + Send>;

enum Message {
    Line(Event, Done),
    Counted(Event),
    Last(Event, Done),
}

impl Trail {
    /// Opens the trail of a directory, makes it where there is none, and says in it that `verb` starts, under which sandbox.
    ///
    /// # Errors
    /// A directory that cannot be written, or that others may read or write; a trail that was changed, has lost its key, or that another
    /// process writes.
    pub fn open(options: &AuditOptions, verb: &str) -> Result<Trail, Failure> {
        let directory = &options.directory;
        if !directory.is_dir() {
            whole_file::create_private_directory(directory)?;
        }
        refuse_open(directory)?;
        let file = appender::open(&directory.join(Line::FILE), true)?;
        let unlocked = appender::lock(&file, directory).map_err(|error| match error {
            RunError::Busy { .. } => Failure::usage(
                format!("another process writes the audit trail {}", directory.display()),
                "wait for it to end or stop it, or give another directory: each has a trail of its own",
            ),
            other => other.into(),
        })?;
        unlocked.into_iter().for_each(console::note);
        let is_new = file.metadata()?.len() == 0 && head(directory)?.is_none();
        if is_new {
            // A first start that was cut off may have made one.
            if !directory.join(key::FILE).exists() {
                TrailKey::make(directory)?;
            }
            write_head(directory, ANCHOR)?;
        }
        let key = TrailKey::read(directory)?;
        refuse_open(&directory.join(key::FILE))?;
        let survey = Survey::read(directory, &[], |_| ())?;
        survey.clean(directory)?;
        let torn_bytes = survey.chain.torn_bytes;
        let log = Appender::behind(file, &survey.chain, key.0.clone())?;
        let (inbox, messages) = channel();
        let is_failing = Arc::new(AtomicBool::new(false));
        let writer = Writer {
            options: options.clone(),
            key: key.clone(),
            told: log.lines,
            log,
            counted: BTreeMap::new(),
            minute: Instant::now(),
            failing_since: None,
            is_failing: is_failing.clone(),
        };
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || writer.run(&messages))?;
        let trail = Trail(Arc::new(Shared { options: options.clone(), key, inbox, is_failing }));
        let boot = outside::text("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let start = own("start")
            .with("verb", verb)
            .with("version", env!("CARGO_PKG_VERSION"))
            .with("keeps", json!(options.content))
            .with("sandbox", sandbox::held())
            .with("boot_id", boot.trim())
            .with("cut_bytes", Some(torn_bytes).filter(|bytes| *bytes > 0));
        trail.write(start)?;
        if torn_bytes > 0 {
            console::note(appended::notice(&directory.join(Line::FILE), torn_bytes));
        }
        if let Some(days) = options.keep_days {
            let trail = trail.clone();
            let daily = move || trail.forget_daily(days);
            std::thread::Builder::new().name("audit-keep".to_owned()).spawn(daily)?;
        }
        Ok(trail)
    }

    pub fn options(&self) -> &AuditOptions {
        &self.0.options
    }

    /// Whether lines could not be written lately: nothing new should be begun.
    pub fn is_failing(&self) -> bool {
        self.0.is_failing.load(Relaxed)
    }

    /// The sum of a text under the key.
    pub fn sum(&self, text: impl AsRef<[u8]>) -> String {
        self.0.key.sum(text)
    }

    /// What is kept of a text of JSON that went in.
    pub fn input(&self, json: &[u8]) -> Input {
        let is_kept = self.0.options.content == AuditContent::Full;
        let kept = is_kept.then(|| String::from_utf8_lossy(json).into_owned());
        Input { sum: Some(self.sum(json)), json: kept }
    }

    /// The event with what went in and what came out, as far as it is kept.
    pub fn ended(&self, event: Event, input: Input, output: &Value) -> Event {
        let came = Some(output).filter(|output| !output.is_null());
        let sum = came.map(|output| self.sum(output.to_string()));
        let mut event = event.with_input(&input).with("output", sum);
        if self.0.options.content == AuditContent::Full {
            // No two texts are one file, and no sum of a deleted one can be guessed.
            let salt = random_name().unwrap_or_default();
            let input = input.json.as_deref().unwrap_or("null");
            let text = format!("{{\"salt\":\"{salt}\",\"input\":{input},\"output\":{output}}}");
            event.text = Some(text);
        }
        event
    }

    /// Tells it of an event; `done` is told, on the writing thread, whether its line is durable.
    pub fn send(&self, event: Event, done: impl FnOnce(bool) + Send + 'static) {
        // Where the thread is gone, `done` is dropped, which its receiver sees.
        let _ = self.0.inbox.send(Message::Line(event, Box::new(done)));
    }

    /// Tells it of an event that has one line a minute however often it happens, and one with a count when the minute ends.
    pub fn count(&self, event: Event) {
        let _ = self.0.inbox.send(Message::Counted(event));
    }

    /// Waits until the line of an event is durable.
    pub fn write(&self, event: Event) -> Result<(), Failure> {
        self.wait(|done| Message::Line(event, done))
    }

    /// Says that this process is done with the trail, and waits until the head is told and the files are closed.
    pub fn finish(&self) -> Result<(), Failure> {
        self.wait(|done| Message::Last(Event::new("stop"), done))
    }

    fn wait(&self, message: impl FnOnce(Done) -> Message) -> Result<(), Failure> {
        let (sender, written) = sync_channel(1);
        let done = move |is_written| {
            let _ = sender.send(is_written);
        };
        let _ = self.0.inbox.send(message(Box::new(done)));
        match written.recv() {
            Ok(true) => Ok(()),
            _ => Err(Failure::machine(
                "the audit trail could not be written, and nothing is done without it",
                "see the note before",
            )),
        }
    }

    /// Deletes what is older than so many days, now and every day.
    fn forget_daily(&self, days: u32) {
        loop {
            let why = format!("older than {days} days");
            let limit = SystemTime::now().checked_sub(DAY * days).unwrap_or(SystemTime::UNIX_EPOCH);
            let limit = humantime::format_rfc3339_seconds(limit).to_string();
            if let Err(error) = forget::forget(self, |line| line.at_utc <= limit, &why) {
                console::note(format!("old texts of the audit trail were not deleted: {error}"));
            }
            std::thread::sleep(DAY);
        }
    }
}

/// What has the log, and what was not told of it yet.
struct Writer {
    options: AuditOptions,
    key: TrailKey,
    log: Appender<Line>,
    /// Lines under the head that was told last.
    told: u64,
    /// Events of this minute by their words, and how often they happened since their line.
    counted: BTreeMap<String, (Event, u64)>,
    minute: Instant,
    failing_since: Option<String>,
    is_failing: Arc<AtomicBool>,
}

impl Writer {
    /// Writes what comes until nobody can send any more.
    fn run(mut self, inbox: &Receiver<Message>) {
        loop {
            let wait = match self.failing_since {
                Some(_) => RETRY,
                None => MINUTE.saturating_sub(self.minute.elapsed()),
            };
            let first = match inbox.recv_timeout(wait) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let (mut events, mut waiting, mut is_last) = (Vec::new(), Vec::new(), false);
            for message in first.into_iter().chain(inbox.try_iter()) {
                match message {
                    Message::Line(event, done) => {
                        events.push(event);
                        waiting.push(done);
                    }
                    Message::Counted(event) => events.extend(self.count(event)),
                    Message::Last(event, done) => {
                        events.extend(self.counts());
                        events.push(event);
                        waiting.push(done);
                        is_last = true;
                    }
                }
            }
            let is_over = self.minute.elapsed() >= MINUTE;
            if is_over {
                events.extend(self.counts());
                self.minute = Instant::now();
            }
            let is_written = self.write(events);
            self.is_failing.store(!is_written, Relaxed);
            if (is_last || is_over) && self.log.lines != self.told {
                self.tell_head();
            }
            if is_last {
                // Another may open the trail by the time that anybody is told.
                drop(self);
                return waiting.into_iter().for_each(|done| done(is_written));
            }
            waiting.into_iter().for_each(|done| done(is_written));
        }
    }

    /// The event, if it is the first of its minute.
    fn count(&mut self, event: Event) -> Option<Event> {
        let name = event.fields.get("event").and_then(Value::as_str).unwrap_or_default().to_owned();
        let words = Value::Object(event.fields.clone()).to_string();
        let is_full = self.counted.len() >= MOST_COUNTED && !self.counted.contains_key(&words);
        let (words, event) = match is_full {
            true => (name.clone(), Event::new(&name)),
            false => (words, event),
        };
        match self.counted.get_mut(&words) {
            Some((_, count)) => {
                *count += 1;
                None
            }
            None => {
                self.counted.insert(words, (event.clone(), 0));
                Some(event)
            }
        }
    }

    /// What happened more than once in the minute that ends.
    fn counts(&mut self) -> Vec<Event> {
        let counted = std::mem::take(&mut self.counted).into_values();
        let more = counted.filter(|(_, count)| *count > 0);
        more.map(|(event, count)| event.with("count", count + 1)).collect()
    }

    /// Makes the lines of events durable; whether they are. What was not written while it failed stays out, and that it failed is said.
    fn write(&mut self, mut events: Vec<Event>) -> bool {
        if let Some(since) = &self.failing_since {
            let failure = Event::new("error").with("error", "the trail could not be written");
            events.insert(0, failure.with("since_utc", since.as_str()));
        }
        let mut kept = Vec::new();
        match self.append(events, &mut kept) {
            Ok(()) => {
                if self.failing_since.take().is_some() {
                    console::note("the audit trail is written again");
                }
                true
            }
            Err(error) => {
                self.log.undo();
                for sum in kept {
                    let _ = content::remove(&self.options.directory, &sum);
                }
                if self.failing_since.is_none() {
                    console::note(format!("the audit trail could not be written: {error}"));
                    self.failing_since = Some(clock::utc_now());
                }
                false
            }
        }
    }

    fn append(&mut self, events: Vec<Event>, kept: &mut Vec<String>) -> Result<(), Failure> {
        let boot = clock_gettime(ClockId::Boottime);
        let up_ms = boot.tv_sec as u64 * 1000 + boot.tv_nsec as u64 / 1_000_000;
        for Event { mut fields, text } in events {
            if let Some(text) = text {
                let sum = content::keep(&self.options.directory, &self.key, &text)?;
                fields.insert("content".to_owned(), sum.as_str().into());
                kept.push(sum);
            }
            let at_utc = clock::utc_now();
            self.log.push(Line { at_utc, up_ms, fields, ..Line::default() })?;
        }
        Ok(self.log.commit()?)
    }

    fn tell_head(&mut self) {
        let words = format!("audit head {} {}", self.log.lines, self.log.head);
        console::note(&words);
        match write_head(&self.options.directory, &words) {
            Ok(()) => self.told = self.log.lines,
            Err(error) => {
                console::note(format!("the head of the audit trail could not be kept: {error}"));
            }
        }
    }
}
