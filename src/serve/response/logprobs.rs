//! Log-probabilities in the form of each endpoint: the token list of chats, the four lists of completions, and vLLM's maps by token id.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::choice::TokenEntry;
use crate::engine::TokenLogprobs;
use crate::tokenizer::{Piece, Tokenizer};

/// The value for minus infinity, which JSON does not have.
const LOWEST: f64 = -9999.0;

/// A log-probability with the digits that `wardround logprobs` prints, so that sums over both are bitwise equal.
pub fn number(logprob: f32) -> f64 {
    match logprob.is_finite() {
        true => logprob.to_string().parse().unwrap_or(LOWEST),
        false => LOWEST,
    }
}

/// A token as a unique key: bytes that are not UTF-8 are written in hexadecimal.
fn key(tokenizer: &Tokenizer, id: u32) -> String {
    match tokenizer.pieces().get(id as usize) {
        Some(Piece::Text(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                let hex: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
                format!("bytes:{hex}")
            }
        },
        Some(Piece::Control(name)) => name.clone(),
        Some(Piece::Absent) | None => token_id(id),
    }
}

fn token_id(id: u32) -> String {
    format!("token_id:{id}")
}

/// The list of chat completions: one object per token.
pub fn chat(tokenizer: &Tokenizer, entries: &[TokenEntry]) -> Value {
    let one = |id: u32, logprob: f32| json!({"token": tokenizer.shown(id), "logprob": number(logprob), "bytes": tokenizer.bytes(id)});
    let entry = |entry: &TokenEntry| {
        let Some(logprobs) = &entry.logprobs else {
            return one(entry.id, f32::NEG_INFINITY);
        };
        let mut object = one(entry.id, logprobs.chosen);
        let top = logprobs.top.iter().map(|(id, logprob)| one(*id, *logprob));
        object["top_logprobs"] = top.collect();
        object
    };
    json!({"content": entries.iter().map(entry).collect::<Vec<_>>(), "refusal": null})
}

/// The four lists of text completions, which have an entry for each token.
#[derive(Debug, Default)]
pub struct Lists {
    tokens: Vec<Value>,
    token_logprobs: Vec<Value>,
    top_logprobs: Vec<Value>,
    text_offset: Vec<Value>,
}

/// Writes the lists of text completions.
pub struct ListWriter<'a> {
    pub tokenizer: &'a Tokenizer,
    /// Whether tokens are written as `token_id:N`.
    pub as_ids: bool,
    /// The number of top log-probabilities of each token.
    pub top: usize,
    /// The number of characters before the next token.
    pub offset: usize,
}

impl ListWriter<'_> {
    pub fn add(&mut self, lists: &mut Lists, id: u32, logprobs: Option<&TokenLogprobs>) {
        let token = match self.as_ids {
            true => token_id(id),
            false => self.tokenizer.shown(id),
        };
        lists.text_offset.push(self.offset.into());
        self.offset += String::from_utf8_lossy(self.tokenizer.bytes(id)).chars().count();
        lists.tokens.push(token.into());
        lists
            .token_logprobs
            .push(logprobs.map_or(Value::Null, |found| number(found.chosen).into()));
        lists.top_logprobs.push(logprobs.map_or(Value::Null, |found| self.top(id, found)));
    }

    /// The log-probabilities of the likeliest tokens and of the token itself, by their text.
    fn top(&self, id: u32, found: &TokenLogprobs) -> Value {
        let mut map = Map::new();
        let mut written = HashSet::new();
        let itself = (id, found.chosen);
        for (id, logprob) in found.top.iter().copied().take(self.top).chain([itself]) {
            if !written.insert(id) {
                continue;
            }
            let key = match self.as_ids {
                true => token_id(id),
                false => key(self.tokenizer, id),
            };
            // Of two tokens with the same text the likelier one came first.
            let key = if map.contains_key(&key) { token_id(id) } else { key };
            map.insert(key, number(logprob).into());
        }
        Value::Object(map)
    }
}

impl Lists {
    pub fn json(self) -> Value {
        json!({
            "tokens": self.tokens,
            "token_logprobs": self.token_logprobs,
            "top_logprobs": self.top_logprobs,
            "text_offset": self.text_offset,
        })
    }
}

/// vLLM's form: for each token of the prompt a map by token id, its own first; `null` for the first token.
pub fn prompt(
    tokenizer: &Tokenizer,
    ids: &[u32],
    found: &[Option<TokenLogprobs>],
    top: usize,
) -> Value {
    let one = |id: u32, logprob: f32, rank: u32| json!({"logprob": number(logprob), "rank": rank, "decoded_token": tokenizer.shown(id)});
    let entry = |(id, found): (&u32, &Option<TokenLogprobs>)| {
        let Some(found) = found else { return Value::Null };
        let mut map = Map::new();
        map.insert(id.to_string(), one(*id, found.chosen, found.rank));
        for (rank, (other, logprob)) in (1..).zip(&found.top).take(top) {
            map.entry(other.to_string()).or_insert_with(|| one(*other, *logprob, rank));
        }
        Value::Object(map)
    };
    ids.iter().zip(found).map(entry).collect()
}
