//! Executes runs, one after another without a pause between them: works on every item that is not finished.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::contents::Contents;
use super::directory::Directory;
use super::error::resume;
use super::models::Loaded;
use super::queued::Queued;
use super::run::Run;
use super::spec::Spec;
use crate::data::Item;
use crate::diagnosis::{Blame, Failure};
use crate::panel::backbone::Backbone;
use crate::record::{CallLine, ItemLine, count};
use crate::systems::in_flight::run_in_turn;

/// Told of the progress of runs; every method may be called from many threads.
pub trait Observer: Send + Sync {
    /// Before the first call: the items of all runs over their repetitions, and the calls that they take at most.
    fn began(&self, _items: u64, _calls: u64) {}
    /// Of a run that an earlier session began: the items that it finished, and the calls that they count for.
    fn resumed(&self, _items: u64, _calls: u64) {}
    fn call(&self, _call: &CallLine) {}
    /// An item is finished, which counts for so many calls.
    fn item(&self, _calls: u64) {}
    /// The runs are complete, or broke off.
    fn ended(&self) {}
    /// They are complete, by these engines.
    fn complete(&self, _engines: &[Arc<Backbone>]) {}
    /// What the user should know, or what runs next of several.
    fn say(&self, _line: &str) {}
}

/// Watches nothing.
impl Observer for () {}

/// What runs share: loaded models, the stop flag and the observer.
pub struct Driver {
    pub loaded: Loaded,
    /// Set from outside to stop.
    pub stop: Arc<AtomicBool>,
    pub observer: Arc<dyn Observer>,
    /// What `resume` goes on with: the run's own directory, or its recipe's.
    pub folder: PathBuf,
}

/// A run that was executed, its directory read back.
#[derive(Debug)]
pub struct Executed {
    pub contents: Contents,
    /// Of this session.
    pub elapsed_ms: u64,
}

/// Reads, resolves, loads and executes a run into the new directory `out`, until `stop` is set.
///
/// # Errors
/// Whatever is missing or malformed; what stopped the run. Items that errored are none: their lines say so.
pub fn execute(
    spec: Spec,
    out: &Path,
    observer: Arc<dyn Observer>,
    stop: Arc<AtomicBool>,
) -> Result<Executed, Failure> {
    let (run, models) = spec.prepare()?;
    let directory = Directory::create(out, &run.plan, &run.items)?;
    let folder = out.to_owned();
    Driver { loaded: models.start()?, stop, observer, folder }.execute(run, directory, out)
}

impl Driver {
    /// Works on every item of a run that is not finished, and reads the whole run back.
    ///
    /// # Errors
    /// What stopped the run. Items that errored are none: their lines say so.
    pub fn execute(&self, run: Run, directory: Directory, out: &Path) -> Result<Executed, Failure> {
        let clock = Instant::now();
        self.execute_all(&[Queued::alone(run, out.to_owned(), directory)], |_, _| Ok(()))?;
        let elapsed_ms = clock.elapsed().as_millis() as u64;
        Ok(Executed { contents: Contents::read(out)?, elapsed_ms })
    }

    /// Works on every item of several runs that is not finished. While the last items of a run are answered, the next run begins, so that
    /// batches stay full. An item is answered in one run at a time: the next one finds the calls that both make. A run whose logs are whole
    /// is told to `on_end`, by its place and the milliseconds it took.
    ///
    /// # Errors
    /// As [`Driver::execute`]; what `on_end` says.
    pub fn execute_all(
        &self,
        queued: &[Queued],
        on_end: impl Fn(usize, u64) -> Result<(), Failure> + Sync,
    ) -> Result<(), Failure> {
        let items = queued.iter().map(Queued::left).sum();
        self.observer.began(items, queued.iter().map(|one| one.run.calls()).sum());
        let taken_before = self.loaded.calls.taken();
        let jobs = queued.iter().enumerate().flat_map(|(place, one)| {
            let dataset = &*one.run.plan.dataset.name;
            one.jobs().map(move |(item, run)| ((dataset, item.id(), run), (place, item, run)))
        });
        let at_once = queued.iter().map(|one| one.run.plan.host.engine.max_in_flight).min();
        let work = |(place, item, run): (usize, &Item, u32)| match queued[place]
            .answer(self, item, run)?
        {
            Some(elapsed_ms) => on_end(place, elapsed_ms),
            None => Ok(()),
        };
        let ended = run_in_turn(jobs.collect(), at_once.unwrap_or(1), &self.stop, work);
        self.observer.ended();
        match ended {
            Ok(()) if !self.stop.load(Ordering::Relaxed) => {}
            Err(error) if error.blame() != Blame::Interrupted => return Err(error),
            _ => {
                let left: u64 = queued.iter().map(Queued::left).sum();
                let message =
                    format!("interrupted after {} of {}", items - left, count(items, "item"));
                return Err(Failure::interrupted(message, resume(&self.folder)));
            }
        }
        self.observer.complete(&self.loaded.backbones);
        let taken = self.loaded.calls.taken() - taken_before;
        if taken > 0 {
            let calls = count(taken, "call");
            self.observer.say(&format!("note: {calls} came from the store of calls"));
        }
        Ok(())
    }
}

/// Refuses a complete run with items that errored, and one of whose items none has a result.
///
/// # Errors
/// How many errored, and the first of them.
pub fn refuse_failed(contents: &Contents) -> Result<(), Failure> {
    let outcomes = contents.outcomes();
    let with_error = outcomes.iter();
    let errors: Vec<_> =
        with_error.filter_map(|(key, record)| Some((key, record.error()?))).collect();
    let Some((first, error)) = errors.first() else {
        return refuse_silence(outcomes.values().copied());
    };
    Err(Failure::outcome(
        format!(
            "{} of {} errored, the first of them {}: {error}",
            errors.len(),
            count(outcomes.len(), "item"),
            first.item
        ),
        Some(format!(
            "`wardround resume {}` tries them again; an item over a limit, such as --context, needs a new run with a higher one",
            contents.path.display()
        )),
    ))
}

/// Refuses items of which none has a result, as no reply could be read.
pub fn refuse_silence<'a>(items: impl IntoIterator<Item = &'a ItemLine>) -> Result<(), Failure> {
    let says: Vec<bool> = items.into_iter().map(|item| !item.says().is_empty()).collect();
    if says.is_empty() || says.contains(&true) {
        return Ok(());
    }
    Err(Failure::outcome(
        format!("none of {} has a result: what the models said could not be read", count(says.len(), "item")),
        Some("their replies are in calls.jsonl and on the report's page; a larger model, a higher max_tokens or, where it is off, --decoding grammar may help".to_owned()),
    ))
}
