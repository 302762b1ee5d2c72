//! Errors of a panel's calls, at endpoints too, and searches, and whether each fails one item or ends the run.

use thiserror::Error;

use super::remote::Address;
use super::remote::key::{WARDROUND_API_KEY, own_variable};
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
        /// Of what stands beside a call: a model's files, an endpoint's key, exemplars, a search, the log.
        #[error("{0}")]
        Beside(error: Failure) => error.blame(), error.hint();
        /// Of the item, or of what it is answered with: the run goes on.
        #[error("{0}")]
        OfItem(error: Failure) => error.blame(), error.hint();
        #[error("a prompt of {prompt} tokens leaves no room in the context of {context}")]
        PromptTooLong { prompt: usize, context: usize } => Usage,
            "raise --context, or leave the item out";
        /// Of whatever is asked there.
        #[error("{address} refuses to be asked (HTTP {status}): {message}")]
        Refused { address: Address, status: u16, message: String } => Usage,
            match status {
                401..=403 | 429 => format!(
                    "check the key, its rights and its quota: it is read from {}, or from {WARDROUND_API_KEY} where an argument names the endpoint; \
                     OPENAI_API_KEY goes to openai.com alone",
                    own_variable(address.host())
                ),
                400 | 422 => "check the model's name; a sampling parameter that the endpoint does not take is set for other agents alone, as \
                     --set slot.AGENT.NAME=VALUE".to_owned(),
                _ => format!("check the model's name and the URL: {} lists what is there", address.models()),
            };
        #[error("interrupted")]
        Interrupted => Interrupted;
    }
}

impl From<Failure> for PanelError {
    fn from(error: Failure) -> PanelError {
        PanelError::Beside(error)
    }
}

impl PanelError {
    /// Whether only the current item fails and the run goes on.
    pub fn concerns_item(&self) -> bool {
        matches!(
            self,
            PanelError::OfItem(_)
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
