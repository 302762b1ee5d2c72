//! What is sent: whole, or as the chunks of a stream.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Value, json};

use crate::record::Usage;
use crate::serve::models::Entry;

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
    pub usage: Option<Value>,
    /// What no other server's responses have, in the whole and in the last chunk: the seed, the request's digest, the fields without effect; of a
    /// system its item and record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wardround: Option<Value>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Choice {
    pub index: usize,
    #[serde(flatten)]
    pub part: ChoicePart,
    pub logprobs: Option<Value>,
    pub finish_reason: Option<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChoicePart {
    /// Of a whole chat.
    Message(Said),
    /// Of a chunk of one.
    Delta(Said),
    Text(String),
}

/// What is said in a chat.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Said {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
}

/// The tokens of a response.
pub fn usage(sum: Usage, reasoning_tokens: usize) -> Value {
    json!({
        "prompt_tokens": sum.prompt_tokens,
        "completion_tokens": sum.completion_tokens,
        "total_tokens": sum.total(),
        "prompt_tokens_details": {"cached_tokens": sum.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": reasoning_tokens},
    })
}

pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The id of a response, which no other has.
pub fn new_id(prefix: &str) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    format!("{prefix}-{:x}-{:x}", since_epoch().as_micros(), COUNTER.fetch_add(1, Relaxed))
}

impl Reply {
    /// What all chunks of a response have, without a choice. Its id is unique.
    pub fn new(is_chat: bool, entry: &Entry) -> Reply {
        let (object, prefix) =
            if is_chat { ("chat.completion", "chatcmpl") } else { ("text_completion", "cmpl") };
        Reply {
            id: new_id(prefix),
            object,
            created: since_epoch().as_secs(),
            model: entry.id.clone(),
            system_fingerprint: entry.wardround.fingerprint.clone(),
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
    pub fn new(index: usize, part: ChoicePart) -> Choice {
        Choice { index, part, logprobs: None, finish_reason: None }
    }

    /// The first chunk of a chat's choice.
    pub fn begun(index: usize) -> Choice {
        let (role, content) = (Some("assistant"), Some(String::new()));
        Choice::new(index, ChoicePart::Delta(Said { role, content, reasoning_content: None }))
    }

    /// The next chunk of a chat's choice, or the whole.
    pub fn of_chat(index: usize, is_stream: bool, content: String, reasoning: String) -> Choice {
        let unless_empty = |text: String| Some(text).filter(|text| !text.is_empty());
        let reasoning_content = unless_empty(reasoning);
        let part = if is_stream {
            let content = unless_empty(content);
            ChoicePart::Delta(Said { role: None, content, reasoning_content })
        } else {
            let (role, content) = (Some("assistant"), Some(content));
            ChoicePart::Message(Said { role, content, reasoning_content })
        };
        Choice::new(index, part)
    }
}
