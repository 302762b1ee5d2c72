//! Text to token ids and back, by a model's own tokenizer.json; and each token's bytes, for stops and grammars.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use tokenizers::{
    Model, OffsetType, PreTokenizer, PreTokenizerWrapper, Result as LibraryResult,
    Tokenizer as Inner,
};

use self::control::{Controls, WrittenControl};
pub use self::mask::Mask;
pub use self::outside::Library;
use self::style::Style;
pub use self::style::byte_of;

use crate::ceiling::CeilingError;
use crate::fault::faults;

mod control;
#[cfg(test)]
mod linear;
mod mask;
mod outside;
mod style;

/// A model's tokenizer. No special token is added to a text unless it is asked for; who encodes says which of those written in
/// it are control tokens.
#[derive(Debug)]
pub struct Tokenizer {
    /// Takes every control token for text.
    inner: Library,
    controls: Controls,
    /// Cuts a text that others stand before; `None`: as `inner` does.
    cut_later: Option<Arc<PreTokenizerWrapper>>,
    pieces: Vec<Piece>,
    added: Added,
}

/// What a tokenizer's post-processor puts around every text.
#[derive(Debug)]
struct Added {
    before: Vec<u32>,
    behind: Vec<u32>,
}

impl Added {
    /// Read off a text of one letter; `None` where that is not found among them.
    fn by(inner: &Inner) -> Option<Added> {
        let encode = |whole| inner.encode("a", whole).map(|encoding| encoding.get_ids().to_vec());
        let (bare, whole) = (encode(false).ok()?, encode(true).ok()?);
        // What is no token stands nowhere, unless nothing else does either.
        let starts = if bare.is_empty() { whole.len()..=0 } else { 0..=whole.len() };
        let start = starts.into_iter().find(|start| whole[*start..].starts_with(&bare))?;
        Some(Added {
            before: whole[..start].to_vec(),
            behind: whole[start + bare.len()..].to_vec(),
        })
    }
}

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

