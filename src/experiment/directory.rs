//! A run directory that is open for writing: a new one, or one that is resumed. One process at a time has it.

use std::collections::HashMap;
use std::path::Path;

use fs_err::File;

use super::appender::{Appender, lock, open};
use super::contents::Contents;
use super::error::RunError;
use super::line::Hasher;
use super::link::Link;
use super::plan::{self, Plan};
use super::results;
use super::whole_file;
use super::{texts, verify};
use crate::data::Item;
use crate::outside;
use crate::record::{CallKey, CallLine, ItemKey, ItemLine, SearchKey, SearchLine};

/// The logs, open at their ends; `Log::start` takes it.
pub struct Directory {
    /// Of a plan with corpora.
    pub(super) searches: Option<Appender<SearchLine>>,
    pub(super) calls: Appender<CallLine>,
    pub(super) items: Appender<ItemLine>,
    /// What an earlier session did.
    pub finished: Finished,
    /// Whether every item has an outcome without an error, and the results are written.
    pub is_complete: bool,
}

/// What a resumed run need not do again. An item whose last line has an error is not among the items.
#[derive(Debug, Default)]
pub struct Finished {
    pub searches: HashMap<SearchKey, SearchLine>,
    pub calls: HashMap<CallKey, CallLine>,
    pub items: HashMap<ItemKey, ItemLine>,
}

impl Directory {
    /// Makes a directory (mode 0700) with the texts of the plan's items, empty logs, and the plan (mode 0600).
    ///
    /// An empty directory is taken, and so is one whose creation was cut off before its plan stood; any other errors.
    pub fn create(path: &Path, plan: &Plan, texts: &[Item]) -> Result<Directory, RunError> {
        if fs_err::exists(path)? && !is_vacant(path)? {
            return Err(RunError::NotEmpty { path: path.to_owned() });
        }
        whole_file::create_private_directory(path)?;
        let logs = Logs::open(path, plan, true)?;
        whole_file::write_private(&path.join(texts::FILE), texts::to_lines(texts)?.as_bytes())?;
        // The plan is written last: where it exists, all other files do.
        plan.save(&path.join(plan::FILE))?;
        Directory::behind(path, plan, logs)
    }

    /// Takes up the run in `path` where it stopped; one that was never begun begins. Its plan must be equal (`Plan::differences`).
    ///
    /// The whole directory is verified first. Only a torn end of a log, which a kill or a power cut leaves, is repaired, by cutting it
    /// off, and said. The results.json of a run that is not complete is removed, for it would not cover the lines to come.
    ///
    /// # Errors
    /// A directory of another run, or of anything else.
    pub fn begin(path: &Path, plan: &Plan, texts: &[Item]) -> Result<Directory, RunError> {
        match fs_err::exists(path.join(plan::FILE))? {
            true => Directory::behind(path, plan, Logs::open(path, plan, false)?),
            false => Directory::create(path, plan, texts),
        }
    }

    /// Reads what there is, and writes behind it.
    fn behind(path: &Path, plan: &Plan, logs: Logs) -> Result<Directory, RunError> {
        let Logs { searches, calls, items } = logs;
        let contents = Contents::read(path)?;
        let results = verify::check_results(&contents)?;
        plan.keep_to(&contents.plan, &path.join(plan::FILE), true)?;
        let finished_items = contents.outcomes().into_values();
        let n_finished = finished_items.filter(|item| item.error().is_none()).count();
        let n_items = contents.plan.dataset.items.len() * contents.plan.runs as usize;
        let is_complete = results.is_some() && n_finished == n_items;
        if results.is_some() && !is_complete {
            fs_err::remove_file(path.join(results::FILE))?;
            // It must not come back beside lines that it does not cover.
            outside::sync_directory(path)?;
        }
        // The hashes of a run need no key.
        let plain = Hasher::default;
        let searches = searches.map(|file| Appender::behind(file, &contents.searches, plain()));
        Ok(Directory {
            searches: searches.transpose()?,
            calls: Appender::behind(calls, &contents.calls, plain())?,
            items: Appender::behind(items, &contents.items, plain())?,
            finished: Finished {
                searches: contents.searches.into_settled(),
                calls: contents.calls.into_settled(),
                items: contents.items.into_settled(),
            },
            is_complete,
        })
    }
}

/// The files of the logs, which no other process writes.
struct Logs {
    searches: Option<File>,
    calls: File,
    items: File,
}

impl Logs {
    fn open(path: &Path, plan: &Plan, is_new: bool) -> Result<Logs, RunError> {
        let open = |name: &str| open(&path.join(name), is_new);
        let calls = open(CallLine::FILE)?;
        lock(&calls, path)?;
        Ok(Logs {
            searches: plan.corpus.as_ref().map(|_| open(SearchLine::FILE)).transpose()?,
            items: open(ItemLine::FILE)?,
            calls,
        })
    }
}

/// Whether a directory holds nothing but what a creation leaves that was cut off before the plan stood.
fn is_vacant(path: &Path) -> Result<bool, RunError> {
    let [plan, texts] = [plan::FILE, texts::FILE].map(|name| path.join(name));
    let mut files = [&plan, &texts].map(|file| outside::partial(file)).to_vec();
    // A file of this name that stands alone is somebody's own.
    if fs_err::exists(path.join(CallLine::FILE))? {
        files.push(texts);
    }
    for entry in fs_err::read_dir(path)? {
        let (entry, logs) = (entry?, [CallLine::FILE, ItemLine::FILE, SearchLine::FILE]);
        let (is_log, data) = (logs.iter().any(|log| entry.file_name() == *log), entry.metadata()?);
        let is_leftover = files.contains(&entry.path()) || is_log && data.len() == 0;
        if !(data.is_file() && is_leftover) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
