//! The files of exemplars that flags name.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::data::Format;

/// What a system of exemplars is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// Why exemplars are right or wrong, as `reasons` wrote it
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
    /// The suspicious words of each note, for edinburgh's span=file: {"ms-test-1": "aspirin", …}
    #[arg(long, help_heading = "Exemplars", value_name = "FILE")]
    pub spans: Option<PathBuf>,
    /// Weights of a sentence's vector and a constant, for ikim's candidate=scorer: a list of numbers
    #[arg(
        id = "sentence_scorer",
        long = "sentence-scorer",
        help_heading = "Exemplars",
        value_name = "FILE"
    )]
    #[serde(alias = "sentence_scorer")]
    pub scorer: Option<PathBuf>,
    /// Lemmas of words, for choice=bm25: on each line a word, a tab and its lemma
    #[arg(long, help_heading = "Exemplars", value_name = "FILE")]
    pub lemmas: Option<PathBuf>,
    /// The folder of deberta-xlarge-mnli, for edinburgh's filter=bertscore
    #[arg(
        id = "filter_scorer",
        long = "filter-scorer",
        help_heading = "Exemplars",
        value_name = "DIR"
    )]
    #[serde(alias = "filter_scorer")]
    pub filter: Option<PathBuf>,
    /// Questions of MedQA, for wanglab's leak=medqa: MEDEC's notes are made of such, and every table says so
    #[arg(
        id = "leak_questions",
        long = "leak-questions",
        help_heading = "Exemplars",
        value_name = "FILE"
    )]
    #[serde(alias = "leak_questions")]
    pub leak: Option<PathBuf>,
    /// Finished runs over the same notes, for hse-nlp, each with the share of other notes that it judged rightly
    #[arg(long, help_heading = "Exemplars", value_name = "RUN=0.61,RUN")]
    pub experts: Vec<String>,
}

impl ExemplarFiles {
    /// Every file and folder given, without the runs.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let ExemplarFiles { reasons, encoder, spans, scorer, lemmas, filter, leak, experts: _ } =
            self;
        [reasons, encoder, spans, scorer, lemmas, filter, leak].into_iter().flatten()
    }

    /// The same, to be changed.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let ExemplarFiles { reasons, encoder, spans, scorer, lemmas, filter, leak, experts: _ } =
            self;
        [reasons, encoder, spans, scorer, lemmas, filter, leak].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_no_exemplars_have_is_refused() {
        let read = |more: &str| {
            toml::from_str::<ExemplarSpec>(&format!("notes = \"a\"\nformat = \"notes\"\n{more}"))
        };
        assert_eq!(read("spans = \"b\"").unwrap().files.spans, Some("b".into()));
        assert!(read("span = \"b\"").is_err());
    }
}
