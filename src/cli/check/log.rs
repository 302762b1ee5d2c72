//! The audit trail of a check: that the note is about to be worked on, and the result, also if it failed.

use std::time::Instant;

use serde_json::{Value, json};

use crate::analysis::notes::Finding;
use crate::audit::{AuditOptions, Event, Input, Trail, own, random_name};
use crate::cli::exit::Failure;
use crate::diagnosis::Blame;
use crate::digest::sha256;
use crate::experiment::case::Worked;
use crate::experiment::run::Run;
use crate::experiment::spec::Spec;

/// The trail of one check.
pub struct Log {
    trail: Trail,
    /// What both lines have; the name of the call joins them.
    both: Event,
    began: Instant,
    input: Input,
}

impl Log {
    pub fn begin(options: &AuditOptions, spec: &Spec) -> Result<Log, Failure> {
        let trail = Trail::open(options, "check")?;
        let both = own("begun")
            .with("call", random_name()?)
            .with("system", spec.config.entry.name)
            .with("models", spec.panel.clone())
            .with("seed", spec.seed)
            .with("run", 1);
        Ok(Log { trail, both, began: Instant::now(), input: Input::default() })
    }

    /// Before the first call: whatever ends this process then, what it was about to send is known, and to which models.
    pub fn loaded(&mut self, run: &Run) -> Result<(), Failure> {
        self.both = self.both.clone().with("plan", sha256(run.plan.to_toml()?));
        let text = run.texts.first().map_or(Value::Null, |text| json!(text));
        self.input = self.trail.input(text.to_string().as_bytes());
        self.trail.write(self.both.clone().with_input(&self.input))
    }

    /// Logs the outcome.
    pub fn end(self, worked: &Result<Worked, Failure>) -> Result<(), Failure> {
        let Log { trail, both, began, input } = self;
        let status = match worked {
            Ok(worked) if worked.line.error().is_none() => "done",
            Ok(_) => "internal",
            Err(failure) if failure.blame() == Blame::Interrupted => "cancelled",
            Err(_) => "failed",
        };
        let event = both.with("event", "case").with("status", status);
        let mut event = event.with("elapsed_ms", began.elapsed().as_millis() as u64);
        if let Ok(Worked { line, calls, searches, usage }) = worked {
            let finding = line.note().map(|note| json!(Finding::of(note, calls, searches)));
            event = event.with("item", trail.sum(line.item())).with("usage", json!(usage));
            event = trail.ended(event, input, &finding.unwrap_or_default());
        }
        trail.write(event)?;
        trail.finish()
    }
}
