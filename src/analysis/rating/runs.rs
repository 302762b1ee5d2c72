//! The runs that are rated: with the data that they ran on, and with what they made of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::RatingError;
use super::key::KeyRun;
use crate::analysis::comparison::questions;
use crate::data::{self, Dataset};
use crate::experiment::contents::Contents;
use crate::experiment::verify::read_finished;
use crate::record::ItemLine;

/// Reads the runs, which must have finished, and the data that they ran on: `data`, or where the first run's plan says.
///
/// # Errors
/// A directory that is no finished run, does not verify, or is there twice; runs over different files; other data.
pub fn read(
    directories: &[PathBuf],
    data: Option<&Path>,
) -> Result<(Vec<Contents>, Dataset), RatingError> {
    let mut runs: Vec<Contents> = Vec::new();
    for directory in directories {
        let run = read_finished(directory)?.0;
        if let Some(first) = runs.iter().find(|one| one.plan_sha256 == run.plan_sha256) {
            return Err(RatingError::SameRun {
                first: first.path.clone(),
                other: run.path,
            });
        }
        runs.push(run);
    }
    let Some(first) = runs.first() else {
        return Err(RatingError::NothingToRate);
    };
    // Runs over different files: no data is that of all of them.
    questions::shared(&runs, true)?;
    let planned = &first.plan.dataset;
    let path = data.unwrap_or(Path::new(&planned.path));
    let dataset = data::load(path, planned.format.parse()?)?;
    if dataset.sha256 != planned.sha256 {
        return Err(RatingError::OtherData {
            path: path.to_owned(),
            expected: planned.sha256.clone(),
            found: dataset.sha256,
        });
    }
    Ok((runs, dataset))
}

/// The outcomes of a run's first repetition that are no errors.
pub struct Outcomes<'a> {
    contents: &'a Contents,
    run: u32,
    pub by_item: BTreeMap<String, &'a ItemLine>,
}

impl Outcomes<'_> {
    pub fn first(contents: &Contents) -> Outcomes<'_> {
        let outcomes = contents.outcomes();
        let run = outcomes.keys().map(|key| key.run).min().unwrap_or_default();
        let finished = outcomes
            .into_iter()
            .filter(|(key, record)| key.run == run && record.error().is_none());
        Outcomes {
            contents,
            run,
            by_item: finished.map(|(key, record)| (key.item, record)).collect(),
        }
    }

    pub fn key(&self) -> KeyRun {
        let plan = &self.contents.plan;
        let mut models: Vec<String> = Vec::new();
        for member in &plan.panel {
            if !models.contains(&member.backbone) {
                models.push(member.backbone.clone());
            }
        }
        KeyRun {
            path: self.contents.path.display().to_string(),
            system: plan.system.clone(),
            models,
            plan_sha256: self.contents.plan_sha256.clone(),
            run: self.run,
            synthetic: plan.synthetic,
        }
    }
}
