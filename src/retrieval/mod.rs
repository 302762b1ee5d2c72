//! Search in corpora: a query in, passages out. What answers is the retriever's thread, or a script in tests.

use crate::diagnosis::Failure;
use crate::record::{Passage, RetrievedChunk, SearchTimes};

/// What a search is to find. Settings that hold for a whole run are the retriever's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchRequest {
    pub query: String,
    /// Chunks that the scan returns at most.
    pub retrieve_top_k: usize,
    /// Of these, passages that are shown at most.
    pub rerank_top_k: usize,
}

/// What a search found.
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

/// What is searched, as logs name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// The ids of the corpora.
    pub corpus: Vec<String>,
    /// The labels of the sources; empty: all.
    pub sources: Vec<String>,
    /// Characters of the longest chunk with its title, from which the longest prompt is computed.
    pub longest_chunk_chars: usize,
}

/// Answers searches. Equal requests have equal results, whatever is searched beside them.
pub trait Retrieve: Send + Sync {
    fn searched(&self) -> &Searched;

    /// Blocks until the passages are there. A query of white space alone finds nothing.
    ///
    /// # Errors
    /// A corpus that cannot be read; an encoder that fails.
    fn search(&self, request: &SearchRequest) -> Result<SearchResult, Failure>;
}
