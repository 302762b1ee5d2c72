//! Errors of a panel's calls and searches, and whether each fails one item or ends the run.

use std::path::PathBuf;

use thiserror::Error;

use super::remote::RemoteError;
use crate::chat::ChatError;
use crate::diagnosis::Failure;
use crate::engine::EngineError;
use crate::fault::faults;
use crate::tokenizer::TokenizerError;

faults! {
    #[derive(Debug, Error)]
    pub enum PanelError {
        #[error(transparent)]
        Tokenizer(error: #[from] TokenizerError) => error.blame();
        #[error(transparent)]
        Chat(error: #[from] ChatError) => error.blame();
        #[error(transparent)]
        Engine(error: #[from] EngineError) => error.blame(), error.hint();
        /// Of what stands beside a call: a model's files, exemplars, a search, the log.
        #[error("{0}")]
        Beside(error: Failure) => error.blame(), error.hint();
        #[error(
            "no end-of-turn token in {path}: neither generation_config.json, config.json nor the tokenizer's files name one"
        )]
        NoEndOfTurn { path: PathBuf } => Artefact;
        #[error("the panel needs {needed} of memory, and {available} is free ({models})")]
        Memory {
            needed: String,
            available: String,
            models: String,
            /// Whether an encoder or a reranker is among them.
            searches: bool,
        } => Usage, less_memory(*searches);
        #[error("the system searches a corpus, and none was given")]
        NoCorpus => Usage, "give --corpus DIR, which `wardround corpus build` writes";
        #[error(
            "search {query:?} of item {item} found other passages than the run's log has: the corpus is not the same"
        )]
        OtherPassages { item: String, query: String } => Artefact;
        #[error("item {item} is not of the kind that the system works on")]
        OtherItem { item: String } => Usage;
        #[error(
            "item {item}: the recruiter named no experts, where MedAgentBoard ends in an error (mab_compat=on)"
        )]
        NoExperts { item: String } => Usage;
        #[error("item {item} has an image, which a local model cannot be shown")]
        Image { item: String } => Usage;
        #[error("a prompt of {prompt} tokens leaves no room in the context of {context}")]
        PromptTooLong { prompt: usize, context: usize } => Usage,
            "raise --context, or leave the item out";
        #[error(transparent)]
        Remote(error: #[from] RemoteError) => error.blame(), error.hint();
        #[error("interrupted")]
        Interrupted => Interrupted;
    }
}

/// How a panel comes to need less memory.
fn less_memory(searches: bool) -> String {
    let panel = "lower --max-batch, --context, --kv-tokens or --kv-fraction, or keep weights smaller: --dtype bf16, --quant q8_0 or q4_k";
    let search = "; or search on another device (--retrieval-device), or without a reranker (--set rerank=off)";
    format!("{panel}{}", if searches { search } else { "" })
}

impl PanelError {
    /// Whether only the current item fails and the run goes on.
    pub fn concerns_item(&self) -> bool {
        if let PanelError::Remote(error) = self {
            return error.concerns_item();
        }
        matches!(
            self,
            PanelError::Image { .. }
                | PanelError::NoExperts { .. }
                | PanelError::PromptTooLong { .. }
                | PanelError::Chat(ChatError::Render { .. } | ChatError::LeftOut { .. })
                | PanelError::Tokenizer(TokenizerError::Encode { .. })
                | PanelError::Engine(
                    EngineError::TooLong { .. }
                        | EngineError::PoolTooSmall { .. }
                        | EngineError::NotFinite { .. }
                )
        )
    }
}
