//! The way to a trail: any number of threads tell it of events, and one writes their lines, those that wait together with one sync.

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
use crate::console;
use crate::diagnosis::Failure;
use crate::experiment::appender::{self, Appender};
use crate::experiment::error::RunError;
use crate::experiment::link::Link;
use crate::experiment::{utc_now, whole_file};
use crate::outside;
use crate::sandbox;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a trail that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(1);

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

/// An event, and who is told whether its line is durable; after the last one the writing thread ends.
struct Message {
    event: Event,
    done: Done,
    is_last: bool,
}

impl AuditOptions {
    /// Makes the directory, closed to others, before the process is sealed; one that is empty is closed. What holds a trail is left as it is.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make_directory(&self) -> std::io::Result<()> {
        let held = fs_err::read_dir(&self.directory).is_ok_and(|mut all| all.next().is_some());
        if held { Ok(()) } else { whole_file::create_private_directory(&self.directory) }
    }
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
        appender::lock(&file, directory).map_err(|error| match error {
            RunError::Busy { .. } => Failure::usage(
                format!("another process writes the audit trail {}", directory.display()),
                "wait for it to end or stop it, or give another directory: each has a trail of its own",
            ),
            other => other.into(),
        })?;
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
        let _ = self.0.inbox.send(Message { event, done: Box::new(done), is_last: false });
    }

    /// Waits until the line of an event is durable.
    pub fn write(&self, event: Event) -> Result<(), Failure> {
        self.wait(event, false)
    }

    /// Says that this process is done with the trail, and waits until the head is told and the files are closed.
    pub fn finish(&self) -> Result<(), Failure> {
        self.wait(Event::new("stop"), true)
    }

    fn wait(&self, event: Event, is_last: bool) -> Result<(), Failure> {
        let (sender, written) = sync_channel(1);
        let done = move |is_written| _ = sender.send(is_written);
        let _ = self.0.inbox.send(Message { event, done: Box::new(done), is_last });
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
                events.push(message.event);
                waiting.push(message.done);
                is_last |= message.is_last;
            }
            let is_over = self.minute.elapsed() >= MINUTE;
            if is_over {
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
                    self.failing_since = Some(utc_now());
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
            let at_utc = utc_now();
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
