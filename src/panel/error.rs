//! Errors of a panel's calls and searches, and whether each fails one item or ends the run.

use std::path::PathBuf;

use thiserror::Error;

use super::remote::RemoteError;
use crate::chat::ChatError;
use crate::diagnosis::{Blame, Diagnosis, Failure};
use crate::engine::EngineError;
use crate::generation::GenerationError;
use crate::hub::HubError;
use crate::model::ModelError;
use crate::tokenizer::TokenizerError;

#[derive(Debug, Error)]
pub enum PanelError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    #[error(transparent)]
    Chat(#[from] ChatError),
    #[error(transparent)]
    Generation(#[from] GenerationError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A call could not be logged.
    #[error("{0}")]
    Log(Failure),
    #[error(
        "no end-of-turn token in {path}: neither generation_config.json, config.json nor the tokenizer's files name one"
    )]
    NoEndOfTurn { path: PathBuf },
    #[error("the panel needs {needed} of memory, and {available} is free ({models})")]
    Memory {
        needed: String,
        available: String,
        models: String,
        /// Whether an encoder or a reranker is among them.
        searches: bool,
    },
    /// A text that could not be compared with exemplars.
    #[error("{0}")]
    Exemplars(Failure),
    /// A search that failed.
    #[error("{0}")]
    Search(Failure),
    #[error("the system searches a corpus, and none was given")]
    NoCorpus,
    #[error(
        "search {query:?} of item {item} found other passages than the run's log has: the corpus is not the same"
    )]
    OtherPassages { item: String, query: String },
    #[error("item {item} is not of the kind that the system works on")]
    OtherItem { item: String },
    #[error(
        "item {item}: the recruiter named no experts, where MedAgentBoard ends in an error (mab_compat=on)"
    )]
    NoExperts { item: String },
    #[error("item {item} has an image, which a local model cannot be shown")]
    Image { item: String },
    #[error("a prompt of {prompt} tokens leaves no room in the context of {context}")]
    PromptTooLong { prompt: usize, context: usize },
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("interrupted")]
    Interrupted,
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

impl Diagnosis for PanelError {
    fn blame(&self) -> Blame {
        match self {
            PanelError::Model(error) => error.blame(),
            PanelError::Hub(error) => error.blame(),
            PanelError::Tokenizer(error) => error.blame(),
            PanelError::Chat(error) => error.blame(),
            PanelError::Generation(error) => error.blame(),
            PanelError::Engine(error) => error.blame(),
            PanelError::Log(error) | PanelError::Search(error) | PanelError::Exemplars(error) => {
                error.blame()
            }
            PanelError::Remote(error) => error.blame(),
            PanelError::OtherPassages { .. } | PanelError::NoEndOfTurn { .. } => Blame::Artefact,
            PanelError::Memory { .. }
            | PanelError::NoCorpus
            | PanelError::OtherItem { .. }
            | PanelError::NoExperts { .. }
            | PanelError::Image { .. }
            | PanelError::PromptTooLong { .. } => Blame::Usage,
            PanelError::Interrupted => Blame::Interrupted,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            PanelError::Hub(error) => error.hint(),
            PanelError::Model(error) => error.hint(),
            PanelError::Engine(error) => error.hint(),
            PanelError::Log(error) | PanelError::Search(error) | PanelError::Exemplars(error) => {
                error.hint()
            }
            PanelError::NoCorpus => {
                Some("give --corpus DIR, which `wardround corpus build` writes".to_owned())
            }
            PanelError::Remote(error) => error.hint(),
            PanelError::Memory { searches, .. } => {
                let panel = "lower --max-batch, --context, --kv-tokens or --kv-fraction, or keep weights smaller: --dtype bf16, --quant q8_0 or q4_k";
                let search = "; or search on another device (--retrieval-device), or without a reranker (--set rerank=off)";
                Some(format!("{panel}{}", if *searches { search } else { "" }))
            }
            PanelError::PromptTooLong { .. } => {
                Some("raise --context, or leave the item out".to_owned())
            }
            _ => None,
        }
    }
}
