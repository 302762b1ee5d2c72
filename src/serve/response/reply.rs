//! What is sent: whole, or as the chunks of a stream, of which the whole is the sum.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::logprobs::{Lists, TokenLogprob};
use crate::record;

/// A completion, or a chunk of one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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

#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Choice {
    pub index: usize,
    /// Of a whole chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// Of a chunk of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<Delta>,
    /// Of a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    pub logprobs: Option<Logprobs>,
    pub finish_reason: Option<&'static str>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Message {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    refusal: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Logprobs {
    Chat { content: Vec<TokenLogprob>, refusal: Option<String> },
    Text(Lists),
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Usage {
    pub prompt_tokens: usize,
    pub completion_tokens: usize,
    pub total_tokens: usize,
    pub prompt_tokens_details: CachedTokens,
    pub completion_tokens_details: ReasoningTokens,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct CachedTokens {
    pub cached_tokens: usize,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ReasoningTokens {
    pub reasoning_tokens: usize,
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
#[derive(Clone, Debug, Serialize, JsonSchema)]
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

    /// A chunk with these choices.
    pub fn chunk(&self, choices: Vec<Choice>) -> Reply {
        let is_chat = self.object == "chat.completion";
        let object = if is_chat { "chat.completion.chunk" } else { self.object };
        Reply { object, choices, ..self.clone() }
    }
}

impl Choice {
    /// A chunk of a chat's choice.
    pub fn of_chat(index: usize, delta: Delta) -> Choice {
        Choice { index, delta: Some(delta), ..Choice::default() }
    }

    /// The first chunk of a chat's choice.
    pub fn begun(index: usize) -> Choice {
        let (role, content) = (Some("assistant"), Some(String::new()));
        Choice::of_chat(index, Delta { role, content, ..Delta::default() })
    }

    /// Adds the next chunk of the same choice.
    pub fn add(&mut self, next: Choice) {
        let push = |own: &mut String, next: String| own.push_str(&next);
        add(&mut self.text, next.text, push);
        add(&mut self.delta, next.delta, |own, next| {
            add(&mut own.content, next.content, push);
            add(&mut own.reasoning_content, next.reasoning_content, push);
        });
        add(&mut self.logprobs, next.logprobs, |own, next| match (own, next) {
            (Logprobs::Chat { content, .. }, Logprobs::Chat { content: next, .. }) => {
                content.extend(next);
            }
            (Logprobs::Text(own), Logprobs::Text(next)) => own.add(next),
            _ => {}
        });
        self.finish_reason = next.finish_reason.or(self.finish_reason);
    }

    /// The choice of a whole response, which is the sum of its chunks.
    pub fn whole(mut self) -> Choice {
        self.message = self.delta.take().map(|delta| Message {
            role: "assistant",
            content: delta.content.unwrap_or_default(),
            reasoning_content: delta.reasoning_content,
            refusal: None,
        });
        self
    }
}

fn add<T>(own: &mut Option<T>, next: Option<T>, join: impl FnOnce(&mut T, T)) {
    match (own, next) {
        (Some(own), Some(next)) => join(own, next),
        (own @ None, next) => *own = next,
        (Some(_), None) => {}
    }
}
