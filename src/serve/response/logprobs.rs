//! Log-probabilities in the form of each endpoint: the token list of chats, and the four lists of completions.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::choice::TokenEntry;
use super::reply::Logprobs;
use crate::engine::TokenLogprobs;
use crate::tokenizer::{Piece, Tokenizer};

/// The value for minus infinity, which JSON does not have.
const LOWEST: f64 = -9999.0;

/// A log-probability with the digits that `wardround generate logprobs` prints, so that sums over both are bitwise equal.
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

/// A token of a chat with its log-probability, and those of the likeliest in its place.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TokenLogprob {
    #[serde(flatten)]
    chosen: Candidate,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<Vec<Candidate>>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Candidate {
    token: String,
    logprob: f64,
    bytes: Vec<u8>,
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
    Logprobs::Chat { content: entries.iter().map(entry).collect(), refusal: None }
}

/// The four lists of text completions, which have an entry for each token.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Lists {
    tokens: Vec<String>,
    token_logprobs: Vec<Option<f64>>,
    top_logprobs: Vec<Option<Map<String, Value>>>,
    text_offset: Vec<usize>,
}

impl Lists {
    pub fn add(&mut self, next: Lists) {
        self.tokens.extend(next.tokens);
        self.token_logprobs.extend(next.token_logprobs);
        self.top_logprobs.extend(next.top_logprobs);
        self.text_offset.extend(next.text_offset);
    }
}

/// Writes the lists of text completions.
pub struct ListWriter<'a> {
    pub tokenizer: &'a Tokenizer,
    /// The number of top log-probabilities of each token.
    pub top: usize,
    /// The place of the next token.
    pub offset: Offset,
}

/// The place in a text where its next token begins: the characters before it, of which one that is split over tokens counts with its last.
#[derive(Debug, Default)]
pub struct Offset {
    characters: usize,
    /// Characters of tokens that come before the text.
    before: usize,
    /// The bytes so far of a character that is not whole.
    begun: Vec<u8>,
}

impl Offset {
    /// Behind a text.
    pub fn behind(text: &str) -> Offset {
        Offset { characters: text.chars().count(), ..Offset::default() }
    }

    /// At the first token of a prompt, whose tokens are `shown`: what the tokenizer itself puts before a text is no part of it.
    pub fn of_prompt(text: &str, shown: &str) -> Offset {
        let own = shown.rfind(text).map_or("", |start| &shown[..start]);
        Offset { before: own.chars().count(), ..Offset::default() }
    }

    /// Behind the next bytes. What is no UTF-8 counts as the U+FFFD that it becomes.
    fn add(&mut self, bytes: &[u8]) {
        let bytes = [std::mem::take(&mut self.begun), bytes.to_vec()].concat();
        let mut count = 0;
        for chunk in bytes.utf8_chunks() {
            count += usize::from(!std::mem::take(&mut self.begun).is_empty());
            count += chunk.valid().chars().count();
            match str::from_utf8(chunk.invalid()) {
                Err(error) if error.error_len().is_none() => self.begun = chunk.invalid().to_vec(),
                Err(_) => count += 1,
                Ok(_) => {}
            }
        }
        let outside = count.min(self.before);
        self.before -= outside;
        self.characters += count - outside;
    }
}

impl ListWriter<'_> {
    /// Adds a token of the prompt.
    pub fn add_shown(&mut self, lists: &mut Lists, id: u32, logprobs: Option<&TokenLogprobs>) {
        self.push(lists, id, logprobs);
        self.offset.add(self.tokenizer.shown_bytes(id));
    }

    /// Adds a token of the completion, of whose text control tokens are no part.
    pub fn add(&mut self, lists: &mut Lists, id: u32, logprobs: Option<&TokenLogprobs>) {
        self.push(lists, id, logprobs);
        self.offset.add(self.tokenizer.bytes(id));
    }

    fn push(&self, lists: &mut Lists, id: u32, logprobs: Option<&TokenLogprobs>) {
        lists.text_offset.push(self.offset.characters);
        lists.tokens.push(self.tokenizer.shown(id));
        lists.token_logprobs.push(logprobs.map(|found| number(found.chosen)));
        lists.top_logprobs.push(logprobs.map(|found| self.top(id, found)));
    }

    /// The log-probabilities of the likeliest tokens and of the token itself, by their text.
    fn top(&self, id: u32, found: &TokenLogprobs) -> Map<String, Value> {
        let mut map = Map::new();
        let mut written = HashSet::new();
        let itself = (id, found.chosen);
        for (id, logprob) in found.top.iter().copied().take(self.top).chain([itself]) {
            if !written.insert(id) {
                continue;
            }
            let key = key(self.tokenizer, id);
            // Of two tokens with the same text the likelier one came first.
            let key = if map.contains_key(&key) { token_id(id) } else { key };
            map.insert(key, number(logprob).into());
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_is_split_over_tokens_counts_once() {
        let offsets = |offset: Offset, tokens: &[&[u8]]| -> Vec<usize> {
            let mut at = offset;
            let mut begins = vec![at.characters];
            for token in tokens {
                at.add(token);
                begins.push(at.characters);
            }
            begins
        };
        let of = |tokens: &[&[u8]]| offsets(Offset::default(), tokens);
        let split: [&[u8]; 5] = [b"a", b"\xe6\x82", b"\xa3", b"\xc3", b"\xa9b"];
        assert_eq!(of(&split), [0, 1, 1, 2, 2, 4]);
        // Bytes that no later ones make a character of are U+FFFD, as in the text.
        let broken: [&[u8]; 4] = [b"\xff", b"\xe6", b"a\xc3b", b"c"];
        assert_eq!(of(&broken), [0, 1, 1, 5, 6]);
        assert_eq!(String::from_utf8_lossy(&broken.concat()).chars().count(), 6);
        let told: [&[u8]; 3] = [b"<bos>", "é".as_bytes(), b"b"];
        assert_eq!(offsets(Offset::of_prompt("éb", "<bos>éb"), &told), [0, 0, 1, 2]);
        assert_eq!(offsets(Offset::of_prompt("<bos>éb", "<bos>éb"), &told), [0, 5, 6, 7]);
        assert_eq!(offsets(Offset::behind("éb"), &[b"c"]), [2, 3]);
    }
}
