//! The runs that are rated, and what they made of the items.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::key::KeyRun;
use crate::analysis::comparison::questions;
use crate::analysis::outcomes::Outcomes;
use crate::diagnosis::Failure;
use crate::experiment::contents::Contents;
use crate::experiment::verify::read_finished;
use crate::record::{ItemLine, ItemText, SearchLine};

/// Reads the runs, which must have finished.
///
/// # Errors
/// A directory that is no finished run, does not verify, or is there twice.
pub fn read(directories: &[PathBuf]) -> Result<Vec<Contents>, Failure> {
    let mut runs: Vec<Contents> = Vec::new();
    for directory in directories {
        let run = read_finished(directory)?.0;
        if let Some(first) = runs.iter().find(|one| one.plan_sha256 == run.plan_sha256) {
            let (first, other) = (first.path.display(), run.path.display());
            let problem = format!("{first} and {other} are the same run");
            return Err(Failure::usage(problem, "name every run once"));
        }
        runs.push(run);
    }
    Ok(runs)
}

/// What is drawn from.
pub struct Source<'a> {
    pub items: Vec<&'a ItemText>,
    pub runs: Vec<Rated<'a>>,
    pub dataset: String,
    pub dataset_sha256: String,
}

/// What one run made of the items.
pub struct Rated<'a> {
    pub key: KeyRun,
    /// Outcomes that are no errors, by item.
    pub finished: BTreeMap<&'a str, &'a ItemLine>,
    pub searches: Vec<&'a SearchLine>,
}

/// The runs as they are drawn from; of several repetitions the first.
///
/// # Errors
/// Runs over different files.
pub fn source<'a>(
    runs: &'a [Contents],
    outcomes: &'a [Outcomes<'a>],
) -> Result<Source<'a>, Failure> {
    let shared = questions::shared(runs, true)?;
    // Runs over one file have the same texts.
    let (texts, dataset) = (&runs[0].texts, &runs[0].plan.dataset);
    let rated = outcomes.iter().map(|outcomes| {
        let lines = || outcomes.lines.first().into_iter().flatten().flatten();
        let finished = lines().filter(|line| line.error().is_none());
        Rated {
            key: key_run(outcomes, lines().next().map_or(0, |line| line.run())),
            finished: finished.map(|line| (line.item(), *line)).collect(),
            searches: outcomes.contents.searches.records.iter().collect(),
        }
    });
    Ok(Source {
        items: shared.iter().filter_map(|id| texts.get(id)).collect(),
        runs: rated.collect(),
        dataset: dataset.name.clone(),
        dataset_sha256: dataset.sha256.clone(),
    })
}

/// What a key says of a run.
fn key_run(outcomes: &Outcomes<'_>, run: u32) -> KeyRun {
    let contents = outcomes.contents;
    KeyRun {
        path: outcomes.name(),
        system: contents.plan.system.clone(),
        models: outcomes.models(),
        plan_sha256: contents.plan_sha256.clone(),
        run,
        synthetic: contents.plan.synthetic,
    }
}
