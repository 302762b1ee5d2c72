//! Search in corpora: a query in, passages out. What answers is the retriever, or a script in tests.

#[cfg(test)]
pub mod scripted;

mod corpora;
mod retriever;
mod search;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::corpus::Corpus;
use crate::corpus::embed::{encoder_of, encoder_options};
use crate::diagnosis::Failure;
use crate::encoder::{EncoderOptions, footprint};
use crate::model::Footprint;
use crate::ops::Device;
use crate::record::{Passage, RetrievedChunk, SearchTimes, SourceCounts};

pub use retriever::Retriever;
pub use search::cosine;

/// What a search is to find. Settings that hold for a whole run are the retriever's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SearchRequest {
    pub query: String,
    /// Chunks that the scan returns at most.
    pub retrieve_top_k: usize,
    /// Of these, passages that are shown at most.
    pub rerank_top_k: usize,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResult {
    /// Best first.
    pub retrieved: Vec<RetrievedChunk>,
    /// Best first; with their texts.
    pub shown: Vec<Passage>,
    pub took: SearchTimes,
    pub is_query_cut: bool,
    pub is_cached: bool,
}

/// What is searched, as logs and plans name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Searched {
    /// The id of each corpus, which covers its texts, vectors and encoder.
    #[serde(rename = "ids")]
    pub corpus: Vec<String>,
    /// The labels of the sources; empty: all.
    pub sources: Vec<String>,
    /// What there is of each source that is searched.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "source")]
    pub contents: Vec<SourceCounts>,
    /// Where the corpora's encoder cuts texts; absent where they do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_tokens: Option<usize>,
    /// What names the reranker's weights and tokenizer; `None` where none reranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reranker: Option<String>,
    /// Characters of the longest chunk with its title, from which the longest prompt is computed.
    #[serde(skip)]
    pub longest_chunk_chars: usize,
}

/// Answers searches. Equal requests have equal results.
pub trait Retrieve: Send + Sync {
    fn searched(&self) -> &Searched;

    /// Blocks until the passages are there. A query of white space alone finds nothing.
    fn search(&self, request: &SearchRequest) -> Result<SearchResult, Failure>;
}

/// How what was retrieved is put in order before it is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Rerank {
    /// By a model that reads query and passage together
    #[default]
    CrossEncoder,
    /// By the cosine of the vectors at their full width
    Embedding,
    /// As retrieved
    Off,
}

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

/// What a run searches and by what.
#[derive(Clone, Debug)]
pub struct RetrieverOptions {
    /// Its device is a name, `device` what was opened.
    pub corpus: CorpusSpec,
    pub rerank: Rerank,
    /// The encoder's folder, where it is another than the corpus was built with.
    pub encoder: Option<PathBuf>,
    /// Where queries are encoded and passages reranked.
    pub device: Device,
}

impl RetrieverOptions {
    /// How the cross-encoder is opened; `None` where none reranks.
    fn reranker_options(&self) -> Result<Option<EncoderOptions>, Failure> {
        let (Rerank::CrossEncoder, Some(folder)) = (self.rerank, &self.corpus.reranker) else {
            return Ok(None);
        };
        let options = encoder_options(folder, self.device.clone())?;
        Ok(Some(EncoderOptions { max_tokens: self.corpus.reranker_tokens, ..options }))
    }
}

/// What a retriever of these options would load and keep, by name. Its corpora's files are mapped: what is read of them stays where memory is
/// free, and goes where it is not.
///
/// # Errors
/// A directory that is no corpus; a folder that is no encoder or no reranker.
pub fn memory(options: &RetrieverOptions) -> Result<Vec<(String, Footprint)>, Failure> {
    let mut models = Vec::new();
    let mut add = |role: &str, options: &EncoderOptions| {
        let folder = options.directory.file_name().unwrap_or_default().to_string_lossy();
        models.push((format!("{role} {folder}"), footprint(options)?));
        Ok::<_, Failure>(())
    };
    if let Some(directory) = options.corpus.directories.first() {
        let (corpus, folder) = (Corpus::open(directory)?, options.encoder.as_deref());
        add("encoder", &encoder_of(&corpus.file, folder, options.device.clone())?)?;
    }
    if let Some(reranker) = options.reranker_options()? {
        add("reranker", &reranker)?;
    }
    Ok(models)
}
