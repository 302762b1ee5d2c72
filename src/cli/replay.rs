//! `replay`: generate a run's calls again, and say where they differ.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::mpsc::channel;

use clap::Args;

use super::interrupt;
use super::options::{HubFlags, MachineFlags};
use super::order::Order;
use super::run::check_promise;
use super::summary::count;
use crate::cli::exit::{Failure, resume};
use crate::console;
use crate::data::Item;
use crate::experiment::compare::{compare_calls, compare_items};
use crate::experiment::contents::Contents;
use crate::experiment::link::Link;
use crate::experiment::plan;
use crate::panel::PanelError;
use crate::panel::recorder::Recorder;
use crate::record::ItemLine;
use crate::systems::Task;
use crate::systems::in_flight::run_all;

#[derive(Debug, Args)]
pub struct Replay {
    /// The run directory
    directory: PathBuf,
    /// Replay these items only
    #[arg(
        long,
        env = "WARDROUND_ITEMS",
        value_delimiter = ',',
        value_name = "ID,ID"
    )]
    items: Vec<String>,
    /// The models, where they lie elsewhere now
    #[arg(
        long,
        env = "WARDROUND_PANEL",
        value_delimiter = ',',
        value_name = "A,B,C"
    )]
    panel: Vec<String>,
    /// The questions, where they lie elsewhere now
    #[arg(long, env = "WARDROUND_DATA_FILE", value_name = "FILE")]
    data: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineFlags,
    #[command(flatten)]
    hub: HubFlags,
}

impl Replay {
    pub fn run(self) -> Result<(), Failure> {
        let contents = Contents::read(&self.directory)?;
        if let Some(reason) = contents.plan.unrepeatable() {
            return Err(Failure::usage(
                reason,
                "`wardround verify` checks the log, tests/recompute.py what was made of it",
            ));
        }
        let mut order = Order::from_plan(&contents.plan, self.machine, self.hub.options(true)?)?;
        if !self.panel.is_empty() {
            (order.panel, order.slots) = (self.panel, BTreeMap::new());
        }
        if let Some(data) = self.data {
            order.data = data;
        }
        let unknown = self
            .items
            .iter()
            .find(|item| !contents.plan.dataset.items.contains(item));
        if let Some(item) = unknown {
            let message = format!("the run has no item `{item}`");
            return Err(Failure::usage(message, "plan.toml lists the items"));
        }
        let logged = contents.outcomes();
        let is_wanted =
            |item: &str| self.items.is_empty() || self.items.iter().any(|one| one == item);
        let wanted: Vec<&ItemLine> = logged
            .into_values()
            .filter(|item| item.error().is_none() && is_wanted(item.item()))
            .collect();
        if wanted.is_empty() {
            return Err(Failure::outcome(
                format!(
                    "there is nothing to replay: {} has no answer to an item that was asked for",
                    self.directory.display()
                ),
                Some(resume(&self.directory)),
            ));
        }
        let inputs = order.read()?;
        let crew = order.crew()?;
        let prepared = order.prepare(inputs, &crew)?;
        check_promise(
            &self.directory.join(plan::FILE),
            &contents.plan,
            &prepared.plan,
        )?;

        let stop = interrupt::watch();
        let (sender, calls) = channel();
        let started = prepared.start(
            &crew.start()?,
            Recorder::Replay(sender),
            stop.clone(),
            |_| {},
        )?;
        let dataset = &contents.plan.dataset.name;
        let item = |record: &ItemLine| {
            let mut items = started.items.iter();
            items.find(|item| item.id() == record.item())
        };
        let jobs: Vec<(&ItemLine, &Item)> = wanted
            .iter()
            .filter_map(|record| Some((*record, item(record)?)))
            .collect();
        let (differences, found) = channel();
        run_all(
            jobs,
            contents.plan.engine.max_in_flight,
            &stop,
            |(record, item)| {
                let system = &started.system;
                let again = system.answer(&Task {
                    panel: &started.panel,
                    dataset,
                    item,
                    run: record.run(),
                })?;
                for field in compare_items(record, &again)? {
                    // The receiver outlives the jobs.
                    let _ = differences.send(format!("{}: {field}", record.key()));
                }
                Ok::<_, PanelError>(())
            },
        )?;
        if stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(PanelError::Interrupted.into());
        }
        // The engines end, and with them the senders of what was found.
        drop(differences);
        drop(started);
        let mut lines: Vec<String> = found.into_iter().collect();
        let replayed: BTreeMap<_, _> = calls.into_iter().map(|call| (call.key(), call)).collect();
        let expected = contents.calls_by_key();
        for (key, call) in &replayed {
            match expected.get(key) {
                Some(logged) => {
                    let fields = compare_calls(logged, call)?;
                    lines.extend(fields.into_iter().map(|field| format!("{key}: {field}")));
                }
                None => lines.push(format!("{key}: not in the log")),
            }
        }
        let asked: HashSet<_> = wanted
            .iter()
            .map(|item| (item.run(), item.item()))
            .collect();
        let made_up = expected.keys().filter(|key| {
            asked.contains(&(key.run, key.item.as_str())) && !replayed.contains_key(key)
        });
        lines.extend(
            made_up.map(|key| format!("{key}: in the log, but the replay did not make it")),
        );
        lines.sort();
        for line in &lines {
            console::say(line)?;
        }
        console::say(format!(
            "{}, {} replayed, {}",
            count(wanted.len(), "item"),
            count(replayed.len(), "call"),
            count(lines.len(), "difference")
        ))?;
        if lines.is_empty() {
            Ok(())
        } else {
            Err(Failure::outcome(
                format!("the replay differs from {}", self.directory.display()),
                None,
            ))
        }
    }
}
