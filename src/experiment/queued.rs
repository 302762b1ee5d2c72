//! A run on its way into its directory: it begins with its first item and ends with its last.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use super::directory::Directory;
use super::driver::{Driver, Observer};
use super::log::Log;
use super::run::Run;
use crate::calls::Store;
use crate::data::Item;
use crate::diagnosis::Failure;
use crate::panel::Panel;
use crate::panel::recorder::Recorder;
use crate::record::{CallKey, CallLine, ItemKey, ItemLine, SearchKey, SearchLine};

/// A run that is to be executed.
pub struct Queued {
    pub run: Run,
    out: PathBuf,
    /// Of one among several: what is said as it begins. They share their calls.
    title: Option<String>,
    /// Where it is open already, before it begins.
    directory: Mutex<Option<Directory>>,
    begun: OnceLock<Begun>,
    left: AtomicU64,
}

/// A run that has begun.
struct Begun {
    log: Log,
    panel: Panel,
    /// The items that an earlier session finished.
    finished: HashMap<ItemKey, ItemLine>,
    clock: Instant,
}

impl Queued {
    /// A run alone, whose directory is open.
    pub fn alone(run: Run, out: PathBuf, directory: Directory) -> Queued {
        Queued {
            title: None,
            directory: Mutex::new(Some(directory)),
            ..Queued::among(run, out, String::new())
        }
    }

    /// One of several runs, whose directory is opened when its first item begins.
    pub fn among(run: Run, out: PathBuf, title: String) -> Queued {
        let left = AtomicU64::new(run.items.len() as u64 * u64::from(run.plan.runs));
        Queued {
            run,
            out,
            title: Some(title),
            directory: Mutex::default(),
            begun: OnceLock::new(),
            left,
        }
    }

    /// The items that have no outcome yet, over the repetitions.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Acquire)
    }

    /// The items with the numbers of their repetitions, which stand side by side: they share a prompt.
    pub fn jobs(&self) -> impl Iterator<Item = (&Item, u32)> {
        let runs = self.run.plan.runs;
        self.run.items.iter().flat_map(move |item| (1..=runs).map(move |run| (item, run)))
    }

    /// Answers an item, unless an earlier session did. After the last one the logs are whole: it gives the milliseconds since the run began.
    pub fn answer(&self, driver: &Driver, item: &Item, run: u32) -> Result<Option<u64>, Failure> {
        let begun = self.begin(driver)?;
        let (dataset, id) = (self.run.plan.dataset.name.clone(), item.id().to_owned());
        if !begun.finished.contains_key(&ItemKey { dataset, run, item: id }) {
            begun.log.item(self.run.answer(&begun.panel, item, run)?)?;
            driver.observer.item(self.run.most_calls.into());
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(None);
        }
        begun.log.clone().finish()?;
        Ok(Some(begun.clock.elapsed().as_millis() as u64))
    }

    /// Opens the directory, unless that is done.
    fn begin(&self, driver: &Driver) -> Result<&Begun, Failure> {
        // Who comes while another opens it waits here.
        let mut directory = self.directory.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(begun) = self.begun.get() {
            return Ok(begun);
        }
        let Queued { run, out, title, .. } = self;
        let notices = run.notices.iter().map(|notice| format!("note: {notice}"));
        title.iter().cloned().chain(notices).for_each(|line| driver.observer.say(&line));
        let mut directory = match directory.take() {
            Some(open) => open,
            None => Directory::begin(out, &run.plan, &run.items)?,
        };
        let finished = std::mem::take(&mut directory.finished);
        let items = finished.items.len() as u64;
        driver.observer.resumed(items, items * u64::from(run.most_calls));
        let store = title.as_ref().map(|_| driver.loaded.calls.clone());
        if let Some(store) = &store {
            finished.calls.values().for_each(|call| store.learn(call));
        }
        let log = Log::start(directory)?;
        let recorder = LogRecorder {
            log: log.clone(),
            finished: finished.calls,
            searches: finished.searches,
            store,
            observer: driver.observer.clone(),
        };
        let panel = run.panel(&driver.loaded.models, Box::new(recorder), driver.stop.clone())?;
        let (finished, clock) = (finished.items, Instant::now());
        Ok(self.begun.get_or_init(|| Begun { log, panel, finished, clock }))
    }
}

/// The recorder of a run: its log, and what an earlier attempt logged.
struct LogRecorder {
    log: Log,
    finished: HashMap<CallKey, CallLine>,
    searches: HashMap<SearchKey, SearchLine>,
    /// Where later runs find its calls.
    store: Option<Arc<Store>>,
    /// Told of every call once it is logged.
    observer: Arc<dyn Observer>,
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
        if let Some(store) = &self.store {
            store.learn(call);
        }
        self.observer.call(call);
        Ok(())
    }
}