faults! {
    /// Why a tokenizer cannot be read, or a text has no tokens.
    #[derive(Debug, Error)]
    pub enum TokenizerError {
        #[error("cannot read {path}: {problem}")]
        Load { path: PathBuf, problem: String } => Artefact;
        #[error("cannot tokenise {length} bytes of text: {problem}")]
        Encode { length: usize, problem: String } => Artefact;
        #[error(transparent)]
        Stopped(error: #[from] CeilingError) => error.blame(), error.hint();
    }
}

/// The tokens around Gemma 4's thinking, and what each is as text: the tag of the other families, by which readers know it.
pub(crate) const THINKING: [(&str, &str); 2] =
    [("<|channel>", "<think>"), ("<channel|>", "</think>")];

impl Tokenizer {
    pub fn load(path: &Path) -> Result<Tokenizer, TokenizerError> {
        let named = path.to_owned();
        match Library::read(path, move |inner| Ok(Tokenizer::of(inner, &named))) {
            Ok(made) => made,
            Err(problem) => Err(TokenizerError::Load { path: path.to_owned(), problem }),
        }
    }

    fn of(mut inner: Inner, path: &Path) -> Result<Tokenizer, TokenizerError> {
        let load = |problem: String| TokenizerError::Load { path: path.to_owned(), problem };
        keep_no_words(&mut inner);
        let style = Style::of(&inner).ok_or_else(|| {
            load(
                "its decoder is neither byte-level nor byte-fallback: tokens have no fixed bytes"
                    .into(),
            )
        })?;
        let added = inner.get_added_tokens_decoder();
        let size = match inner.get_vocab(true).into_values().max() {
            None => 0,
            Some(id) if id < MOST_TOKENS => id + 1,
            Some(id) => return Err(load(format!("it has a token {id}, beyond {MOST_TOKENS}"))),
        };
        let thinking = |token: &str| THINKING.into_iter().find(|(channel, _)| *channel == token);
        let piece = |id: u32| match (added.get(&id), inner.id_to_token(id)) {
            (Some(token), _) => match (thinking(&token.content), token.special) {
                (Some((_, tag)), _) => Piece::Text(tag.into()),
                (None, true) => Piece::Control(token.content.clone()),
                (None, false) => Piece::Text(style.bytes_of_added(&token.content)),
            },
            (_, Some(token)) => Piece::Text(style.bytes(&token)),
            (_, None) => Piece::Absent,
        };
        let pieces = (0..size).map(piece).collect();
        let added = Added::by(&inner)
            .ok_or_else(|| load("what it puts around a text cannot be told from it".to_owned()))?;
        let controls = Controls::take_from(&mut inner).map_err(load)?;
        let cut_later = without_first_prefix(&inner).map(Arc::new);
        Ok(Tokenizer { inner: Library::new(inner), controls, cut_later, pieces, added })
    }

    /// The ids of `text`, in which every written control token is one.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        self.encode_around(text, self.controls.find(text), str::to_owned)
    }

    /// The same; with `add_special`, between the tokens that the tokenizer's own rule puts around a text, such as the one that
    /// begins it. Where the text has them written there already, they are not doubled.
    pub fn encode_with(&self, text: &str, add_special: bool) -> Result<Vec<u32>, TokenizerError> {
        let mut ids = self.encode(text)?;
        let Added { before, behind } = &self.added;
        if add_special && !ids.starts_with(before) {
            ids.splice(..0, before.iter().copied());
        }
        if add_special && !ids.ends_with(behind) {
            ids.extend(behind);
        }
        Ok(ids)
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
        places: impl Iterator<Item = WrittenControl>,
        shown: impl Fn(&str) -> String,
    ) -> Result<Vec<u32>, TokenizerError> {
        let mut parts = Vec::new();
        let mut done = 0;
        let part = |start: usize, end: usize| (start == 0, shown(&text[start..end.max(start)]));
        for place in places {
            parts.push((part(done, place.start), Some(place.id)));
            done = place.end;
        }
        parts.push((part(done, text.len()), None));
        let cut_later = self.cut_later.clone();
        let encode = move |inner: &Inner| -> LibraryResult<Vec<u32>> {
            let mut ids = Vec::new();
            for ((is_first, text), control) in parts {
                let cut = cut_later.as_deref().filter(|_| !is_first);
                if !text.is_empty() {
                    add_text(inner, &text, cut.or(inner.get_pre_tokenizer()), &mut ids)?;
                }
                ids.extend(control);
            }
            Ok(ids)
        };
        self.inner.bounded(text.len(), encode)?.map_err(|error| TokenizerError::Encode {
            length: text.len(),
            problem: error.to_string(),
        })
    }

    /// The text of `tokens`; control tokens have none, and bytes that are no UTF-8 become U+FFFD.
    pub fn decode(&self, tokens: &[u32]) -> String {
        lossy(tokens.iter().map(|&token| self.bytes(token)))
    }

    /// The text of `tokens` with control tokens by name; bytes that are no UTF-8 become U+FFFD.
    pub fn decode_shown(&self, tokens: &[u32]) -> String {
        lossy(tokens.iter().map(|&token| self.shown_bytes(token)))
    }

    /// The bytes of one token as they are shown: of its text, or of a control token's name. None where no token has this id.
    pub fn shown_bytes(&self, token: u32) -> &[u8] {
        match self.pieces.get(token as usize) {
            Some(Piece::Text(bytes)) => bytes,
            Some(Piece::Control(name)) => name.as_bytes(),
            Some(Piece::Absent) | None => &[],
        }
    }

    /// One token as a text of its own: what [`Tokenizer::shown_bytes`] gives, or `bytes:` and each byte as `\xNN` where that is
    /// no whole characters.
    pub fn shown(&self, token: u32) -> String {
        let bytes = self.shown_bytes(token);
        match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                let escaped = bytes.iter().map(|byte| format!("\\x{byte:02x}"));
                format!("bytes:{}", escaped.collect::<String>())
            }
        }
    }

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

    /// One bit for each of the `rows` rows of a model's embedding table: whether a token has this id. The others are padding.
    pub fn present(&self, rows: usize) -> Arc<[u32]> {
        let is_present = |id: usize| !matches!(self.pieces.get(id), None | Some(Piece::Absent));
        let word = |word: usize| {
            let ids = (32 * word..rows.min(32 * word + 32)).filter(|id| is_present(*id));
            ids.fold(0, |bits, id| bits | 1 << (id % 32))
        };
        (0..rows.div_ceil(32)).map(word).collect()
    }

    /// The token that ends a model's thinking, where the vocabulary has one.
    pub fn think_end(&self) -> Option<u32> {
        ["<channel|>", "</think>"].into_iter().find_map(|token| self.id(token))
    }

    /// The id of a token by its written form, such as `</think>`.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }
}

fn lossy<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> String {
    String::from_utf8_lossy(&pieces.collect::<Vec<_>>().concat()).into_owned()
}

/// The ids of a text without control tokens, in words as `cut` cuts it.
fn add_text(
    inner: &Inner,
    text: &str,
    cut: Option<&PreTokenizerWrapper>,
    ids: &mut Vec<u32>,
) -> LibraryResult<()> {
    let added = inner.get_added_vocabulary();
    let mut words = added.extract_and_normalize(inner.get_normalizer(), text);
    if let Some(cut) = cut {
        cut.pre_tokenize(&mut words)?;
    }
    words.tokenize(|word| inner.get_model().tokenize(word.get()))?;
    ids.extend(words.into_encoding(None, 0, OffsetType::None)?.get_ids());
    Ok(())
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

#[cfg(test)]
mod tests;
