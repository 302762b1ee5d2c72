//! The shards of one plan become the run that they were cut from: its plan, its texts, both logs chained anew.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::contents::Contents;
use super::directory::Directory;
use super::driver::Executed;
use super::error::RunError;
use super::plan::{self, Plan};
use super::shard::{Shard, ShardPlan};
use super::texts;
use super::verify::read_finished;
use crate::diagnosis::{Blame, Diagnosis};
use crate::record::ItemText;

/// Why directories are not the shards of one run.
#[derive(Debug, Error)]
pub enum MergeError {
    #[error("{} is no shard: it was run whole", path.display())]
    NoShard { path: PathBuf },
    #[error("{} and {} are not shards of one plan: {difference}", first.display(), other.display())]
    Differs {
        first: PathBuf,
        other: PathBuf,
        difference: String,
    },
    #[error("{} and {} are both shard {part}", first.display(), other.display())]
    Twice {
        part: Shard,
        first: PathBuf,
        other: PathBuf,
    },
    #[error("{}", missing(parts))]
    Missing { parts: Vec<Shard> },
    #[error("the items of the shards are not those that the run was cut into")]
    Items,
    #[error("{} exists and is not empty", path.display())]
    NotEmpty { path: PathBuf },
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Diagnosis for MergeError {
    fn blame(&self) -> Blame {
        match self {
            MergeError::Items => Blame::Artefact,
            MergeError::Run(error) => error.blame(),
            _ => Blame::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            MergeError::NoShard { .. } => "name what `run --shard` wrote",
            MergeError::Differs { .. } => {
                "run every shard with the same flags but for --shard, on machines of one kind"
            }
            MergeError::Twice { .. } => "name each shard once",
            MergeError::Missing { .. } => "name every shard; run those that have not run",
            MergeError::Items => "run the shards again",
            MergeError::NotEmpty { .. } => {
                "the first name is that of the new directory; the shards follow it"
            }
            MergeError::Run(error) => return error.hint(),
        };
        Some(hint.to_owned())
    }
}

fn missing(parts: &[Shard]) -> String {
    let names: Vec<String> = parts.iter().map(Shard::to_string).collect();
    match names.as_slice() {
        [one] => format!("shard {one} is missing"),
        names => format!("shards {} are missing", names.join(", ")),
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
pub fn merge(directories: &[PathBuf], out: &Path) -> Result<Executed, MergeError> {
    // The plans first: they are short, and the logs may not be.
    let whole = whole_plan(directories)?;
    let (mut calls, mut items, mut elapsed_ms) = (Vec::new(), Vec::new(), 0);
    let mut known = BTreeMap::new();
    for path in directories {
        let (contents, results) = read_finished(path)?;
        known.extend(contents.texts);
        calls.extend(contents.calls.records);
        items.extend(contents.items.records);
        elapsed_ms += results.elapsed_ms;
    }
    let texts = whole.dataset.items.iter().map(|item| known.remove(item));
    let texts: Vec<ItemText> = texts.collect::<Option<_>>().ok_or(MergeError::Items)?;
    if texts::sha256(&texts)? != whole.dataset.items_sha256 {
        return Err(MergeError::Items);
    }
    let ids = whole.dataset.items.iter().map(String::as_str);
    let places: HashMap<&str, usize> = ids.zip(0..).collect();
    let place = |item: &str| places.get(item).copied().unwrap_or(usize::MAX);
    // Stable: the lines of an item keep the order in which they were logged.
    calls.sort_by_key(|call| place(&call.item));
    items.sort_by_key(|item| place(item.item()));

    let mut directory = Directory::create(out, &whole, &texts).map_err(|error| match error {
        RunError::NotEmpty { path } => MergeError::NotEmpty { path },
        other => other.into(),
    })?;
    for call in calls {
        directory.calls.push(call)?;
    }
    directory.calls.commit()?;
    for item in items {
        directory.items.push(item)?;
    }
    directory.items.commit()?;
    drop(directory);
    Ok(Executed {
        contents: Contents::read(out)?,
        elapsed_ms,
    })
}

/// The plan that the shards in `directories`, given in any order, were cut from.
///
/// # Errors
/// Directories that are not all the shards of one plan, each once.
pub fn whole_plan(directories: &[PathBuf]) -> Result<Plan, MergeError> {
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

fn read_shard(path: &Path) -> Result<(Plan, ShardPlan), MergeError> {
    let file = path.join(plan::FILE);
    if !fs_err::exists(&file).map_err(RunError::from)? {
        let path = path.to_owned();
        return Err(RunError::NoPlan { path }.into());
    }
    let plan = Plan::load(&file)?;
    match plan.dataset.shard.clone() {
        Some(shard) => Ok((plan, shard)),
        None => Err(MergeError::NoShard {
            path: path.to_owned(),
        }),
    }
}

/// Errors unless all plan the same but for their parts, and the parts make a whole.
fn check_plans(shards: &[Planned<'_>]) -> Result<(), MergeError> {
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
            });
        }
    }
    let parts = shards.iter().map(|(path, (_, shard))| (*path, shard.part));
    check_parts(&parts.collect::<Vec<_>>())
}

/// Errors unless every part of as many is there, each once.
pub fn check_parts(parts: &[(&PathBuf, Shard)]) -> Result<(), MergeError> {
    let mut found: HashMap<Shard, &PathBuf> = HashMap::new();
    for &(path, part) in parts {
        if let Some(first) = found.insert(part, path) {
            return Err(MergeError::Twice {
                part,
                first: first.clone(),
                other: path.clone(),
            });
        }
    }
    let of = parts.first().map_or(0, |(_, part)| part.of());
    let missing = Shard::all(of).filter(|part| !found.contains_key(part));
    match missing.collect::<Vec<_>>() {
        parts if parts.is_empty() => Ok(()),
        parts => Err(MergeError::Missing { parts }),
    }
}

/// The plan of the whole, from those of all its shards in order.
fn join(shards: &[Planned<'_>]) -> Result<Plan, MergeError> {
    let items: Vec<&[String]> = shards
        .iter()
        .map(|(_, (plan, _))| plan.dataset.items.as_slice())
        .collect();
    let Some((_, (first, shard))) = shards.first() else {
        return Err(MergeError::Items);
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
mod tests {
    use super::*;
    use crate::experiment::compare::compare;
    use crate::experiment::fixtures::{
        ITEMS, call, failed_item, item, plan, start, texts, write_finished, write_results,
    };
    use crate::experiment::plan::Plan;
    use crate::experiment::verify::verify;

    fn write_shard(path: &Path, plan: &Plan) {
        let log = start(path, plan);
        for run in 0..plan.runs {
            for name in plan.dataset.items.iter().rev() {
                log.call(call(name, run, "ddx")).unwrap();
                log.call(call(name, run, "sym")).unwrap();
                log.item(failed_item(name, run)).unwrap();
                log.item(item(name, run)).unwrap();
            }
        }
        log.finish().unwrap();
        write_results(path, 100).unwrap();
    }

    fn shard(part: &str) -> Plan {
        plan()
            .shard(part.parse().unwrap(), texts(&ITEMS))
            .unwrap()
            .0
    }

    /// A folder with the shards that were named.
    fn shards(parts: &[&str]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let scratch = tempfile::tempdir().unwrap();
        let paths = parts.iter().map(|part| {
            let path = scratch.path().join(part.replace('/', "-of-"));
            write_shard(&path, &shard(part));
            path
        });
        let paths = paths.collect();
        (scratch, paths)
    }

    #[test]
    fn shards_in_any_order_make_the_whole() {
        for parts in [&["1/1"][..], &["2/2", "1/2"], &["3/3", "1/3", "2/3"]] {
            let (scratch, paths) = shards(parts);
            let (out, whole) = (scratch.path().join("out"), scratch.path().join("whole"));
            let merged = merge(&paths, &out).unwrap();
            assert_eq!(merged.elapsed_ms, 100 * parts.len() as u64);
            let results = write_results(&out, merged.elapsed_ms).unwrap();
            let expected = write_finished(&whole);
            assert_eq!(compare(&whole, &out).unwrap(), []);
            assert_eq!(results.parse, expected.parse);
            assert_eq!(verify(&out, None).unwrap().results, Some(results));
            let contents = Contents::read(&out).unwrap();
            assert_eq!(contents.plan, plan());
            let order = contents.items.records.iter();
            let mut order: Vec<&str> = order.map(|line| line.item()).collect();
            assert_eq!(order.len(), 12);
            order.dedup();
            assert_eq!(order, ["q1", "q2", "q3"]);
        }
    }

    fn refusal(paths: &[PathBuf], out: &Path) -> String {
        let error = merge(paths, out).unwrap_err();
        assert!(error.hint().is_some(), "{error}");
        error
            .to_string()
            .replace(&format!("{}/", out.parent().unwrap().display()), "")
    }

    #[test]
    fn what_makes_no_whole_is_refused_and_nothing_is_written() {
        let (scratch, paths) = shards(&["1/3", "2/3", "3/3"]);
        let out = scratch.path().join("out");
        assert_eq!(refusal(&paths[..2], &out), "shard 3/3 is missing");
        assert_eq!(refusal(&paths[1..2], &out), "shards 1/3, 3/3 are missing");
        let twice = [&paths[..], &paths[1..2]].concat();
        let expected = "2-of-3 and 2-of-3 are both shard 2/3";
        assert_eq!(refusal(&twice, &out), expected);

        let other = scratch.path().join("other");
        let mut reseeded = shard("3/3");
        reseeded.seed = 43;
        reseeded.runs = 1;
        write_shard(&other, &reseeded);
        let mixed = [&paths[..2], std::slice::from_ref(&other)].concat();
        let expected = "1-of-3 and other are not shards of one plan: seed is 42 against 43";
        assert_eq!(refusal(&mixed, &out), expected);
        fs_err::remove_dir_all(&other).unwrap();

        write_shard(&other, &shard("2/2"));
        let mixed = [&paths[..2], std::slice::from_ref(&other)].concat();
        let expected = "1-of-3 and other are not shards of one plan: dataset.shard.part is \"1/3\" against \"2/2\"";
        assert_eq!(refusal(&mixed, &out), expected);
        fs_err::remove_dir_all(&other).unwrap();

        let mut longer = plan();
        longer.dataset.items.push("q4".to_owned());
        write_shard(
            &other,
            &longer
                .shard("3/3".parse().unwrap(), texts(&["q1", "q2", "q3", "q4"]))
                .unwrap()
                .0,
        );
        let mixed = [&paths[..2], std::slice::from_ref(&other)].concat();
        let expected =
            "1-of-3 and other are not shards of one plan: dataset.shard.whole_items is 3 against 4";
        assert_eq!(refusal(&mixed, &out), expected);
        fs_err::remove_dir_all(&other).unwrap();

        write_finished(&other);
        let mixed = [&paths[..2], std::slice::from_ref(&other)].concat();
        assert_eq!(refusal(&mixed, &out), "other is no shard: it was run whole");
        assert!(!fs_err::exists(&out).unwrap());

        fs_err::create_dir(&out).unwrap();
        fs_err::write(out.join("thesis.tex"), "").unwrap();
        assert_eq!(refusal(&paths, &out), "out exists and is not empty");
    }

    #[test]
    fn an_unfinished_shard_is_refused() {
        let (scratch, paths) = shards(&["1/2"]);
        let (second, out) = (scratch.path().join("second"), scratch.path().join("out"));
        let log = start(&second, &shard("2/2"));
        log.item(item("q2", 0)).unwrap();
        let both = [&paths[..], std::slice::from_ref(&second)].concat();
        let expected = "second: 1 of the planned items have no line, the first of them q2";
        assert_eq!(refusal(&both, &out), expected);
        log.item(item("q2", 1)).unwrap();
        assert_eq!(refusal(&both, &out), "second has not finished");
        log.finish().unwrap();
        write_results(&second, 1).unwrap();
        merge(&both, &out).unwrap();
    }

    #[test]
    fn a_changed_shard_is_refused() {
        let (scratch, paths) = shards(&["1/2", "2/2"]);
        let log = paths[1].join("calls.jsonl");
        let text = fs_err::read_to_string(&log).unwrap();
        fs_err::write(&log, text.replacen("0.85", "0.95", 1)).unwrap();
        let error = merge(&paths, &scratch.path().join("out")).unwrap_err();
        assert_eq!(error.blame(), Blame::Artefact);
        assert!(error.to_string().contains("calls.jsonl, line 1"), "{error}");
    }

    #[test]
    fn shards_whose_items_were_changed_are_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = ["1/2", "2/2"]
            .iter()
            .map(|part| {
                let mut plan = shard(part);
                if *part == "2/2" {
                    plan.dataset.items = vec!["q9".to_owned()];
                }
                let path = scratch.path().join(part.replace('/', "-"));
                write_shard(&path, &plan);
                path
            })
            .collect();
        let error = merge(&paths, &scratch.path().join("out")).unwrap_err();
        assert!(matches!(error, MergeError::Items), "{error}");
    }
}
