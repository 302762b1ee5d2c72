//! One line of `searches.jsonl`: a query to a corpus and the passages that came of it. Field order here is field order on disk.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::SearchPlace;

/// What names a search: equal keys mean the same search.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SearchKey {
    pub dataset: String,
    pub run: u32,
    pub item: String,
    /// The outer turn of the protocol, from 0.
    pub round: u32,
    /// The step of that turn, from 0.
    pub step: u32,
}

/// A chunk that a query retrieved, before reranking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrievedChunk {
    /// `LABEL/DOCUMENT#PARAGRAPH`.
    pub chunk: String,
    pub score: f32,
}

/// A passage as a model was shown it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passage {
    /// `LABEL/DOCUMENT#PARAGRAPH`.
    pub chunk: String,
    /// The label of its source.
    pub source: String,
    pub title: String,
    /// Its place in its document, from 0.
    pub paragraph: u32,
    /// Of reranking; of retrieval where nothing was reranked. The logistic function of a reranker's one logit.
    pub score: f32,
    /// Of `text`, in hex.
    pub sha256: String,
    /// As its document has it; `None` where the corpus may not be copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Of its document, as given: `2021-05-03`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
}

/// What a corpus has of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceCounts {
    pub label: String,
    pub documents: u64,
    pub chunks: u64,
}

/// How long the parts of a search took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchTimes {
    pub embed_ms: f64,
    pub scan_ms: f64,
    pub rerank_ms: f64,
}

/// One line of `searches.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchLine {
    pub seq: u64,
    pub dataset: String,
    pub run: u32,
    pub item: String,
    pub round: u32,
    pub step: u32,
    pub query: String,
    /// Whether the encoder's limit cut the query.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub query_cut: bool,
    /// The ids of the corpora.
    pub corpus: Vec<String>,
    /// The labels of the sources that were searched; empty: all.
    pub sources: Vec<String>,
    /// Best first.
    pub retrieved: Vec<RetrievedChunk>,
    /// Best first.
    pub shown: Vec<Passage>,
    pub took: SearchTimes,
    /// Whether an equal query of the same run had been answered before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    pub prev: String,
    pub hash: String,
}

impl SearchLine {
    pub fn key(&self) -> SearchKey {
        SearchKey {
            dataset: self.dataset.clone(),
            run: self.run,
            item: self.item.clone(),
            round: self.round,
            step: self.step,
        }
    }

    /// Whether every passage has its text.
    pub fn has_texts(&self) -> bool {
        self.shown.iter().all(|passage| passage.text.is_some())
    }
}

impl SearchKey {
    pub fn place(&self) -> SearchPlace {
        SearchPlace { round: self.round, step: self.step }
    }
}

impl fmt::Display for SearchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dataset, run, item, round, step } = self;
        write!(f, "search of round {round}, step {step}, item {item} of {dataset}, run {run}")
    }
}
