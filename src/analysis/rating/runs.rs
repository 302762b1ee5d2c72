//! The runs that are rated, and what they made of the items.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::RatingError;
use super::key::KeyRun;
use crate::analysis::outcomes::Outcomes;
use crate::experiment::contents::Contents;
use crate::experiment::verify::read_finished;
use crate::record::ItemLine;

/// Reads the runs, which must have finished.
///
/// # Errors
/// A directory that is no finished run, does not verify, or is there twice.
pub fn read(directories: &[PathBuf]) -> Result<Vec<Contents>, RatingError> {
    let mut runs: Vec<Contents> = Vec::new();
    for directory in directories {
        let run = read_finished(directory)?.0;
        if let Some(first) = runs.iter().find(|one| one.plan_sha256 == run.plan_sha256) {
            return Err(RatingError::SameRun { first: first.path.clone(), other: run.path });
        }
        runs.push(run);
    }
    Ok(runs)
}

/// What one repetition of a run made of the items.
pub struct Repetition<'a> {
    pub run: u32,
    /// Outcomes that are no errors, by item.
    pub finished: BTreeMap<&'a str, &'a ItemLine>,
}

impl<'a> Repetition<'a> {
    /// The first.
    pub fn first(outcomes: &'a Outcomes<'_>) -> Repetition<'a> {
        let first = outcomes.all().into_iter().next().unwrap_or_default();
        let lines = || first.iter().flatten();
        let finished = lines().filter(|line| line.error().is_none());
        Repetition {
            run: lines().next().map_or(0, |line| line.run()),
            finished: finished.map(|line| (line.item(), *line)).collect(),
        }
    }
}

/// What a key says of a run.
pub fn key_run(outcomes: &Outcomes<'_>, run: u32) -> KeyRun {
    let contents = outcomes.contents();
    KeyRun {
        path: outcomes.name(),
        system: contents.plan.system.clone(),
        models: outcomes.models(),
        plan_sha256: contents.plan_sha256.clone(),
        run,
        synthetic: contents.plan.synthetic,
    }
}
