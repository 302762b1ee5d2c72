//! What a run searches, as its plan has it.

use serde::{Deserialize, Serialize};

use super::{ExemplarPlan, Plan};
use crate::record::SourceCounts;
use crate::retrieval::Gone;

/// What a run searches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorpusPlan {
    /// The id of each corpus, which covers its texts, vectors and encoder.
    pub ids: Vec<String>,
    pub paths: Vec<String>,
    /// The labels of the sources that are searched; empty: all.
    pub sources: Vec<String>,
    /// What there is of each source that is searched.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "source")]
    pub contents: Vec<SourceCounts>,
    /// Where the encoder cuts texts, which the ids cover; absent where the corpus does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_tokens: Option<usize>,
    /// What names the reranker's weights and tokenizer; absent where passages are not reranked by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reranker: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reranker_path: Option<String>,
    /// Where the reranker cuts pairs; absent: where its card says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reranker_tokens: Option<usize>,
    /// Where queries are encoded and passages reranked; absent: on the panel's first device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// By which prompts quote a passage: what the calls' messages refer to is put back by it.
    pub passage: String,
    /// Whether the run keeps the sums of passages alone, not their texts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_passages: bool,
    #[serde(flatten)]
    pub gone: Gone,
}

impl Plan {
    /// The sums of the corpora and exemplars that the system reads.
    pub fn files_read(&self) -> Vec<String> {
        let searched = self.corpus.iter().flat_map(|corpus| corpus.ids.iter().cloned());
        searched.chain(self.exemplars.iter().flat_map(ExemplarPlan::sums)).collect()
    }
}
