//! Working a run off: what is not finished, into its directory; then results and report.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::prepare::Prepared;
use super::progress::Progress;
use super::{report, summary};
use crate::cli::exit::{Failure, Interrupted, resume};
use crate::console;
use crate::experiment::contents::Contents;
use crate::experiment::directory::{Directory, Finished};
use crate::experiment::log::Log;
use crate::experiment::results::Results;
use crate::panel::recorder::Recorder;
use crate::panel::{PanelError, Source};
use crate::record::CallLine;
use crate::record::ItemKey;
use crate::systems::in_flight::run_all;
use crate::systems::{Task, case};

/// What runs need beside themselves; several take turns in one.
pub struct Workplace {
    /// The models, started.
    pub crew: Vec<Source>,
    /// Set by an interrupt.
    pub stop: Arc<AtomicBool>,
    /// Calls of other runs, by their requests.
    pub shared: Arc<HashMap<String, CallLine>>,
    pub quiet: bool,
}

impl Workplace {
    /// Runs what is not finished, tells what came of it, and writes results and report.
    ///
    /// # Errors
    /// What stopped the run; items that errored, once everything else is done.
    pub fn run(
        &self,
        prepared: Prepared,
        begun: (Directory, Finished),
        out: &Path,
    ) -> Result<(), Failure> {
        let plan = prepared.plan.clone();
        let (results, contents) = self.work(prepared, begun, out)?;
        summary::tell(&results, &plan, out)?;
        refuse_errors(&contents, out)
    }

    /// Runs what is not finished, and writes results and report.
    ///
    /// # Errors
    /// What stopped the run. Items that errored are none: the results count them.
    pub fn work(
        &self,
        prepared: Prepared,
        (directory, finished): (Directory, Finished),
        out: &Path,
    ) -> Result<(Results, Contents), Failure> {
        for notice in prepared.notices.iter().filter(|_| !self.quiet) {
            console::note(format!("note: {notice}"));
        }
        let log = Log::start(directory)?;
        let total = prepared.items.len() as u64 * u64::from(prepared.plan.runs);
        let done = finished.items.len() as u64;
        let progress = Arc::new(Progress::start(total, done, self.quiet));
        let recorder = Recorder::Log {
            log: log.clone(),
            finished: finished.calls,
            shared: self.shared.clone(),
        };
        let (watcher, stop) = (progress.clone(), self.stop.clone());
        let on_call = move |call: &CallLine| watcher.call(call);
        let started = prepared.start(&self.crew, recorder, stop, on_call)?;
        let plan = &started.plan;
        let dataset = &plan.dataset.name;
        let is_open = |item: &str, run| {
            let key = ItemKey {
                dataset: dataset.clone(),
                run,
                item: item.to_owned(),
            };
            !finished.items.contains_key(&key)
        };
        // The runs of an item side by side: they share its prompt.
        let jobs = started
            .items
            .iter()
            .flat_map(|item| (1..=plan.runs).map(move |run| (item, run)));
        let jobs = jobs
            .filter(|(item, run)| is_open(item.id(), *run))
            .collect();
        let threads = plan.engine.max_in_flight;
        let ended = run_all(jobs, threads, &self.stop, |(item, run)| {
            let answered = started.system.answer(&Task {
                panel: &started.panel,
                dataset,
                item,
                run,
            });
            let record = match answered {
                Ok(record) => record,
                Err(error) if error.concerns_item() => case::failure(dataset, item, run, &error),
                Err(error) => return Err(error),
            };
            log.item(record)?;
            progress.item();
            Ok(())
        });
        match ended {
            Ok(()) if !self.stop.load(Ordering::Relaxed) => {}
            Ok(()) | Err(PanelError::Interrupted) => {
                return Err(Failure::from(Interrupted {
                    items: progress.items(),
                    total,
                    directory: out.to_owned(),
                }));
            }
            Err(error) => return Err(error.into()),
        }
        log.finish()?;
        progress.finish();
        let results = Results::write(out, progress.elapsed_ms())?;
        let contents = Contents::read(out)?;
        report::write(&contents, out)?;
        Ok((results, contents))
    }
}

/// A run with items that errored did not end well, complete as it is.
pub fn refuse_errors(contents: &Contents, out: &Path) -> Result<(), Failure> {
    let outcomes = contents.outcomes();
    let total = outcomes.len();
    let errors: Vec<_> = outcomes
        .iter()
        .filter_map(|(key, record)| Some((key, record.error()?)))
        .collect();
    let Some((first, error)) = errors.first() else {
        return Ok(());
    };
    Err(Failure::outcome(
        format!(
            "{} of {total} items errored, the first of them {}: {error}",
            errors.len(),
            first.item
        ),
        Some(format!("{} with them", resume(out))),
    ))
}
