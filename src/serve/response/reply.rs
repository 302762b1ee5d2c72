//! What is sent: whole, or as the chunks of a stream.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::Value;

use super::logprobs::Logprobs;
use crate::record;

/// A completion, or a chunk of one.
#[derive(Clone, Debug, Serialize)]
pub struct Reply {
    pub id: String,
    pub object: &'static str,
    pub created: u64,
    pub model: String,
    pub system_fingerprint: String,
    pub choices: Vec<Choice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// In the whole, and in the last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wardround: Option<Own>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Choice {
    pub index: usize,
    /// Of a whole chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Said>,
    /// Of a chunk of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<Said>,
    /// Of a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    pub logprobs: Option<Logprobs>,
    pub finish_reason: Option<&'static str>,
}

/// What is said in a chat.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Said {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Usage {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
    prompt_tokens_details: CachedTokens,
    completion_tokens_details: ReasoningTokens,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct CachedTokens {
    cached_tokens: usize,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct ReasoningTokens {
    reasoning_tokens: usize,
}

impl Usage {
    pub fn of(sum: record::Usage, reasoning_tokens: usize) -> Usage {
        Usage {
            prompt_tokens: sum.prompt_tokens,
            completion_tokens: sum.completion_tokens,
            total_tokens: sum.total(),
            prompt_tokens_details: CachedTokens { cached_tokens: sum.cached_tokens },
            completion_tokens_details: ReasoningTokens { reasoning_tokens },
        }
    }
}

/// What no other server's responses have: the seed, the request's digest, the fields without effect; of a system its item and record.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Own {
    pub seed: i64,
    pub request: String,
    pub ignored: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<Value>,
}

/// The id of a response, which no other has.
pub fn new_id(prefix: &str) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{prefix}-{:x}-{:x}", since.as_micros(), COUNTER.fetch_add(1, Relaxed))
}

impl Reply {
    /// What all chunks of a response have, without a choice. Its id is unique.
    pub fn new(is_chat: bool, model: &str, fingerprint: &str) -> Reply {
        let (object, prefix) =
            if is_chat { ("chat.completion", "chatcmpl") } else { ("text_completion", "cmpl") };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Reply {
            id: new_id(prefix),
            object,
            created: since.as_secs(),
            model: model.to_owned(),
            system_fingerprint: fingerprint.to_owned(),
            choices: Vec::new(),
            usage: None,
            wardround: None,
        }
    }

    pub fn is_chat(&self) -> bool {
        self.object == "chat.completion"
    }

    /// A chunk with these choices.
    pub fn chunk(&self, choices: Vec<Choice>) -> Reply {
        let object = if self.is_chat() { "chat.completion.chunk" } else { self.object };
        Reply { object, choices, ..self.clone() }
    }
}

impl Choice {
    /// The first chunk of a chat's choice.
    pub fn begun(index: usize) -> Choice {
        let (role, content) = (Some("assistant"), Some(String::new()));
        let delta = Some(Said { role, content, reasoning_content: None });
        Choice { index, delta, ..Choice::default() }
    }

    /// The next chunk of a chat's choice, or the whole.
    pub fn of_chat(index: usize, is_stream: bool, content: String, reasoning: String) -> Choice {
        let unless_empty = |text: String| Some(text).filter(|text| !text.is_empty());
        let reasoning_content = unless_empty(reasoning);
        if is_stream {
            let delta = Said { role: None, content: unless_empty(content), reasoning_content };
            return Choice { index, delta: Some(delta), ..Choice::default() };
        }
        let role = Some("assistant");
        let message = Said { role, content: Some(content), reasoning_content };
        Choice { index, message: Some(message), ..Choice::default() }
    }
}
