//! What a run directory holds: the plan, the items' texts and the logs, every line checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::chain::{self, Chain};
use super::error::{Defect, RunError};
use super::link::Link;
use super::plan::Plan;
use super::results::Heads;
use super::texts;
use super::versions;
use crate::data::Item;
use crate::digest;
use crate::outside;
use crate::record::{AnswerLine, CallLine, ItemKey, ItemLine, NoteLine, SearchLine};

/// A run directory as it was read; results.json is not part of it.
#[derive(Clone, Debug)]
pub struct Contents {
    pub path: PathBuf,
    pub plan: Plan,
    /// Those that wrote the run.
    pub versions: Vec<String>,
    /// Lower-case hex over the bytes of plan.toml: the anchor of the chains.
    pub plan_sha256: String,
    /// Every item as it was put, by its id.
    pub texts: BTreeMap<String, Item>,
    pub calls: Chain<CallLine>,
    pub items: Chain<ItemLine>,
    /// Empty where the system searches nothing.
    pub searches: Chain<SearchLine>,
}

impl Contents {
    /// Reads a directory and checks the texts and the chains; errors name the file and the first bad line.
    pub fn read(path: &Path) -> Result<Contents, RunError> {
        let plan_path = Plan::find(path)?;
        let plan = outside::file(&plan_path)?;
        let plan_sha256 = digest::sha256(&plan);
        let blame = |error| blame_plan(error, &plan_path);
        let calls = chain::read(&path.join(CallLine::FILE), &plan_sha256).map_err(blame)?;
        let items = chain::read(&path.join(ItemLine::FILE), &plan_sha256).map_err(blame)?;
        let plan = Plan::parse(&plan, &plan_path)?;
        let searches = match plan.corpus {
            Some(_) => chain::read(&path.join(SearchLine::FILE), &plan_sha256)?,
            None => Chain::empty(&plan_sha256),
        };
        Ok(Contents {
            path: path.to_owned(),
            texts: texts::read(path, &plan.dataset)?,
            versions: versions::read(path, &plan)?,
            plan,
            plan_sha256,
            calls,
            items,
            searches,
        })
    }

    /// Where the chains end.
    pub fn heads(&self) -> Heads {
        let searches = self.plan.corpus.as_ref().map(|_| &self.searches);
        Heads {
            plan: self.plan_sha256.clone(),
            calls: self.calls.head.clone(),
            items: self.items.head.clone(),
            call_lines: self.calls.records.len() as u64,
            item_lines: self.items.records.len() as u64,
            searches: searches.map(|chain| chain.head.clone()),
            search_lines: searches.map(|chain| chain.records.len() as u64),
        }
    }

    /// The logs that have bytes behind their last whole line, and how many: what was being written when the run was cut off.
    pub fn torn(&self) -> Vec<(PathBuf, u64)> {
        let logs = [
            (SearchLine::FILE, self.searches.torn_bytes),
            (CallLine::FILE, self.calls.torn_bytes),
            (ItemLine::FILE, self.items.torn_bytes),
        ];
        let torn = logs.into_iter().filter(|(_, bytes)| *bytes > 0);
        torn.map(|(log, bytes)| (self.path.join(log), bytes)).collect()
    }

    /// The outcomes of questions.
    pub fn answers(&self) -> BTreeMap<ItemKey, &AnswerLine> {
        let outcomes = self.outcomes().into_iter();
        outcomes.filter_map(|(key, record)| Some((key, record.answer()?))).collect()
    }

    /// The outcomes of notes.
    pub fn notes(&self) -> BTreeMap<ItemKey, &NoteLine> {
        let outcomes = self.outcomes().into_iter();
        outcomes.filter_map(|(key, record)| Some((key, record.note()?))).collect()
    }

    /// Each item's last line; only that one counts where an item errored and was tried again.
    pub fn outcomes(&self) -> BTreeMap<ItemKey, &ItemLine> {
        chain::by_key(&self.items.records)
    }
}

/// A first line that is sound in itself and chained to another plan tells that the plan was changed, not the line:
/// its own hash covers its `prev`.
fn blame_plan(error: RunError, plan_path: &Path) -> RunError {
    match error {
        RunError::BadLine {
            path: log,
            line: 1,
            defect: Defect::Prev { found: expected, expected: found },
        } => {
            let told = format!("line 1 of {} was chained to {expected}", log.display());
            RunError::Changed { path: plan_path.to_owned(), found, told }
        }
        other => other,
    }
}
