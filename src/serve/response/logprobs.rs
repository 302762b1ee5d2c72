//! Log-probabilities in the form of each endpoint: the token list of chats, and the three lists of completions.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::choice::TokenEntry;
use crate::engine::TokenLogprobs;
use crate::tokenizer::Tokenizer;

/// The value for minus infinity, which JSON does not have.
const LOWEST: f64 = -9999.0;

/// A log-probability with the digits of an f32, so that sums over a batch's are bitwise equal to sums over those of one request.
fn number(logprob: f32) -> f64 {
    match logprob.is_finite() {
        true => logprob.to_string().parse().unwrap_or(LOWEST),
        false => LOWEST,
    }
}

/// The list of chat completions: one object per token, with the likeliest in its place.
pub fn chat(tokenizer: &Tokenizer, entries: &[TokenEntry]) -> Value {
    let one = |id: u32, logprob: f32| {
        let (token, bytes) = (tokenizer.shown(id), tokenizer.bytes(id));
        json!({"token": token, "logprob": number(logprob), "bytes": bytes})
    };
    let entry = |entry: &TokenEntry| {
        let found = entry.logprobs.as_ref();
        let mut chosen = one(entry.id, found.map_or(f32::NEG_INFINITY, |found| found.chosen));
        if let Some(found) = found {
            let top = found.top.iter().map(|(id, logprob)| one(*id, *logprob));
            chosen["top_logprobs"] = top.collect();
        }
        chosen
    };
    json!({"content": entries.iter().map(entry).collect::<Value>()})
}

/// The lists of text completions, which have an entry for each token, with so many of the likeliest in each place.
pub fn text(tokenizer: &Tokenizer, most: usize, entries: &[TokenEntry]) -> Value {
    let found = || entries.iter().map(|entry| Some((entry.id, entry.logprobs.as_ref()?)));
    let chosen = found().map(|found| found.map(|(_, found)| number(found.chosen)));
    let likeliest = found().map(|found| found.map(|(id, found)| top(tokenizer, most, id, found)));
    json!({
        "tokens": entries.iter().map(|entry| tokenizer.shown(entry.id)).collect::<Value>(),
        "token_logprobs": chosen.collect::<Value>(),
        "top_logprobs": likeliest.collect::<Value>(),
    })
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
