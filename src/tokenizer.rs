//! Text to token ids and back, by a model's own tokenizer.json; and each token's bytes, for stops and grammars.

use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use thiserror::Error;
use tokenizers::{
    Model, OffsetType, PreTokenizer, PreTokenizerWrapper, Result as LibraryResult,
    Tokenizer as Inner,
};

use self::control::{Controls, Place};
pub use self::mask::Mask;

use crate::diagnosis::{Blame, Diagnosis};

mod control;
mod mask;

/// A model's tokenizer. No special token is added to a text; who encodes says which of those written in it are control
/// tokens.
#[derive(Debug)]
pub struct Tokenizer {
    /// Takes every control token for text.
    inner: Inner,
    controls: Controls,
    /// Cuts a text that others stand before; `None`: as `inner` does.
    cut_later: Option<PreTokenizerWrapper>,
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
        let controls = Controls::take_from(&mut inner).map_err(load)?;
        let cut_later = without_first_prefix(&inner);
        Ok(Tokenizer { inner, controls, cut_later, pieces })
    }

    /// The ids of `text`, in which every written control token is one.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        self.encode_around(text, self.controls.find(text), str::to_owned)
    }

    /// The ids of a text that `mask` covers parts of: a control token is one where nothing of it is covered.
    pub fn encode_covered(&self, text: &str, mask: &Mask) -> Result<Vec<u32>, TokenizerError> {
        self.encode_around(text, self.controls.find(text), |part| mask.uncover(part))
    }

    /// The ids of what a model may write: special tokens are text, other control tokens, such as `</think>`, are themselves.
    pub fn encode_writing(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let places = self.controls.find(text).filter(|place| !place.is_special);
        self.encode_around(text, places, str::to_owned)
    }

    /// Whether a token is a control token: one that its file calls special or writes in brackets, as `<think>`, but for HTML.
    pub fn is_control(&self, token: u32) -> bool {
        self.controls.has(token)
    }

    /// The characters that control tokens begin or end with.
    pub fn control_edges(&self) -> &[char] {
        &self.controls.edges
    }

    /// The control tokens at `places`, and between them text, as `shown` gives it, without any.
    fn encode_around(
        &self,
        text: &str,
        places: impl Iterator<Item = Place>,
        shown: impl Fn(&str) -> String,
    ) -> Result<Vec<u32>, TokenizerError> {
        let mut ids = Vec::new();
        let mut done = 0;
        let add = |ids: &mut Vec<u32>, start: usize, end: usize| {
            let part = &text[start..end.max(start)];
            let added = match part.is_empty() {
                true => Ok(()),
                false => self.add_text(&shown(part), start == 0, ids),
            };
            added.map_err(|error| TokenizerError::Encode {
                length: text.len(),
                problem: error.to_string(),
            })
        };
        for place in places {
            add(&mut ids, done, place.start)?;
            ids.push(place.id);
            done = place.end;
        }
        add(&mut ids, done, text.len())?;
        Ok(ids)
    }

    fn add_text(&self, text: &str, is_first: bool, ids: &mut Vec<u32>) -> LibraryResult<()> {
        let inner = &self.inner;
        let added = inner.get_added_vocabulary();
        let mut words = added.extract_and_normalize(inner.get_normalizer(), text);
        let later = self.cut_later.as_ref().filter(|_| !is_first);
        if let Some(cut) = later.or(inner.get_pre_tokenizer()) {
            cut.pre_tokenize(&mut words)?;
        }
        words.tokenize(|word| inner.get_model().tokenize(word.get()))?;
        ids.extend(words.into_encoding(None, 0, OffsetType::None)?.get_ids());
        Ok(())
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

/// The pre-tokenizer for what does not begin a text, where the one of `inner` puts a space before what does.
fn without_first_prefix(inner: &Inner) -> Option<PreTokenizerWrapper> {
    let cut = serde_json::to_string(inner.get_pre_tokenizer()?).ok()?;
    let later = cut.replace(r#""prepend_scheme":"first""#, r#""prepend_scheme":"never""#);
    (later != cut).then(|| serde_json::from_str(&later).ok()).flatten()
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

    /// A tokenizer of Llama 2's kind: a space is put before what begins a text, and before nothing else.
    fn with_first_prefix(directory: &Path) -> PathBuf {
        let path = directory.join("tokenizer.json");
        let letters = ["▁", "a", "b", "<", "s", ">", "[", "k", "]", "/"];
        let vocab: serde_json::Map<String, serde_json::Value> =
            letters.iter().zip(0..).map(|(letter, id)| ((*letter).to_owned(), id.into())).collect();
        let added = |id: u32, content: &str, special: bool| {
            serde_json::json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": content == "[k]",
                "normalized": false, "special": special})
        };
        let json = serde_json::json!({
            "version": "1.0", "added_tokens": [added(10, "<s>", true), added(11, "[k]", false), added(12, "<b>", false),
                added(13, "ab", false)],
            "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false},
            "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}]},
            "model": {"type": "BPE", "vocab": vocab, "merges": []},
        });
        fs_err::write(&path, json.to_string()).unwrap();
        path
    }

    #[test]
    fn texts_between_control_tokens_are_encoded_as_in_the_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = with_first_prefix(directory.path());
        let (ours, theirs) = (Tokenizer::load(&path).unwrap(), Inner::from_file(&path).unwrap());
        for text in ["a", "<s>a", "a<s>b", "a b[k]  a<b>b", "ab <s>ab", "[k][k] a", "<", ""] {
            let expected = theirs.encode(text, false).unwrap();
            assert_eq!(ours.encode(text).unwrap(), expected.get_ids(), "{text:?}");
        }
    }

    #[test]
    fn what_is_covered_is_text_and_markup_and_words_stay_what_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let tokenizer = Tokenizer::load(&with_first_prefix(directory.path())).unwrap();
        assert_eq!(tokenizer.control_edges(), ['<', '>', '[', ']']);
        let is_control: Vec<bool> = (9..14).map(|id| tokenizer.is_control(id)).collect();
        assert_eq!(is_control, [false, true, true, false, false]);
        let said = "<s>[k]<b>ab</s>";
        let mask = Mask::new(tokenizer.control_edges(), [said].into_iter()).unwrap();
        let covered = format!("<s>{}[k]", mask.cover(said));
        let ids = tokenizer.encode_covered(&covered, &mask).unwrap();
        assert_eq!(ids, [10, 3, 4, 5, 6, 7, 8, 12, 13, 3, 9, 4, 5, 11]);
        assert_eq!(tokenizer.encode_writing("<s>[k]").unwrap(), [0, 3, 4, 5, 11]);
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
