//! Text to token ids and back, by a model's own tokenizer.json; and each token's bytes, for stops and grammars.

use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use thiserror::Error;
use tokenizers::Tokenizer as Inner;

use crate::diagnosis::{Blame, Diagnosis};

/// A model's tokenizer. Special tokens written in the text are recognised; none is added.
#[derive(Debug)]
pub struct Tokenizer {
    inner: Inner,
    pieces: Vec<Piece>,
}

/// What a token stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// These bytes of text; not always whole characters.
    Text(Vec<u8>),
    /// A control token, by name; no text.
    Control(String),
    /// No token has this id.
    Absent,
}

/// Larger vocabularies are refused: every id takes memory, and a damaged file may name any.
const MOST_TOKENS: u32 = 1 << 24;

#[derive(Debug, Error)]
pub enum TokenizerError {
    #[error("cannot read {path}: {problem}")]
    Load { path: PathBuf, problem: String },
    #[error(
        "{path}: the decoder is neither byte-level nor byte-fallback, so tokens have no fixed bytes"
    )]
    Decoder { path: PathBuf },
    #[error("cannot tokenise {length} bytes of text: {problem}")]
    Encode { length: usize, problem: String },
}

impl Diagnosis for TokenizerError {
    fn blame(&self) -> Blame {
        Blame::Artefact
    }
}

/// The library panics over some files that are damaged: what is no JSON never reaches it, and its panic is an error.
fn parse(bytes: &[u8]) -> Result<Inner, String> {
    serde_json::from_slice::<IgnoredAny>(bytes).map_err(|error| error.to_string())?;
    match std::panic::catch_unwind(|| Inner::from_bytes(bytes)) {
        Ok(parsed) => parsed.map_err(|error| error.to_string()),
        Err(_) => Err("a part of it is of no kind that tokenizers know".to_owned()),
    }
}

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    pub fn load(path: &Path) -> Result<Tokenizer, TokenizerError> {
        let load = |problem: String| TokenizerError::Load { path: path.to_owned(), problem };
        let bytes = fs_err::read(path).map_err(|error| load(error.to_string()))?;
        let mut inner = parse(&bytes).map_err(load)?;
        keep_no_words(&mut inner);
        let style =
            Style::of(&inner).ok_or_else(|| TokenizerError::Decoder { path: path.to_owned() })?;
        let added = inner.get_added_tokens_decoder();
        let size = match inner.get_vocab(true).into_values().max() {
            None => 0,
            Some(id) if id < MOST_TOKENS => id + 1,
            Some(id) => return Err(load(format!("it has a token {id}, beyond {MOST_TOKENS}"))),
        };
        let piece = |id: u32| match (added.get(&id), inner.id_to_token(id)) {
            (Some(token), _) if token.special => Piece::Control(token.content.clone()),
            (_, Some(token)) => Piece::Text(style.bytes(&token)),
            (_, None) => Piece::Absent,
        };
        let pieces = (0..size).map(piece).collect();
        Ok(Tokenizer { inner, pieces })
    }

    /// The ids of `text`.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let encoding = self.inner.encode_fast(text, false).map_err(|error| {
            TokenizerError::Encode { length: text.len(), problem: error.to_string() }
        })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The text of `tokens`; control tokens have none, and bytes that are no UTF-8 become U+FFFD.
    pub fn decode(&self, tokens: &[u32]) -> String {
        let bytes: Vec<u8> = tokens.iter().flat_map(|&token| self.bytes(token)).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The bytes of text of one token.
    pub fn bytes(&self, token: u32) -> &[u8] {
        match self.pieces.get(token as usize) {
            Some(Piece::Text(bytes)) => bytes,
            _ => &[],
        }
    }

    /// By token id; its length is one more than the highest id.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The id of a token by its written form, such as `</think>`.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }
}

/// Turns the cache of words off. Every thread would keep one of its own, of up to 10,000 words a tokenizer, and as many
/// threads tokenise as items are under way; what it saves is half a millisecond a prompt.
fn keep_no_words(inner: &mut Inner) {
    let mut model = inner.get_model().clone();
    model.resize_cache(0);
    inner.with_model(model);
}

/// How a tokenizer writes bytes as characters.
enum Style {
    /// Each byte is one printable character.
    ByteLevel,
    /// A space is `▁`, a byte outside the vocabulary `<0xNN>`.
    ByteFallback,
}

