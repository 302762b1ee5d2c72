//! What is searched, as flags say it and as manifests and the audit trail keep it.

use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;
use serde::{Deserialize, Serialize};

/// The corpora of systems that search, and how they are searched. What earlier versions kept beside is left aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct CorpusSpec {
    /// Corpora to search, as `corpus build` wrote them, of one encoder
    #[arg(
        id = "corpus",
        long = "corpus",
        help_heading = "Retrieval",
        value_delimiter = ',',
        value_name = "DIR,DIR"
    )]
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
}
