//! The files of exemplars that flags name.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::data::Format;

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
