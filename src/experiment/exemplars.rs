//! What a run's system is shown as exemplars: the files that flags name, read once, and what the plan keeps of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::library::Shared;
use super::run::absolute;
use super::spec::{Spec, formats};
use crate::corpus::open_encoder;
use crate::data::{self, DataError, Dataset, Format, ItemKind};
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::outside;
use crate::systems::exemplars::Exemplars;
use crate::systems::exemplars::vectors::Vectors;

/// What a plan keeps of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExemplarPlan {
    pub path: String,
    pub format: String,
    pub sha256: String,
    /// Those with gold, which may be shown.
    pub notes: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilePlan>,
}

impl ExemplarPlan {
    /// Of the notes and of every file beside them.
    pub(super) fn sums(&self) -> impl Iterator<Item = String> {
        let files = self.files.iter().map(|file| file.sha256.clone());
        std::iter::once(self.sha256.clone()).chain(files)
    }
}

/// A file; of an encoder its folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilePlan {
    /// `REASONS` or `ENCODER`; in plans of earlier versions others, too.
    pub what: String,
    pub path: String,
    /// Of an encoder over what its numbers depend on.
    pub sha256: String,
}

impl FilePlan {
    pub(super) fn is_known(&self) -> bool {
        [REASONS, ENCODER].contains(&self.what.as_str())
    }
}

const REASONS: &str = "reasons";
const ENCODER: &str = "encoder";

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
    /// What the system is shown as exemplars, as another run read it where one did. A run has a file under test, which may not be the one that
    /// is shown.
    ///
    /// # Errors
    /// Exemplars where none are shown, none where some are; a file that is missing or malformed; the file under test.
    pub fn read_exemplars(
        &self,
        shared: &mut Shared,
        tested: Option<&Dataset>,
    ) -> Result<Shown, Failure> {
        self.refuse_other_exemplars()?;
        let Some(spec) = &self.exemplars else { return Ok(Shown::default()) };
        let shown = match shared.shown.iter().find(|(known, _)| known == spec) {
            Some((_, shown)) => shown.clone(),
            None => {
                let (exemplars, plan) = spec.read()?;
                let shown = Shown { exemplars: Arc::new(exemplars), plan: Some(plan) };
                shared.shown.push((spec.clone(), shown.clone()));
                shown
            }
        };
        let is_tested = |plan: &ExemplarPlan| tested.is_some_and(|file| file.sha256 == plan.sha256);
        match shown.plan.as_ref().is_some_and(is_tested) {
            false => Ok(shown),
            true => Err(Failure::usage(
                format!("{} is the file under test: its gold would be shown", spec.notes.display()),
                "take the training or the validation set for --exemplars",
            )),
        }
    }

    /// Refuses exemplars where none are shown, and none where some are.
    fn refuse_other_exemplars(&self) -> Result<(), Failure> {
        let name = self.config.entry.name;
        match (&self.exemplars, self.config.entry.exemplars) {
            (Some(_), true) | (None, false) => Ok(()),
            (None, true) => Err(Failure::usage(
                format!("{name} shows exemplars, and no file of them was given"),
                "give --exemplars FILE --exemplars-format medec: MEDEC's training or validation set",
            )),
            (Some(_), false) => {
                Err(Failure::usage(format!("{name} shows no exemplars"), "leave --exemplars out"))
            }
        }
    }
}

impl ExemplarSpec {
    fn read(&self) -> Result<(Exemplars, ExemplarPlan), Failure> {
        if self.format.kind() != ItemKind::Notes {
            return Err(Failure::usage(
                format!("exemplars are notes, and {} holds questions", self.format),
                &format!("the formats of notes are {}", formats(ItemKind::Notes)),
            ));
        }
        let dataset = data::load(&self.notes, self.format).map_err(|error| {
            error.of_needed_rows(
                "fix the row; if all rows look like it, another --exemplars-format may be right",
            )
        })?;
        let mut files = Vec::new();
        let reasons = match &self.files.reasons {
            None => BTreeMap::new(),
            Some(path) => {
                let bytes = outside::file(path)?;
                let read: ReasonsFile = data::json::read(&bytes).map_err(|error| {
                    Failure::usage(
                        format!("{} is no file of reasons: {error}", path.display()),
                        "`wardround data reasons` writes one",
                    )
                })?;
                files.push(file(REASONS, path, sha256(&bytes))?);
                read.reasons
            }
        };
        let vectors = match &self.files.encoder {
            None => None,
            Some(folder) => {
                let encoder = open_encoder(folder)?;
                let identity = toml::to_string(encoder.identity()).map_err(|error| {
                    Failure::usage(format!("{}: {error}", folder.display()), "take another encoder")
                })?;
                files.push(file(ENCODER, folder, sha256(identity))?);
                Some(Vectors::new(Box::new(move |texts| Ok(encoder.embed(texts)?))))
            }
        };
        let notes = dataset.items.iter().filter_map(|item| item.note().cloned());
        let exemplars = Exemplars::new(notes, &reasons, vectors);
        if exemplars.notes.is_empty() {
            return Err(Failure::usage(
                format!("{} has no note with gold", self.notes.display()),
                "exemplars are shown with their gold",
            ));
        }
        let plan = ExemplarPlan {
            path: absolute(&self.notes)?,
            format: self.format.name().to_owned(),
            sha256: dataset.sha256,
            notes: exemplars.notes.len(),
            files,
        };
        Ok((exemplars, plan))
    }
}

impl TryFrom<&ExemplarPlan> for ExemplarSpec {
    /// A format that this version does not know.
    type Error = DataError;

    fn try_from(plan: &ExemplarPlan) -> Result<ExemplarSpec, DataError> {
        let named = |what: &str| {
            let mut files = plan.files.iter();
            files.find(|file| file.what == what).map(|file| file.path.clone().into())
        };
        Ok(ExemplarSpec {
            notes: plan.path.clone().into(),
            format: plan.format.parse()?,
            files: ExemplarFiles { reasons: named(REASONS), encoder: named(ENCODER) },
        })
    }
}

fn file(what: &str, path: &Path, sha256: String) -> Result<FilePlan, Failure> {
    Ok(FilePlan { what: what.to_owned(), path: absolute(path)?, sha256 })
}

/// What a system of exemplars is given. Earlier versions wrote more; what is of those is left aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExemplarSpec {
    pub notes: PathBuf,
    pub format: Format,
    #[serde(flatten)]
    pub files: ExemplarFiles,
}

/// What is given beside the notes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct ExemplarFiles {
    /// Why exemplars are right or wrong, as `data reasons` wrote it
    #[arg(
        id = "exemplar_reasons",
        long = "exemplar-reasons",
        help_heading = "Exemplars",
        value_name = "FILE"
    )]
    #[serde(alias = "exemplar_reasons")]
    pub reasons: Option<PathBuf>,
    /// Directory of an encoder, for choice=embedding
    #[arg(
        id = "exemplar_encoder",
        long = "exemplar-encoder",
        help_heading = "Exemplars",
        value_name = "DIR"
    )]
    #[serde(alias = "exemplar_encoder")]
    pub encoder: Option<PathBuf>,
}

impl ExemplarFiles {
    /// Every file and folder given.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.reasons.iter().chain(&self.encoder)
    }

    /// The same, to be changed.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.reasons.iter_mut().chain(&mut self.encoder)
    }
}

#[cfg(test)]
mod tests;
