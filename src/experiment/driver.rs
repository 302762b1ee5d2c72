//! Executes runs: works on every unfinished item of a run, and logs into its directory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use super::contents::Contents;
use super::directory::Directory;
use super::error::resume;
use super::log::Log;
use super::models::Loaded;
use super::run::Run;
use super::spec::Spec;
use crate::diagnosis::{Blame, Failure};
use crate::panel::recorder::Recorder;
use crate::record::{CallKey, CallLine, ItemKey, ItemLine, SearchKey, SearchLine, count};
use crate::systems::in_flight::run_all;

/// Told of a run's progress; every method may be called from many threads.
pub trait Observer: Send + Sync {
    /// Before the first call: the items over all repetitions, those of them that an earlier session finished, and the calls that one takes
    /// at most.
    fn began(&self, _items: u64, _done: u64, _calls_an_item: u64) {}
    /// The calls at most of what comes after the run that begins next.
    fn after(&self, _calls: u64) {}
    fn call(&self, _call: &CallLine) {}
    fn item(&self) {}
    /// The run is complete, or broke off.
    fn ended(&self) {}
    /// What the user should know, or what runs next of several.
    fn say(&self, _line: &str) {}
}

/// Watches nothing.
impl Observer for () {}

/// What runs share, one after another: loaded models, the stop flag and the observer.
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
    /// Works on every item that is not finished, and reads the whole run back.
    ///
    /// # Errors
    /// What stopped the run. Items that errored are none: their lines say so.
    pub fn execute(&self, run: Run, directory: Directory, out: &Path) -> Result<Executed, Failure> {
        for notice in &run.notices {
            self.observer.say(&format!("note: {notice}"));
        }
        let total = run.items.len() as u64 * u64::from(run.plan.runs);
        let done = directory.finished.items.len() as u64;
        self.observer.began(total, done, run.most_calls.into());
        let taken_before = self.loaded.calls.taken();
        let executed = self.work(run, directory, out, (done, total));
        self.observer.ended();
        let taken = self.loaded.calls.taken() - taken_before;
        if taken > 0 && executed.is_ok() {
            let calls = count(taken, "call");
            self.observer.say(&format!("note: {calls} came from the store of calls"));
        }
        executed
    }

    fn work(
        &self,
        run: Run,
        mut directory: Directory,
        out: &Path,
        (done, total): (u64, u64),
    ) -> Result<Executed, Failure> {
        let clock = Instant::now();
        let finished = std::mem::take(&mut directory.finished);
        let log = Log::start(directory)?;
        let done = AtomicU64::new(done);
        let recorder = LogRecorder {
            log: log.clone(),
            finished: finished.calls,
            searches: finished.searches,
            observer: self.observer.clone(),
        };
        let panel = run.panel(&self.loaded.models, Box::new(recorder), self.stop.clone())?;
        let plan = &run.plan;
        let is_open = |item: &str, run| {
            let key = ItemKey { dataset: plan.dataset.name.clone(), run, item: item.to_owned() };
            !finished.items.contains_key(&key)
        };
        // The repetitions of an item side by side: they share its prompt.
        let items = run.items.iter();
        let jobs = items.flat_map(|item| (1..=plan.runs).map(move |number| (item, number)));
        let jobs = jobs.filter(|(item, number)| is_open(item.id(), *number)).collect();
        let ended = run_all(jobs, plan.host.engine.max_in_flight, &self.stop, |(item, number)| {
            log.item(run.answer(&panel, item, number)?)?;
            done.fetch_add(1, Ordering::Relaxed);
            self.observer.item();
            Ok::<_, Failure>(())
        });
        let is_stopped = self.stop.load(Ordering::Relaxed);
        match ended {
            Ok(()) if !is_stopped => {}
            Err(error) if error.blame() != Blame::Interrupted => return Err(error),
            _ => {
                let message =
                    format!("interrupted after {} of {}", done.into_inner(), count(total, "item"));
                return Err(Failure::interrupted(message, resume(&self.folder)));
            }
        }
        log.finish()?;
        Ok(Executed {
            contents: Contents::read(out)?,
            elapsed_ms: clock.elapsed().as_millis() as u64,
        })
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

/// The recorder of a run: its log, and what an earlier attempt logged.
struct LogRecorder {
    pub log: Log,
    pub finished: HashMap<CallKey, CallLine>,
    pub searches: HashMap<SearchKey, SearchLine>,
    /// Told of every call once it is logged.
    pub observer: Arc<dyn Observer>,
}

impl Recorder for LogRecorder {
    fn find(&self, key: &CallKey) -> Option<&CallLine> {
        self.finished.get(key)
    }

    fn find_search(&self, key: &SearchKey) -> Option<&SearchLine> {
        self.searches.get(key)
    }

    fn record_search(&self, search: &SearchLine) -> Result<(), Failure> {
        Ok(self.log.search(search.clone())?)
    }

    fn record(&self, call: &CallLine) -> Result<(), Failure> {
        self.log.call(call.clone())?;
        self.observer.call(call);
        Ok(())
    }
}
