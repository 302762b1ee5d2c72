//! The flags of systems that search: corpora, refinement and reranking.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::cli::exit::Failure;
use crate::cli::list;
use crate::cli::options::model_folder;
use crate::experiment::library::CorpusSpec;
use crate::ops::Quantisation;
use crate::retrieval::Refinement;

/// The corpora of systems that search, and how they are searched.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct CorpusFlags {
    /// The corpora to search, as `corpus build` wrote them; several must have one encoder
    #[arg(long, help_heading = "Retrieval", value_name = "DIR,DIR")]
    pub corpus: Vec<PathBuf>,
    /// Search only these sources, by their labels [default: all]
    #[arg(
        long,
        help_heading = "Retrieval",
        value_delimiter = ',',
        value_name = "A,B",
        requires = "corpus"
    )]
    pub sources: Vec<String>,
    /// The reranker, for rerank=cross-encoder: its directory, or its card's name
    #[arg(long, help_heading = "Retrieval", value_name = "DIR|CARD")]
    pub reranker: Option<PathBuf>,
    /// Maximum number of tokens the reranker reads of a query and a passage [default: what its card says]
    #[arg(long, help_heading = "Retrieval", value_name = "N", requires = "corpus", value_parser = clap::value_parser!(u32).range(8..))]
    pub reranker_tokens: Option<u32>,
    /// Weight quantisation of the reranker on load, as --quant; the encoder's is the corpus's
    #[arg(
        long,
        help_heading = "Retrieval",
        default_value = "none",
        value_name = "FORMAT",
        requires = "corpus"
    )]
    pub reranker_quant: Quantisation,
    /// Device that encodes queries and reranks passages [default: the panel's first]
    #[arg(long, help_heading = "Retrieval", value_name = "DEVICE")]
    pub retrieval_device: Option<String>,
    /// Keep checksums of passages in the run directory, not their texts: for corpora that may not be copied
    #[arg(long, help_heading = "Retrieval", requires = "corpus")]
    pub no_passages: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub refinement: RefinementFlags,
}

/// Refinements of the search that the papers do not have.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
pub struct RefinementFlags {
    /// Hybrid search: also by BM25, fused by rank with the search by vectors; the corpus must have been built with --bm25
    #[arg(long, help_heading = "Retrieval")]
    #[serde(default)]
    pub hybrid: bool,
    /// Of overlapping chunks of one document show only the best; `check` always does
    #[arg(long, help_heading = "Retrieval")]
    #[serde(default)]
    pub dedup: bool,
    /// Leave out documents dated before this day, and those without a date
    #[arg(long, help_heading = "Retrieval", value_name = "YYYY-MM-DD")]
    pub newer_than: Option<String>,
}

impl RefinementFlags {
    /// The refinement; `encoder` is the encoder's directory, if it has moved.
    pub fn refinement(self, encoder: Option<PathBuf>) -> Refinement {
        let RefinementFlags { hybrid, dedup, newer_than } = self;
        Refinement { encoder, hybrid, dedup, newer_than }
    }
}

impl CorpusFlags {
    /// The folder of the reranker.
    ///
    /// # Errors
    /// A card whose files are missing; a path that cannot be made absolute.
    pub fn reranker(&self) -> Result<Option<PathBuf>, Failure> {
        let folder = self.reranker.as_deref().map(model_folder).transpose()?;
        Ok(folder.map(std::path::absolute).transpose()?)
    }

    /// The corpora, one by one.
    ///
    /// # Errors
    /// A name with a comma that can be read as two.
    pub fn directories(&self) -> Result<Vec<PathBuf>, Failure> {
        list::paths(&self.corpus)
    }

    /// `None` without a corpus.
    ///
    /// # Errors
    /// Flags of a corpus without one; a path that cannot be made absolute.
    pub fn spec(&self) -> Result<Option<CorpusSpec>, Failure> {
        if self.corpus.is_empty() && self.refinement != RefinementFlags::default() {
            let message = "--hybrid, --dedup and --newer-than need a corpus";
            return Err(Failure::usage(message, "give --corpus DIR"));
        }
        if self.corpus.is_empty() {
            return Ok(None);
        }
        let RefinementFlags { hybrid, dedup, newer_than } = self.refinement.clone();
        let directories = self.directories()?;
        let directories = directories.iter().map(std::path::absolute);
        Ok(Some(CorpusSpec {
            directories: directories.collect::<Result<_, _>>()?,
            sources: self.sources.clone(),
            reranker: self.reranker()?,
            reranker_tokens: self.reranker_tokens.map(|tokens| tokens as usize),
            reranker_quant: self.reranker_quant,
            device: self.retrieval_device.clone(),
            no_passages: self.no_passages,
            hybrid,
            dedup,
            newer_than,
        }))
    }
}
