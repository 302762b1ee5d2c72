//! What a plan has of its items, of what is searched, of the engines and of the host.

use serde::{Deserialize, Serialize};

use super::{ExemplarPlan, Plan};
use crate::record::SourceCounts;
use crate::retrieval::Gone;

/// What a run searches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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

/// The questions of a run. Earlier versions kept more: whether malformed rows were left out, and the shard that the items are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasetPlan {
    pub name: String,
    pub format: String,
    pub path: String,
    pub sha256: String,
    /// Over the run's dataset.jsonl.
    pub items_sha256: String,
    /// The ids that run, in order.
    pub items: Vec<String>,
}

/// What the engines were told; none of it changes a byte of the answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnginePlan {
    pub device: String,
    /// The GPU's compute capability or the CPU's instruction set: equal kinds give equal bytes.
    pub device_kind: String,
    pub threads: usize,
    pub max_batch: usize,
    /// Tokens that a sequence may draft a step; plans from before there were drafts do not say.
    #[serde(default)]
    pub draft: usize,
    pub max_in_flight: usize,
}

/// Where it ran; not compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPlan {
    pub name: String,
    pub system: String,
    pub cpu: String,
    pub cores: usize,
    pub memory_bytes: u64,
    /// What held of the sandbox, in words; `None`: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
}
