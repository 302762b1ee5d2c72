//! The audit trail of the commands that execute runs: of each run a line before its first call, and one when it has ended.

use std::sync::{Arc, Mutex, PoisonError};

use super::flags::{begin, user};
use crate::audit::key::random_name;
use crate::audit::{AuditOptions, Event, Trail};
use crate::cli::exit::Failure;
use crate::experiment::contents::Contents;
use crate::experiment::driver::{Began, Observer};
use crate::record::CallLine;

/// Tells a trail of every run that another observer watches; without a trail nobody.
pub struct Watched {
    trail: Option<Trail>,
    by: Arc<dyn Observer>,
    /// Joins the lines of a run: the runs of a command follow one another.
    call: Mutex<String>,
}

impl Watched {
    /// Opens the trail, and logs that `verb` starts.
    ///
    /// # Errors
    /// See [`begin`].
    pub fn begin(
        audit: Option<&AuditOptions>,
        verb: &str,
        sandbox: Option<&str>,
        by: Arc<dyn Observer>,
    ) -> Result<Arc<Watched>, Failure> {
        let trail = audit.map(|options| begin(options, verb, sandbox)).transpose()?;
        Ok(Arc::new(Watched { trail, by, call: Mutex::default() }))
    }

    /// What `work` comes to, once the trail has the end of the command.
    ///
    /// # Errors
    /// Those of `work`; a line that cannot be written.
    pub fn end<T>(&self, worked: Result<T, Failure>) -> Result<T, Failure> {
        if let Some(trail) = &self.trail {
            trail.finish(Event::new("stop").with("actor", user()))?;
        }
        worked
    }
}

impl Observer for Watched {
    fn began(&self, run: &Began<'_>) -> Result<(), Failure> {
        let Some(trail) = &self.trail else { return Ok(()) };
        let call = random_name()?;
        trail.write(run_line("begun", &call, run))?;
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = call;
        Ok(())
    }

    fn ended(&self, run: &Began<'_>, contents: Option<&Contents>) -> Result<(), Failure> {
        let Some(trail) = &self.trail else { return Ok(()) };
        let call = self.call.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let event = run_line("run", &call, run)
            .with("items", contents.map(|run| run.items.records.len()))
            .with("calls_head", contents.map(|run| run.calls.head.as_str()))
            .with("status", if contents.is_some() { "done" } else { "failed" });
        Ok(trail.write(event)?)
    }

    fn begin(&self, total: u64, done: u64) {
        self.by.begin(total, done);
    }

    fn call(&self, call: &CallLine) {
        self.by.call(call);
    }

    fn item(&self) {
        self.by.item();
    }

    fn end(&self) {
        self.by.end();
    }

    fn note(&self, note: &str) {
        self.by.note(note);
    }

    fn heading(&self, heading: &str) {
        self.by.heading(heading);
    }
}

fn run_line(event: &str, call: &str, run: &Began<'_>) -> Event {
    Event::new(event)
        .with("actor", user())
        .with("call", call)
        .with("directory", run.directory.display().to_string())
        .with("system", run.system.as_str())
        .with("data_sha256", run.data_sha256.as_str())
        .with("plan", run.plan_sha256.as_str())
}
