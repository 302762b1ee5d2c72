//! Panel members behind an OpenAI-compatible endpoint: their options, requests and completions.
//!
//! [`Address`] is the member as a user types it, [`ApiKey`] its API key, [`RemoteModel`] the client. `client` is the only module here
//! that opens a connection; a build without the feature `remote` has `client_absent` in its place, which refuses.
//!
//! A remote endpoint is not deterministic: the same request may be answered differently the next time, so a run with one cannot be
//! replayed byte for byte.

mod address;
#[cfg_attr(not(feature = "remote"), path = "client_absent.rs")]
mod client;
pub(super) mod key;

use std::time::Duration;

pub use self::address::Address;
pub use self::client::RemoteModel;
pub use self::key::ApiKey;
use super::SamplingChoice;
use crate::hub::{OfflineReason, Token};
use crate::record::{Grammar, Message};

/// How an endpoint is asked.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// Why no connection may be made; `None` where it may.
    pub offline: Option<OfflineReason>,
    pub key: Option<ApiKey>,
    /// What requests to other machines go through.
    pub proxy: Option<Token>,
    /// Of one attempt, from name resolution to the last byte of the response.
    pub timeout: Duration,
    /// Attempts at one request at most; at least one is made.
    pub attempts: u32,
    /// Pause before the second attempt; it doubles with each further one, up to a minute.
    pub first_pause: Duration,
    /// Concurrent requests at most.
    pub max_in_flight: usize,
}

impl Default for RemoteOptions {
    fn default() -> RemoteOptions {
        RemoteOptions {
            offline: None,
            key: None,
            proxy: None,
            timeout: Duration::from_secs(600),
            attempts: 6,
            first_pause: Duration::from_secs(1),
            max_in_flight: 16,
        }
    }
}

/// A request for one completion. What is `None` is not sent: the provider's default holds.
#[derive(Clone, Debug, Default)]
pub struct RemoteRequest {
    pub messages: Vec<Message>,
    pub max_tokens: Option<usize>,
    /// Its low 31 bits are sent, which every server accepts; it also seeds the jitter of the pauses between attempts.
    pub seed: u64,
    /// Whether no seed is sent.
    pub omit_seed: bool,
    /// Without its `max_tokens`, which is that of the request.
    pub sampling: SamplingChoice,
    /// Sent in whatever form the server supports; nothing here checks that the completion follows it.
    pub grammar: Option<Grammar>,
    /// The chat template's `enable_thinking`, for servers that have it (vLLM, SGLang).
    pub thinking: Option<bool>,
}
