//! What is searched, as flags say it and as manifests and the audit trail keep it.

use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;
use serde::{Deserialize, Serialize};

use crate::ops::Quantisation;

/// The corpora of systems that search, and how they are searched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CorpusSpec {
    /// Corpora to search, as `corpus build` wrote them, of one encoder
    #[arg(id = "corpus", long = "corpus", help_heading = "Retrieval", value_name = "DIR,DIR")]
    #[serde(alias = "corpus")]
    pub directories: Vec<PathBuf>,
    /// Search only these sources, by their labels [default: all]
    #[arg(
        long,
        help_heading = "Retrieval",
        value_delimiter = ',',
        value_name = "A,B",
        requires = "corpus"
    )]
    pub sources: Vec<String>,
    /// The reranker, for rerank=cross-encoder: a directory or a card
    #[arg(long, help_heading = "Retrieval", value_name = "DIR|CARD")]
    pub reranker: Option<PathBuf>,
    /// Tokens that the reranker reads of query and passage [default: its card's]
    #[arg(long, help_heading = "Retrieval", value_name = "N", requires = "corpus", value_parser = clap::value_parser!(u32).range(8..).map(|tokens| tokens as usize))]
    pub reranker_tokens: Option<usize>,
    /// Quantisation of the reranker's weights
    #[arg(
        long,
        help_heading = "Retrieval",
        default_value = "none",
        value_name = "FORMAT",
        requires = "corpus"
    )]
    pub reranker_quant: Quantisation,
    /// Device that retrieval computes on [default: the panel's first]
    #[arg(
        id = "retrieval_device",
        long = "retrieval-device",
        help_heading = "Retrieval",
        value_name = "DEVICE"
    )]
    #[serde(alias = "retrieval_device")]
    pub device: Option<String>,
    /// Keep checksums of passages in the run, not their texts
    #[arg(long, help_heading = "Retrieval", requires = "corpus")]
    pub no_passages: bool,
    /// That a run of an earlier version also searched by words. There is no such search: it cannot be repeated.
    #[arg(skip)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hybrid: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub refinement: Refinement,
}

/// Refinements of the search that the papers do not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct Refinement {
    /// Of overlapping chunks of one document show only the best
    #[arg(long, help_heading = "Retrieval")]
    pub dedup: bool,
    /// Leave out documents without a date, or dated before this day
    #[arg(long, help_heading = "Retrieval", value_name = "YYYY-MM-DD")]
    pub newer_than: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_no_corpus_has_is_refused_beside_those_of_its_refinement() {
        let read = |text: &str| toml::from_str::<CorpusSpec>(text);
        let spec = read("directories = [\"a\"]\ndedup = true\nnewer_than = \"2020\"").unwrap();
        assert!(spec.refinement.dedup && spec.directories == [PathBuf::from("a")]);
        assert!(read("directories = []\ndedpu = true").is_err());
        let text = toml::to_string(&spec).unwrap();
        assert_eq!(read(&text).unwrap(), spec);
        assert!(!text.contains("reranker_tokens"), "{text}");
        let by_flags = "corpus = [\"a\"]\nretrieval_device = \"cpu\"";
        assert_eq!(read(by_flags).unwrap().device.as_deref(), Some("cpu"));
    }
}
