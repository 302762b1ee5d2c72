//! What a run's system is shown as exemplars: the files that flags name, read once, and what the plan keeps of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::library::Shared;
use super::spec::Spec;
use crate::data::{self, Dataset, Format};
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::outside;
use crate::systems::exemplars::Exemplars;

/// What a plan keeps of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExemplarPlan {
    pub format: String,
    pub sha256: String,
    /// Those with gold, which may be shown.
    pub notes: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilePlan>,
}

/// A file beside the notes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilePlan {
    /// `reasons`; in plans of earlier versions others, too.
    pub what: String,
    pub sha256: String,
}

/// The file that `wardround data reasons` writes: the style that was asked for, and the reasons for each note's gold.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReasonsFile {
    pub style: String,
    pub reasons: BTreeMap<String, String>,
}

/// What a system is shown; nothing where it shows nothing.
#[derive(Clone, Default)]
pub struct Shown {
    pub exemplars: Arc<Exemplars>,
    pub plan: Option<ExemplarPlan>,
}

impl Spec {
    /// What the system is shown as exemplars, as another run read it where one did; never the file under test.
    ///
    /// # Errors
    /// Exemplars where none are shown, none where some are; a file that is missing or malformed; the file under test.
    pub(super) fn read_exemplars(
        &self,
        shared: &mut Shared,
        tested: &Dataset,
    ) -> Result<Shown, Failure> {
        let (spec, name) = (&self.exemplars, self.config.entry.name);
        let notes = match (&spec.notes, self.config.entry.exemplars) {
            (Some(notes), true) => notes,
            (None, false) => return Ok(Shown::default()),
            (None, true) => {
                return Err(Failure::usage(
                    format!("{name} shows exemplars, and no file of them was given"),
                    "give --exemplars FILE --exemplars-format medec: MEDEC's training or validation set",
                ));
            }
            (Some(_), false) => {
                let message = format!("{name} shows no exemplars");
                return Err(Failure::usage(message, "leave --exemplars out"));
            }
        };
        let shown = match shared.shown.iter().find(|(known, _)| known == spec) {
            Some((_, shown)) => shown.clone(),
            None => {
                let (exemplars, plan) = spec.read(notes)?;
                let shown = Shown { exemplars: Arc::new(exemplars), plan: Some(plan) };
                shared.shown.push((spec.clone(), shown.clone()));
                shown
            }
        };
        match shown.plan.as_ref().is_some_and(|plan| plan.sha256 == tested.sha256) {
            false => Ok(shown),
            true => Err(Failure::usage(
                format!("{} is the file under test: its gold would be shown", notes.display()),
                "take the training or the validation set for --exemplars",
            )),
        }
    }
}

impl ExemplarSpec {
    fn read(&self, notes: &Path) -> Result<(Exemplars, ExemplarPlan), Failure> {
        let format = self.format.unwrap_or(Format::Medec);
        let dataset = data::load(notes, format)?;
        let mut files = Vec::new();
        let reasons = match &self.reasons {
            None => BTreeMap::new(),
            Some(path) => {
                let bytes = outside::file(path)?;
                let read: ReasonsFile = data::json::read(&bytes).map_err(|error| {
                    Failure::usage(
                        format!("{} is no file of reasons: {error}", path.display()),
                        "`wardround data reasons` writes one",
                    )
                })?;
                files.push(FilePlan { what: "reasons".to_owned(), sha256: sha256(&bytes) });
                read.reasons
            }
        };
        let gold = dataset.items.iter().filter_map(|item| item.note().cloned());
        let exemplars = Exemplars::new(gold, &reasons);
        if exemplars.notes.is_empty() {
            return Err(Failure::usage(
                format!("{} has no note with gold", notes.display()),
                "exemplars are notes and are shown with their gold",
            ));
        }
        let plan = ExemplarPlan {
            format: format.name().to_owned(),
            sha256: dataset.sha256,
            notes: exemplars.notes.len(),
            files,
        };
        Ok((exemplars, plan))
    }
}

/// What a system of exemplars is given; without `notes` nothing. Earlier versions wrote more; what is of those is left aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct ExemplarSpec {
    /// Notes with gold to show (few-shot); never the file under test
    #[arg(id = "exemplars", long = "exemplars", help_heading = "Exemplars", value_name = "FILE")]
    pub notes: Option<PathBuf>,
    /// Format of the file of exemplars, as --format [default: medec]
    #[arg(
        id = "exemplars_format",
        long = "exemplars-format",
        help_heading = "Exemplars",
        value_enum,
        hide_possible_values = true,
        value_name = "FORMAT",
        requires = "exemplars"
    )]
    pub format: Option<Format>,
    /// Why exemplars are right or wrong, as `data reasons` wrote it
    #[arg(
        id = "exemplar_reasons",
        long = "exemplar-reasons",
        help_heading = "Exemplars",
        value_name = "FILE"
    )]
    #[serde(alias = "exemplar_reasons")]
    pub reasons: Option<PathBuf>,
}

impl ExemplarSpec {
    /// The same with whole paths and a format, and the recipe's notes where no others are given.
    pub fn whole(mut self, default: Option<(PathBuf, Format)>) -> Result<ExemplarSpec, Failure> {
        if self.notes.is_none() {
            (self.notes, self.format) = default.unzip();
        }
        if self.notes.is_none() && self != ExemplarSpec::default() {
            let message = "--exemplar-reasons goes with exemplars, and none were given";
            return Err(Failure::usage(message, "give --exemplars FILE"));
        }
        for path in [&mut self.notes, &mut self.reasons].into_iter().flatten() {
            *path = std::path::absolute(&*path)?;
        }
        self.format = self.notes.as_ref().map(|_| self.format.unwrap_or(Format::Medec));
        Ok(self)
    }

    pub fn is_none(&self) -> bool {
        self.notes.is_none()
    }

    /// Every file and folder given.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.notes.iter().chain(&self.reasons)
    }
}
