//! A run directory that is open for writing: a new one, or one that is resumed. One process at a time has it.

use std::collections::HashMap;
use std::path::Path;

use fs_err::File;

use super::appender::{Appender, lock, open};
use super::chain::Chain;
use super::contents::Contents;
use super::error::RunError;
use super::line::Hasher;
use super::link::Link;
use super::plan::{self, Plan};
use super::results;
use super::whole_file;
use super::{texts, verify, versions};
use crate::appended;
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
    /// What the user should know of it.
    pub(super) notices: Vec<String>,
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

        let open = |name: &str| open(&path.join(name), true);
        let calls = open(CallLine::FILE)?;
        let notices = Vec::from_iter(lock(&calls, path)?);
        let items = open(ItemLine::FILE)?;
        let searches = plan.corpus.as_ref().map(|_| open(SearchLine::FILE)).transpose()?;
        whole_file::write_private(&path.join(texts::FILE), texts::to_lines(texts)?.as_bytes())?;
        let stale = path.join(versions::FILE);
        if fs_err::exists(&stale)? {
            fs_err::remove_file(stale)?;
        }
        // The plan is written last: where it exists, all other files do.
        let plan_sha256 = plan.save(&path.join(plan::FILE))?;
        let searches = searches.map(|file| behind(file, &Chain::empty(&plan_sha256)));
        Ok(Directory {
            searches: searches.transpose()?,
            calls: behind(calls, &Chain::empty(&plan_sha256))?,
            items: behind(items, &Chain::empty(&plan_sha256))?,
            finished: Finished::default(),
            is_complete: false,
            notices,
        })
    }

    /// Resumes the run in `path`, which must hold an equal plan (`Plan::differences`).
    ///
    /// The whole directory is verified first. Only a torn end of a log, which a kill or a power cut leaves, is repaired, by cutting it
    /// off, and said. The results.json of a run that is not complete is removed, for it would not cover the lines to come. Where
    /// another version, which `allow_version` accepts, wrote the run, versions.json names both.
    pub fn resume(
        path: &Path,
        plan: &Plan,
        texts: &[Item],
        allow_version: bool,
    ) -> Result<Directory, RunError> {
        if fs_err::exists(path)? && is_vacant(path)? {
            return Directory::create(path, plan, texts);
        }
        let plan_path = Plan::find(path)?;
        let calls = open(&path.join(CallLine::FILE), false)?;
        let mut notices = Vec::from_iter(lock(&calls, path)?);
        let items = open(&path.join(ItemLine::FILE), false)?;
        let searches = match plan.corpus {
            Some(_) => Some(open(&path.join(SearchLine::FILE), false)?),
            None => None,
        };

        let mut contents = Contents::read(path)?;
        let results = verify::check_results(&contents)?;
        plan.keep_to(&contents.plan, &plan_path, allow_version)?;
        versions::add(&mut contents.versions, &plan.version, path)?;
        let finished_items = contents.items.by_key().into_values();
        let n_finished = finished_items.filter(|item| item.error().is_none()).count();
        let n_items = contents.plan.dataset.items.len() * contents.plan.runs as usize;
        let is_complete = results.is_some() && n_finished == n_items;
        if results.is_some() && !is_complete {
            fs_err::remove_file(path.join(results::FILE))?;
            // It must not come back beside lines that it does not cover.
            outside::sync_directory(path)?;
        }
        let torn = contents.torn().into_iter();
        notices.extend(torn.map(|(log, bytes)| appended::notice(&log, bytes)));
        let searches = searches.map(|file| behind(file, &contents.searches));
        let searches = searches.transpose()?;
        let calls = behind(calls, &contents.calls)?;
        let items = behind(items, &contents.items)?;
        Ok(Directory {
            searches,
            calls,
            items,
            finished: Finished {
                searches: contents.searches.into_settled(),
                calls: contents.calls.into_settled(),
                items: contents.items.into_settled(),
            },
            is_complete,
            notices,
        })
    }

    /// Takes up the run in `path` where it stopped; one that was never begun begins.
    ///
    /// # Errors
    /// A directory of another run, or of anything else.
    pub fn begin(
        path: &Path,
        plan: &Plan,
        texts: &[Item],
        allow_version: bool,
    ) -> Result<Directory, RunError> {
        match Directory::resume(path, plan, texts, allow_version) {
            Err(RunError::NoPlan { .. }) => Directory::create(path, plan, texts),
            other => other,
        }
    }

    /// Chains a search as the next line, to be written by a commit.
    pub(super) fn push_search(&mut self, record: SearchLine) -> Result<(), RunError> {
        match &mut self.searches {
            Some(searches) => searches.push(record),
            None => Err(RunError::Unlogged(format!("{}: the plan names no corpus", record.key()))),
        }
    }
}

/// Appends to a run's log, whose hashes need no key.
fn behind<R: Link>(file: File, chain: &Chain<R>) -> Result<Appender<R>, RunError> {
    Appender::behind(file, chain, Hasher::default())
}

/// Whether a directory holds nothing but what a creation leaves that was cut off before the plan stood.
fn is_vacant(path: &Path) -> Result<bool, RunError> {
    let before_plan = [texts::FILE, versions::FILE].map(|name| path.join(name));
    let mut files = vec![outside::partial(&path.join(plan::FILE))];
    files.extend(before_plan.iter().map(|file| outside::partial(file)));
    // A file of such a name that stands alone is somebody's own.
    if fs_err::exists(path.join(CallLine::FILE))? {
        files.extend(before_plan);
    }
    for entry in fs_err::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let logs = [CallLine::FILE, ItemLine::FILE, SearchLine::FILE];
        let is_log = logs.iter().any(|log| name == *log);
        let data = entry.metadata()?;
        let is_leftover = files.contains(&entry.path()) || is_log && data.len() == 0;
        if !(data.is_file() && is_leftover) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
