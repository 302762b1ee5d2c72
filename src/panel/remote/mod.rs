//! Panel members behind an OpenAI-compatible endpoint: what is asked of one, and what comes back.
//!
//! [`Address`] is the member as a user types it, [`ApiKey`] what it is paid with, [`RemoteModel`] answers. `client` is
//! the only module here that opens a connection, and a build without the feature `remote` swaps it for a stand-in
//! that refuses.
//!
//! What a remote member says depends on a machine that nobody here controls: the same request may be answered
//! otherwise the next time, so a run with one cannot be replayed byte for byte.

mod address;
#[cfg_attr(not(feature = "remote"), path = "client_absent.rs")]
mod client;
mod error;
mod key;

use std::time::Duration;

pub use self::address::Address;
pub use self::client::{AVAILABLE, RemoteModel};
pub use self::error::RemoteError;
pub use self::key::ApiKey;
use super::SamplingChoice;
use crate::hub::OfflineReason;
use crate::record::Grammar;
use crate::record::{AnsweredBy, FinishReason, Message, Usage};

/// How an endpoint is dealt with. `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` are heeded too, by the HTTP
/// client itself.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// What forbids connections, if anything does.
    pub offline: Option<OfflineReason>,
    pub key: Option<ApiKey>,
    /// For looking the name up, and again for the connection.
    pub connect_timeout: Duration,
    /// For one attempt, from looking the name up to the last byte of the answer.
    pub timeout: Duration,
    /// Of one request, at most; at least one is made.
    pub attempts: u32,
    /// Before the second attempt; it doubles from one to the next, up to a minute.
    pub first_pause: Duration,
    /// A server that asks for a longer pause than this is not asked again.
    pub longest_pause: Duration,
    /// Requests under way at once.
    pub max_in_flight: usize,
    /// Requests begun per minute, evenly spaced; `None`: as many as come.
    pub requests_per_minute: Option<u32>,
    /// A longer answer is refused.
    pub most_bytes: u64,
}

impl Default for RemoteOptions {
    fn default() -> RemoteOptions {
        RemoteOptions {
            offline: None,
            key: None,
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(600),
            attempts: 6,
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(300),
            max_in_flight: 16,
            requests_per_minute: None,
            most_bytes: 16 << 20,
        }
    }
}

/// One completion to ask for. What is `None` is not sent: the provider's default holds.
#[derive(Clone, Debug, Default)]
pub struct RemoteRequest {
    pub messages: Vec<Message>,
    /// Shown before the last user message's text: a path, or an address that begins with `http`, `https` or `data`.
    pub image: Option<String>,
    pub max_tokens: Option<usize>,
    /// Its low 31 bits are sent, which every server takes; the pauses between attempts derive from it too.
    pub seed: u64,
    /// Its `seed` is not sent: it is in the request's.
    pub sampling: SamplingChoice,
    /// Asked for as far as the server knows how; nothing here checks that it holds.
    pub grammar: Option<Grammar>,
    /// The chat template's `enable_thinking`, for servers that render one (vLLM, SGLang).
    pub thinking: Option<bool>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteCompletion {
    /// Without what the server gives as reasoning; for a refusal, its words.
    pub text: String,
    pub finish_reason: FinishReason,
    /// Zeros where the server does not count.
    pub usage: Usage,
    /// Whether a grammar went with the request that was answered.
    pub is_constrained: bool,
    pub answered_by: Option<AnsweredBy>,
    /// Over all attempts and the pauses between them.
    pub elapsed_ms: u64,
    /// Requests that it took.
    pub attempts: u32,
    /// What was learned about the endpoint on the way, for the user and the log. Each is said once.
    pub notes: Vec<String>,
}

/// Waits for a completion.
pub type Waiting = Box<dyn FnOnce() -> Result<RemoteCompletion, RemoteError>>;
