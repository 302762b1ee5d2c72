//! A SentencePiece unigram model (arXiv:1808.06226), read from the published `.model`, as a tokenizer of the library's.
//!
//! Two things differ from SentencePiece, in none of the goldens: of a letter with several combining marks the library takes the shortest entry
//! in the table of characters, not the longest; and it adds likelihoods in f64, which matters where two paths are equally likely.

use std::path::Path;

use prost::Message;
use tokenizers::models::unigram::Unigram;
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{Precompiled, Prepend, Replace, Sequence};
use tokenizers::{AddedToken, NormalizerWrapper, Tokenizer};

use crate::outside;

#[derive(Clone, PartialEq, Message)]
struct Model {
    #[prost(message, repeated, tag = "1")]
    pieces: Vec<Piece>,
    #[prost(message, optional, tag = "2")]
    trainer: Option<Trainer>,
    #[prost(message, optional, tag = "3")]
    normalizer: Option<Normalizer>,
}

#[derive(Clone, PartialEq, Message)]
struct Piece {
    #[prost(string, tag = "1")]
    text: String,
    #[prost(float, tag = "2")]
    score: f32,
    #[prost(int32, optional, tag = "3")]
    kind: Option<i32>,
}

const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const USER_DEFINED: i32 = 4;
const BYTE: i32 = 6;

#[derive(Clone, PartialEq, Message)]
struct Trainer {
    /// Unigrams are 1, and what is meant where nothing is said.
    #[prost(int32, optional, tag = "3")]
    model_type: Option<i32>,
    #[prost(bool, tag = "24")]
    treat_whitespace_as_suffix: bool,
    #[prost(bool, tag = "35")]
    byte_fallback: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Normalizer {
    #[prost(bytes = "vec", tag = "2")]
    precompiled_charsmap: Vec<u8>,
    #[prost(bool, optional, tag = "3")]
    add_dummy_prefix: Option<bool>,
    #[prost(bool, optional, tag = "4")]
    remove_extra_whitespaces: Option<bool>,
    #[prost(bool, optional, tag = "5")]
    escape_whitespaces: Option<bool>,
}

/// The library keeps pieces in a tree, a level a byte, and walks down it where it lets it go.
const LONGEST_PIECE: usize = 1024;

/// Of the pieces that match no text, only the `special` ones may be spelt out.
///
/// # Errors
/// What is wrong with the file, in words: it cannot be read, is no SentencePiece model, or none of unigrams.
pub fn sentence_pieces(path: &Path, special: &[&str]) -> Result<Tokenizer, String> {
    let bytes = outside::file(path).map_err(|error| error.to_string())?;
    let model = Model::decode(&*bytes).map_err(|error| error.to_string())?;
    let trainer = model.trainer.unwrap_or_default();
    if trainer.model_type.is_some_and(|kind| kind != 1) {
        return Err("its model_type is not unigram".to_owned());
    }
    if trainer.treat_whitespace_as_suffix {
        return Err("it takes white space as a suffix, which is not supported".to_owned());
    }
    if model.pieces.iter().any(|piece| !(1..=LONGEST_PIECE).contains(&piece.text.len())) {
        return Err(format!("it has a piece of no or more than {LONGEST_PIECE} bytes"));
    }
    let kind = |piece: &Piece| piece.kind.unwrap_or(NORMAL);
    let unknown = model.pieces.iter().position(|piece| kind(piece) == UNKNOWN);
    let unknown = unknown.ok_or("it has no piece for the unknown")?;
    let normal = model.pieces.iter().filter(|piece| kind(piece) == NORMAL);
    let greatest = normal.map(|piece| piece.score).fold(f32::MIN, f32::max);
    let is_piece = |text: &&str| model.pieces.iter().any(|piece| piece.text == *text);
    let special: Vec<&str> = special.iter().copied().filter(is_piece).collect();
    let likelihood = |(id, piece): (usize, &Piece)| match kind(piece) {
        NORMAL => (piece.text.clone(), f64::from(piece.score)),
        USER_DEFINED => {
            // In double precision up to here, as there.
            let score = f64::from(piece.text.len() as f32 * greatest) - 0.1;
            (piece.text.clone(), f64::from(score as f32))
        }
        BYTE => (piece.text.clone(), 0.0),
        _ if special.contains(&&*piece.text) => (piece.text.clone(), 0.0),
        // No character of any text.
        _ => (format!("\u{10ffff}{id}"), 0.0),
    };
    let pieces: Vec<(String, f64)> = model.pieces.iter().enumerate().map(likelihood).collect();
    let make = || {
        let unigrams = Unigram::from(pieces, Some(unknown), trainer.byte_fallback)?;
        let mut tokenizer = Tokenizer::new(unigrams);
        let steps = steps(&model.normalizer.unwrap_or_default())?;
        tokenizer.with_normalizer(Some(Sequence::new(steps)))?;
        tokenizer.add_special_tokens(special.iter().map(|one| AddedToken::from(*one, true)))?;
        Ok::<_, tokenizers::Error>(tokenizer)
    };
    make().map_err(|error| error.to_string())
}

fn steps(normalizer: &Normalizer) -> Result<Vec<NormalizerWrapper>, tokenizers::Error> {
    let pattern = |pattern: &str| ReplacePattern::Regex(pattern.to_owned());
    let mut steps: Vec<NormalizerWrapper> = Vec::new();
    let table = &normalizer.precompiled_charsmap;
    if !table.is_empty() {
        // The library makes room for as much as the table says that it has.
        let length = table.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
        if length.is_none_or(|length| length > table.len()) {
            return Err("its precompiled_charsmap is damaged".into());
        }
        // Both are one grapheme, of which the library would replace the first character and drop the second.
        steps.push(Replace::new("\r\n", "\n\n")?.into());
        steps.push(Precompiled::from(table)?.into());
    }
    if normalizer.remove_extra_whitespaces.unwrap_or(true) {
        steps.push(Replace::new(pattern("^ +| +$"), "")?.into());
        steps.push(Replace::new(pattern(" {2,}"), " ")?.into());
    }
    if normalizer.add_dummy_prefix.unwrap_or(true) {
        steps.push(Prepend::new(" ".to_owned()).into());
    }
    if normalizer.escape_whitespaces.unwrap_or(true) {
        steps.push(Replace::new(" ", "\u{2581}")?.into());
    }
    Ok(steps)
}
