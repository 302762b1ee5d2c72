//! The shards of one plan become the run that they were cut from: its plan, its texts, the logs chained anew.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::contents::Contents;
use super::directory::Directory;
use super::driver::Executed;
use super::error::RunError;
use super::plan::Plan;
use super::shard::{Shard, ShardPlan};
use super::texts;
use super::verify::read_finished;
use crate::diagnosis::Failure;
use crate::fault::faults;
use crate::record::ItemText;

faults! {
    /// Why directories are not the shards of one run.
    #[derive(Debug, Error)]
    pub enum MergeError {
        #[error("{} is no shard: it was run whole", path.display())]
        NoShard { path: PathBuf } => Usage, "name what `run --shard` wrote";
        #[error("{} and {} are not shards of one plan: {difference}", first.display(), other.display())]
        Differs { first: PathBuf, other: PathBuf, difference: String } => Usage,
            "run every shard with the same flags but for --shard, on machines of one kind";
        #[error("{} and {} are both shard {part}", first.display(), other.display())]
        Twice { part: Shard, first: PathBuf, other: PathBuf } => Usage, "name each shard once";
        #[error("{}", missing(parts, *count))]
        Missing {
            /// The first of them.
            parts: Vec<Shard>,
            count: usize,
        } => Usage, "name every shard; run those that have not run";
        #[error("the items of the shards are not those that the run was cut into")]
        Items => Artefact, "run the shards again";
        #[error("{} exists and is not empty", path.display())]
        NotEmpty { path: PathBuf } => Usage,
            "the first name is that of the new directory; the shards follow it";
    }
}

/// A shard's plan may say that a run was cut into any number of shards.
const NAMED_MISSING: usize = 10;

fn missing(parts: &[Shard], count: usize) -> String {
    let names = parts.iter().map(Shard::to_string).collect::<Vec<_>>().join(", ");
    match count.saturating_sub(parts.len()) {
        0 if count == 1 => format!("shard {names} is missing"),
        0 => format!("shards {names} are missing"),
        more => format!("shards {names} and {more} more are missing"),
    }
}

