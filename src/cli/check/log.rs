//! The audit trail of a check: the models and their configuration, and the result on the note, also if it failed.

use std::time::Instant;

use serde_json::{Value, json};

use crate::analysis::notes::Finding;
use crate::audit::{AuditOptions, Event, Input, Trail, random_name};
use crate::cli::audit::own;
use crate::cli::exit::Failure;
use crate::diagnosis::Blame;
use crate::experiment::case::Worked;
use crate::experiment::models::Models;
use crate::experiment::run::Run;
use crate::experiment::spec::Spec;

/// The trail of one check.
pub struct Log {
    trail: Trail,
    /// Joins the line before the first call with that of the outcome.
    call: String,
    system: String,
    seed: u64,
    began: Instant,
    /// What is known once the models are: of a system with a remote member no fingerprint.
    fingerprint: Option<String>,
    input: Input,
}

impl Log {
    pub fn begin(options: &AuditOptions, spec: &Spec) -> Result<Log, Failure> {
        Ok(Log {
            trail: Trail::open(options, "check")?,
            call: random_name()?,
            system: spec.config.entry.name.to_owned(),
            seed: spec.seed,
            began: Instant::now(),
            fingerprint: None,
            input: Input::default(),
        })
    }

    /// Logs the models and the system, and that the note is about to be worked on.
    pub fn loaded(&mut self, run: &Run, models: &Models) -> Result<(), Failure> {
        let plan = &run.plan;
        let print = |index: &usize| {
            let description = models.descriptions.get(*index)?;
            let device = &models.devices[index % models.devices.len()];
            Some(description.fingerprint(&description.identity(device)))
        };
        let prints: Vec<Option<String>> = run.models.iter().map(print).collect();
        let local: Option<Vec<&str>> = prints.iter().map(Option::as_deref).collect();
        let (files, prompts_sha256) = (plan.files_read(), &plan.prompts_sha256);
        let fingerprint =
            |models: Vec<&str>| run.config.fingerprint(&models, prompts_sha256, &files);
        self.fingerprint = local.map(fingerprint);
        let seats = plan.panel.iter().zip(&prints);
        let model = |id: &str, print: &Option<String>| json!({"id": id, "fingerprint": print});
        let mut models: Vec<Value> =
            seats.map(|(one, print)| model(&one.backbone, print)).collect();
        models.dedup();
        let systems = json!([{"id": self.system, "fingerprint": self.fingerprint}]);
        self.trail.write(own("config").with("models", models).with("systems", systems))?;
        // Before the first call: whatever ends this process then, what it was about to send is known.
        let text = run.texts.first().map_or(Value::Null, |text| json!(text));
        self.input = self.trail.input(text.to_string().as_bytes());
        self.trail.write(self.event("begun").with_input(&self.input))
    }

    fn event(&self, name: &str) -> Event {
        own(name)
            .with("call", self.call.as_str())
            .with("system", self.system.as_str())
            .with("fingerprint", self.fingerprint.as_deref())
            .with("seed", self.seed)
            .with("run", 1)
    }

    /// Logs the outcome.
    pub fn end(mut self, worked: &Result<Worked, Failure>) -> Result<(), Failure> {
        let status = match worked {
            Ok(worked) if worked.line.error().is_none() => "done",
            Ok(_) => "internal",
            Err(failure) if failure.blame() == Blame::Interrupted => "cancelled",
            Err(_) => "failed",
        };
        let event = self.event("case").with("status", status);
        let mut event = event.with("elapsed_ms", self.began.elapsed().as_millis() as u64);
        if let Ok(worked) = worked {
            let Worked { line, calls, searches, .. } = worked;
            let finding = line.note().map(|note| json!(Finding::of(note, calls, searches)));
            event =
                event.with("item", self.trail.sum(line.item())).with("usage", json!(worked.usage));
            let (input, output) = (std::mem::take(&mut self.input), finding.unwrap_or_default());
            event = self.trail.ended(event, input, &output);
        }
        self.trail.write(event)?;
        self.trail.finish()
    }
}
