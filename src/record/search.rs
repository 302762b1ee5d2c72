//! One line of `searches.jsonl`: a query to a corpus and its results. Fields are written in the order of the struct.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The identity of a search within a run directory.
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RetrievedChunk {
    /// `LABEL/DOCUMENT#PARAGRAPH`.
    pub chunk: String,
    pub score: f32,
}

/// A passage as it was shown to a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Passage {
    /// `LABEL/DOCUMENT#PARAGRAPH`.
    pub chunk: String,
    /// The label of its source.
    pub source: String,
    pub title: String,
    /// Its index in its document, from 0.
    pub paragraph: u32,
    /// The reranker's score, the logistic function of its one logit; without a reranker that of retrieval.
    pub score: f32,
    /// The SHA-256 of `text`, in hexadecimal.
    pub sha256: String,
    /// The text as in its document; `None` in runs of earlier versions that kept the sums alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The date of its document as given, such as `2021-05-03`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
}

/// The size of one source of a corpus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceCounts {
    pub label: String,
    pub documents: u64,
    pub chunks: u64,
}

/// How long the parts of a search took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SearchTimes {
    pub embed_ms: f64,
    pub scan_ms: f64,
    pub rerank_ms: f64,
}

/// One line of `searches.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SearchLine {
    pub seq: u64,
    pub dataset: String,
    pub run: u32,
    pub item: String,
    pub round: u32,
    pub step: u32,
    pub query: String,
    /// Whether the query was truncated to the encoder's maximum length.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub query_cut: bool,
    /// The ids of the corpora.
    pub corpus: Vec<String>,
    /// The labels of the searched sources; empty means all.
    pub sources: Vec<String>,
    /// Best first.
    pub retrieved: Vec<RetrievedChunk>,
    /// Best first.
    pub shown: Vec<Passage>,
    pub took: SearchTimes,
    /// Whether the result is that of an earlier equal query of the same run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    pub prev: String,
    pub hash: String,
}

impl fmt::Display for SearchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dataset, run, item, round, step } = self;
        write!(f, "search of round {round}, step {step}, item {item} of {dataset}, run {run}")
    }
}