/// Writes the run whose shards lie in `directories`, in any order, into the new directory `out`.
///
/// The lines stand item by item in the order of the plan. What no answer depends on is told of the first shard, but the
/// time when the run was made, the earliest, and the time that it took, the sum.
///
/// # Errors
/// Directories that are not all the shards of one plan, each once and finished; a shard that does not verify; an `out`
/// that holds something.
pub fn merge(directories: &[PathBuf], out: &Path) -> Result<Executed, Failure> {
    // The plans first: they are short, and the logs may not be.
    let whole = whole_plan(directories)?;
    let (mut searches, mut calls, mut items, mut elapsed_ms) =
        (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut known = BTreeMap::new();
    let mut versions = vec![whole.version.clone()];
    for path in directories {
        let (contents, results) = read_finished(path)?;
        for version in contents.versions {
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        known.extend(contents.texts);
        searches.extend(contents.searches.records);
        calls.extend(contents.calls.records);
        items.extend(contents.items.records);
        elapsed_ms = results.elapsed_ms.saturating_add(elapsed_ms);
    }
    let texts = whole.dataset.items.iter().map(|item| known.remove(item));
    let texts: Vec<ItemText> = texts.collect::<Option<_>>().ok_or(MergeError::Items)?;
    if texts::sha256(&texts)? != whole.dataset.items_sha256 {
        return Err(MergeError::Items.into());
    }
    let ids = whole.dataset.items.iter().map(String::as_str);
    let places: HashMap<&str, usize> = ids.zip(0..).collect();
    let place = |item: &str| places.get(item).copied().unwrap_or(usize::MAX);
    // Stable: the lines of an item keep the order in which they were logged.
    searches.sort_by_key(|search| place(&search.item));
    calls.sort_by_key(|call| place(&call.item));
    items.sort_by_key(|item| place(item.item()));

    let created = Directory::create_merged(out, &whole, &texts, &versions);
    let mut directory = created.map_err(|error| match error {
        RunError::NotEmpty { path } => Failure::from(MergeError::NotEmpty { path }),
        other => other.into(),
    })?;
    for search in searches {
        directory.push_search(search)?;
    }
    if let Some(searches) = &mut directory.searches {
        searches.commit()?;
    }
    for call in calls {
        directory.calls.push(call)?;
    }
    directory.calls.commit()?;
    for item in items {
        directory.items.push(item)?;
    }
    directory.items.commit()?;
    drop(directory);
    Ok(Executed { contents: Contents::read(out)?, elapsed_ms })
}

/// The plan that the shards in `directories`, given in any order, were cut from.
///
/// # Errors
/// Directories that are not all the shards of one plan, each once.
pub fn whole_plan(directories: &[PathBuf]) -> Result<Plan, Failure> {
    let mut shards = Vec::new();
    for path in directories {
        shards.push((path, read_shard(path)?));
    }
    check_plans(&shards)?;
    shards.sort_by_key(|(_, (_, shard))| shard.part);
    join(&shards)
}

/// A directory with the plan of its shard.
type Planned<'a> = (&'a PathBuf, (Plan, ShardPlan));

fn read_shard(path: &Path) -> Result<(Plan, ShardPlan), Failure> {
    let plan = Plan::load(&Plan::find(path)?)?;
    match plan.dataset.shard.clone() {
        Some(shard) => Ok((plan, shard)),
        None => Err(MergeError::NoShard { path: path.to_owned() }.into()),
    }
}

/// Errors unless all plans are equal but for their items, and together they make the whole run.
fn check_plans(shards: &[Planned<'_>]) -> Result<(), Failure> {
    let Some(((first, (plan, shard)), others)) = shards.split_first() else {
        return Ok(());
    };
    // Without what a shard may have of its own: its items and its number.
    let rest = |plan: &Plan, number: Shard| {
        let mut plan = plan.clone();
        plan.dataset.items.clear();
        plan.dataset.items_sha256.clear();
        if let Some(shard) = &mut plan.dataset.shard {
            shard.part = number;
        }
        plan
    };
    for (path, (other, part)) in others {
        let common = match part.part.of() == shard.part.of() {
            true => shard.part,
            false => part.part,
        };
        let differences = rest(plan, shard.part).differences(&rest(other, common))?;
        if let Some(difference) = differences.first() {
            return Err(MergeError::Differs {
                first: (*first).clone(),
                other: (*path).clone(),
                difference: difference.to_string(),
            }
            .into());
        }
    }
    let parts = shards.iter().map(|(path, (_, shard))| (*path, shard.part));
    check_parts(&parts.collect::<Vec<_>>())
}

/// Errors unless every shard is there exactly once.
pub fn check_parts(parts: &[(&PathBuf, Shard)]) -> Result<(), Failure> {
    let mut found: HashMap<Shard, &PathBuf> = HashMap::new();
    for &(path, part) in parts {
        if let Some(first) = found.insert(part, path) {
            let error = MergeError::Twice { part, first: first.clone(), other: path.clone() };
            return Err(error.into());
        }
    }
    let of = parts.first().map_or(0, |(_, part)| part.of());
    match of.saturating_sub(found.len()) {
        0 => Ok(()),
        count => {
            let missing = Shard::all(of).filter(|part| !found.contains_key(part));
            let parts = missing.take(NAMED_MISSING).collect();
            Err(MergeError::Missing { parts, count }.into())
        }
    }
}

/// The plan of the whole, from those of all its shards in order.
fn join(shards: &[Planned<'_>]) -> Result<Plan, Failure> {
    let items: Vec<&[String]> =
        shards.iter().map(|(_, (plan, _))| plan.dataset.items.as_slice()).collect();
    let Some((_, (first, shard))) = shards.first() else {
        return Err(MergeError::Items.into());
    };
    let mut whole = first.clone();
    whole.dataset.items = shard.join(&items).ok_or(MergeError::Items)?;
    whole.dataset.items_sha256 = shard.whole_sha256.clone();
    whole.dataset.shard = None;
    let times = shards.iter().map(|(_, (plan, _))| &plan.created_at);
    whole.created_at = times.min().unwrap_or(&first.created_at).clone();
    Ok(whole)
}

#[cfg(test)]
mod tests;