impl Style {
    fn of(inner: &Inner) -> Option<Style> {
        let decoder = serde_json::to_value(inner.get_decoder()?).ok()?;
        let steps = match decoder["decoders"].as_array() {
            Some(steps) => steps.clone(),
            None => vec![decoder],
        };
        let has = |kind: &str| steps.iter().any(|step| step["type"] == kind);
        if has("ByteLevel") {
            Some(Style::ByteLevel)
        } else if has("ByteFallback") {
            Some(Style::ByteFallback)
        } else {
            None
        }
    }

    fn bytes(&self, token: &str) -> Vec<u8> {
        match self {
            Style::ByteLevel => {
                let bytes: Option<Vec<u8>> = token.chars().map(byte_of).collect();
                bytes.unwrap_or_else(|| token.as_bytes().to_vec())
            }
            Style::ByteFallback => {
                let byte = token.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
                match byte.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
                    Some(byte) => vec![byte],
                    None => token.replace('▁', " ").into_bytes(),
                }
            }
        }
    }
}

/// The byte that a character of a byte-level vocabulary stands for: printable Latin-1 for itself, the other 68
/// bytes, in order, for the characters from U+0100 on.
fn byte_of(character: char) -> Option<u8> {
    let printable = |code: u32| matches!(code, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    match u32::from(character) {
        code if printable(code) => Some(code as u8),
        code @ 0x100..=0x143 => {
            (0..=0xff).filter(|&byte| !printable(byte)).nth(code as usize - 0x100).map(|b| b as u8)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_level_characters_cover_every_byte_once() {
        let mut seen = [false; 256];
        for code in 0..0x200 {
            if let Some(byte) = char::from_u32(code).and_then(byte_of) {
                assert!(!seen[byte as usize]);
                seen[byte as usize] = true;
            }
        }
        assert!(seen.iter().all(|seen| *seen));
        assert_eq!(byte_of('Ġ'), Some(b' '));
        assert_eq!(byte_of('Ċ'), Some(b'\n'));
    }

    #[test]
    fn a_token_far_beyond_the_others_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokenizer.json");
        for (id, refused) in [(1, false), (u32::MAX - 1, true), (u32::MAX, true)] {
            let json = serde_json::json!({
                "version": "1.0", "added_tokens": [], "decoder": {"type": "ByteLevel", "add_prefix_space": false,
                    "trim_offsets": false, "use_regex": true},
                "model": {"type": "BPE", "vocab": {"a": 0, "b": id}, "merges": []},
            });
            fs_err::write(&path, json.to_string()).unwrap();
            let loaded = Tokenizer::load(&path);
            assert_eq!(loaded.is_err(), refused, "{loaded:?}");
        }
    }

    #[test]
    #[ignore = "needs WARDROUND_DATA"]
    fn with_data_real_tokenizers_give_the_published_vectors_and_their_bytes_back() {
        let data = std::env::var_os("WARDROUND_DATA").map(PathBuf::from).unwrap();
        for name in ["gemma3", "llama3.2", "qwen3"] {
            let directory = data.join("tokenizers").join(name);
            let tokenizer = Tokenizer::load(&directory.join("tokenizer.json")).unwrap();
            let read = |file| fs_err::read_to_string(directory.join(file)).unwrap();
            let (inputs, outputs) = (read("vectors.inp"), read("vectors.out"));
            let inputs: Vec<String> = match name {
                "gemma3" => inputs
                    .lines()
                    .map(|line| line.replace("\\n", "\n").replace("\\s", " "))
                    .collect(),
                _ => inputs.split("\n__ggml_vocab_test__\n").map(str::to_owned).collect(),
            };
            let mut compared = 0;
            for (input, output) in inputs.iter().zip(outputs.lines()) {
                let ids = output.split([',', ' ']).filter(|id| !id.is_empty());
                let expected: Vec<u32> = ids.map(|id| id.parse().unwrap()).collect();
                let ids = tokenizer.encode(input).unwrap();
                assert_eq!(ids, expected, "{name}: {input:?}");
                assert_eq!(tokenizer.decode(&ids), *input, "{name}");
                compared += 1;
            }
            assert!(compared >= 20, "{name}: {compared} vectors");
        }
    }
}
