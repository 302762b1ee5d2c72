//! The audit trail of a check: the models and their configuration, and the result on the note, also if it failed.

use std::time::Instant;

use serde_json::{Value, json};

use super::{Answer, Checked};
use crate::analysis::notes::Finding;
use crate::audit::case::{usage, without_text};
use crate::audit::{AuditOptions, Event, Input, Trail, random_name};
use crate::cli::audit::own;
use crate::cli::exit::Failure;
use crate::diagnosis::Blame;
use crate::experiment::models::Models;
use crate::experiment::plan::MemberPlan;
use crate::experiment::run::Run;
use crate::experiment::spec::Spec;
use crate::record::{ItemLine, Usage};
use crate::systems::Parts;

/// What is known of a check before its note is processed.
pub struct About {
    item: String,
    text: Value,
    seats: Vec<Value>,
    /// The fingerprint of each seat's model; `None` if one is remote.
    models: Option<Vec<String>>,
    fingerprint: Option<String>,
}

impl About {
    pub fn of(run: &Run, models: &Models) -> About {
        let plan = &run.plan;
        let of_model = |index: &usize| {
            let description = models.descriptions.get(*index)?;
            let device = &models.devices[index % models.devices.len()];
            Some(description.fingerprint(&description.identity(device)))
        };
        let models: Option<Vec<String>> = run.models.iter().map(of_model).collect();
        let fingerprint = models.as_ref().map(|models| {
            let models: Vec<&str> = models.iter().map(String::as_str).collect();
            let files = plan.files_read();
            run.config.fingerprint(&Parts {
                models: &models,
                prompts_sha256: &plan.prompts_sha256,
                files: &files,
            })
        });
        let seat = |member: &MemberPlan| json!({"agent": member.agent, "model": member.backbone});
        About {
            item: run.items.first().map_or_else(String::new, |item| item.id().to_owned()),
            text: run.texts.first().map_or(Value::Null, |text| json!(text)),
            seats: plan.panel.iter().map(seat).collect(),
            models,
            fingerprint,
        }
    }
}

/// The trail of one check.
pub struct Log {
    trail: Trail,
    /// Joins the line before the first call with that of the outcome.
    call: String,
    system: String,
    seed: u64,
    input: Input,
    began: Instant,
}

impl Log {
    pub fn begin(options: &AuditOptions, spec: &Spec) -> Result<Log, Failure> {
        Ok(Log {
            trail: Trail::open(options, "check")?,
            call: random_name()?,
            system: spec.config.entry.name.to_owned(),
            seed: spec.seed,
            input: Input::default(),
            began: Instant::now(),
        })
    }

    /// Logs the models and the system, and that the note is about to be worked on.
    pub fn loaded(&mut self, about: &About) -> Result<(), Failure> {
        let prints = about.models.iter().flatten().map(Some).chain(std::iter::repeat(None));
        let mut models: Vec<Value> = about
            .seats
            .iter()
            .zip(prints)
            .map(|(seat, print)| json!({"id": seat["model"], "fingerprint": print}))
            .collect();
        models.dedup();
        let event = own("config")
            .with("models", models)
            .with("systems", json!([{"id": self.system, "fingerprint": about.fingerprint}]));
        self.trail.write(event)?;
        // Before the first call: whatever ends this process then, what it was about to send is known.
        self.input = self.trail.input(about.text.to_string().as_bytes());
        let event = self
            .event("begun")
            .with("fingerprint", about.fingerprint.as_deref())
            .with_input(&self.input);
        self.trail.write(event)
    }

    fn event(&self, name: &str) -> Event {
        own(name)
            .with("call", self.call.as_str())
            .with("system", self.system.as_str())
            .with("seed", self.seed)
            .with("run", 1)
    }

    /// Logs the outcome.
    pub fn end(mut self, worked: &Result<Checked, Failure>) -> Result<(), Failure> {
        let event = match worked {
            Ok(checked) => self.outcome(checked),
            Err(failure) => {
                let is_stopped = failure.blame() == Blame::Interrupted;
                self.case(None, if is_stopped { "cancelled" } else { "failed" })
            }
        };
        self.trail.write(event)?;
        self.trail.finish()
    }

    fn case(&self, fingerprint: Option<&str>, status: &str) -> Event {
        self.event("case")
            .with("fingerprint", fingerprint)
            .with("elapsed_ms", self.began.elapsed().as_millis() as u64)
            .with("status", status)
    }

    fn outcome(&mut self, Checked { about, answer, .. }: &Checked) -> Event {
        let Answer { record, calls, searches } = answer;
        let status = if record.error.is_some() { "internal" } else { "done" };
        let item = ItemLine::Note(record.clone());
        let sum = calls.iter().fold(Usage::default(), |sum, call| sum.and(call.usage));
        let event = self
            .case(about.fingerprint.as_deref(), status)
            .with("item", self.trail.sum(&about.item))
            .with("usage", usage(sum))
            .with("record", self.trail.sum("").map(|_| without_text(&item)));
        let input = std::mem::take(&mut self.input);
        self.trail.ended(event, input, &json!(Finding::of(record, calls, searches)))
    }
}
