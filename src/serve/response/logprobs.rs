//! Log-probabilities in the form of each endpoint: the token list of chats, and the three lists of completions.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Map, Value};

use super::choice::TokenEntry;
use crate::engine::TokenLogprobs;
use crate::tokenizer::Tokenizer;

/// The value for minus infinity, which JSON does not have.
const LOWEST: f64 = -9999.0;

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Logprobs {
    Chat {
        content: Vec<TokenLogprob>,
    },
    /// Lists that have an entry for each token.
    Text {
        tokens: Vec<String>,
        token_logprobs: Vec<Option<f64>>,
        top_logprobs: Vec<Option<Map<String, Value>>>,
    },
}

/// A token of a chat with its log-probability, and those of the likeliest in its place.
#[derive(Clone, Debug, Serialize)]
pub struct TokenLogprob {
    #[serde(flatten)]
    chosen: Candidate,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<Vec<Candidate>>,
}

#[derive(Clone, Debug, Serialize)]
struct Candidate {
    token: String,
    logprob: f64,
    bytes: Vec<u8>,
}

/// A log-probability with the digits of an f32, so that sums over a batch's are bitwise equal to sums over those of one request.
fn number(logprob: f32) -> f64 {
    match logprob.is_finite() {
        true => logprob.to_string().parse().unwrap_or(LOWEST),
        false => LOWEST,
    }
}

/// The list of chat completions: one object per token.
pub fn chat(tokenizer: &Tokenizer, entries: &[TokenEntry]) -> Logprobs {
    let one = |id: u32, logprob: f32| Candidate {
        token: tokenizer.shown(id),
        logprob: number(logprob),
        bytes: tokenizer.bytes(id).to_vec(),
    };
    let entry = |entry: &TokenEntry| {
        let found = entry.logprobs.as_ref();
        let top = |found: &TokenLogprobs| {
            found.top.iter().map(|(id, one_of)| one(*id, *one_of)).collect()
        };
        TokenLogprob {
            chosen: one(entry.id, found.map_or(f32::NEG_INFINITY, |found| found.chosen)),
            top_logprobs: found.map(top),
        }
    };
    Logprobs::Chat { content: entries.iter().map(entry).collect() }
}

/// The lists of text completions, with so many of the likeliest in each place.
pub fn text(tokenizer: &Tokenizer, most: usize, entries: &[TokenEntry]) -> Logprobs {
    let found = || entries.iter().map(|entry| Some((entry.id, entry.logprobs.as_ref()?)));
    Logprobs::Text {
        tokens: entries.iter().map(|entry| tokenizer.shown(entry.id)).collect(),
        token_logprobs: found().map(|found| found.map(|(_, found)| number(found.chosen))).collect(),
        top_logprobs: found()
            .map(|found| found.map(|(id, found)| top(tokenizer, most, id, found)))
            .collect(),
    }
}

/// The log-probabilities of the likeliest tokens and of the token itself, by their text.
fn top(tokenizer: &Tokenizer, most: usize, id: u32, found: &TokenLogprobs) -> Map<String, Value> {
    let mut map = Map::new();
    let mut written = HashSet::new();
    let itself = (id, found.chosen);
    for (id, logprob) in found.top.iter().copied().take(most).chain([itself]) {
        if written.insert(id) {
            // Of two tokens with the same text the likelier one came first; some ids have none.
            let text = Some(tokenizer.shown(id));
            let key = text.filter(|text| !text.is_empty() && !map.contains_key(text));
            map.insert(key.unwrap_or_else(|| format!("token_id:{id}")), number(logprob).into());
        }
    }
    map
}
