//! A SentencePiece unigram model: text to the ids of the likeliest pieces (arXiv:1808.06226).
//!
//! Read from the published `.model` itself: a conversion to tokenizer.json matches characters by grapheme where
//! SentencePiece takes the longest entry, and lets control pieces match text.

mod normalizer;
mod protobuf;

use crate::outside;

use std::collections::HashMap;
use std::path::Path;

use normalizer::Normalizer;
use protobuf::{Fields, Value};

/// What a piece is; control pieces and those of other kinds match no text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Normal,
    Unknown,
    UserDefined,
    Byte,
    Other,
}

/// A model, read.
#[derive(Debug)]
pub struct Pieces {
    normalizer: Normalizer,
    /// Every piece by its text.
    ids: HashMap<Box<str>, u32>,
    kinds: Vec<Kind>,
    scores: Vec<f32>,
    unknown: u32,
    /// The ids of the bytes 0 to 255, where what is unknown falls back to them.
    bytes: Option<Vec<u32>>,
    least: f32,
    greatest: f32,
    /// Of all pieces that match text.
    longest_bytes: usize,
}

/// Below the least likely piece: what a character costs that is in no piece.
const UNKNOWN_PENALTY: f32 = 10.0;

impl Pieces {
    /// # Errors
    /// What is wrong with the file, in words: it cannot be read, is no SentencePiece model, or none of unigrams.
    pub fn read(path: &Path) -> Result<Self, String> {
        let bytes = outside::file(path).map_err(|error| error.to_string())?;
        let mut pieces = Vec::new();
        let mut normalizer = Normalizer::default();
        let mut falls_back = false;
        for field in Fields(&bytes) {
            match field? {
                (1, Value::Bytes(piece)) => pieces.push(read_piece(piece)?),
                (2, Value::Bytes(trainer)) => falls_back = read_trainer(trainer)?,
                (3, Value::Bytes(spec)) => normalizer = read_normalizer(spec)?,
                _ => {}
            }
        }
        Self::of(pieces, normalizer, falls_back)
    }

    fn of(
        pieces: Vec<(String, f32, Kind)>,
        normalizer: Normalizer,
        falls_back: bool,
    ) -> Result<Self, String> {
        let unknown = pieces.iter().position(|piece| piece.2 == Kind::Unknown);
        let unknown = unknown.ok_or("it has no piece for the unknown")? as u32;
        let normal = || pieces.iter().filter(|piece| piece.2 == Kind::Normal);
        let longest = pieces.iter().map(|piece| piece.0.len()).max();
        let mut ids = HashMap::with_capacity(pieces.len());
        for (id, (text, ..)) in pieces.iter().enumerate() {
            ids.entry(text.as_str().into()).or_insert(id as u32);
        }
        let byte = |byte: u8| {
            let id = ids.get(format!("<0x{byte:02X}>").as_str()).copied();
            id.ok_or_else(|| format!("it has no piece for the byte {byte}"))
        };
        let bytes = match falls_back {
            true => Some((0..=255).map(byte).collect::<Result<_, _>>()?),
            false => None,
        };
        Ok(Self {
            least: normal().map(|piece| piece.1).fold(f32::MAX, f32::min),
            greatest: normal().map(|piece| piece.1).fold(f32::MIN, f32::max),
            longest_bytes: longest.unwrap_or_default(),
            kinds: pieces.iter().map(|piece| piece.2).collect(),
            scores: pieces.iter().map(|piece| piece.1).collect(),
            normalizer,
            ids,
            unknown,
            bytes,
        })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.kinds.len()
    }

    /// The id of a piece, control pieces too.
    pub fn id(&self, piece: &str) -> Option<u32> {
        self.ids.get(piece).copied()
    }

    /// The ids of a text's pieces; characters in no piece are one unknown, however many stand together, or bytes.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let text = self.normalizer.normalize(text, |text| self.user_defined(text));
        let mut ids: Vec<u32> = Vec::new();
        let mut after_unknown = false;
        for (piece, id) in self.best_path(&text) {
            match &self.bytes {
                Some(bytes) if id == self.unknown => {
                    ids.extend(piece.bytes().map(|byte| bytes[usize::from(byte)]));
                }
                _ if id == self.unknown && after_unknown => {}
                _ => ids.push(id),
            }
            after_unknown = id == self.unknown;
        }
        ids
    }

    /// The longest user-defined symbol that a text begins with, in bytes.
    fn user_defined(&self, text: &str) -> Option<usize> {
        let is_one = |id: u32| self.kinds[id as usize] == Kind::UserDefined;
        self.matches(text).filter(|&(_, id)| is_one(id)).map(|(length, _)| length).last()
    }

    /// The pieces that a text begins with and that match text, the shortest first: bytes and id.
    fn matches<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, u32)> + 'a {
        (1..=text.len().min(self.longest_bytes)).filter_map(|length| {
            let id = *self.ids.get(text.get(..length)?)?;
            let kind = self.kinds[id as usize];
            matches!(kind, Kind::Normal | Kind::UserDefined).then_some((length, id))
        })
    }

    /// Viterbi's algorithm with sums in f32, as SentencePiece's: where two paths are equally likely the first found
    /// stays.
    fn best_path<'a>(&self, text: &'a str) -> Vec<(&'a str, u32)> {
        /// The best way to a place in the text.
        #[derive(Clone, Copy)]
        struct Step {
            from: usize,
            id: u32,
            score: f32,
        }
        let mut best: Vec<Option<Step>> = vec![None; text.len() + 1];
        for (start, letter) in text.char_indices() {
            let so_far = best[start].map_or(0.0, |step| step.score);
            let mut offer = |length: usize, id: u32, score: f32| {
                let place = &mut best[start + length];
                let score = score + so_far;
                if place.is_none_or(|step| score > step.score) {
                    *place = Some(Step { from: start, id, score });
                }
            };
            let mut alone = false;
            for (length, id) in self.matches(&text[start..]) {
                let score = match self.kinds[id as usize] {
                    // In double precision up to here, as there.
                    Kind::UserDefined => (f64::from(length as f32 * self.greatest) - 0.1) as f32,
                    _ => self.scores[id as usize],
                };
                offer(length, id, score);
                alone |= length == letter.len_utf8();
            }
            if !alone {
                offer(letter.len_utf8(), self.unknown, self.least - UNKNOWN_PENALTY);
            }
        }
        let mut path = Vec::new();
        let mut end = text.len();
        // Every place after a character can be reached from the one before it.
        while let Some(step) = best[end] {
            path.push((&text[step.from..end], step.id));
            end = step.from;
        }
        path.reverse();
        path
    }
}

fn read_piece(message: &[u8]) -> Result<(String, f32, Kind), String> {
    let (mut text, mut score, mut kind) = (String::new(), 0.0, Kind::Normal);
    for field in Fields(message) {
        match field? {
            (1, Value::Bytes(bytes)) => {
                text = str::from_utf8(bytes).map_err(|error| error.to_string())?.to_owned();
            }
            (2, Value::Four(bytes)) => score = f32::from_le_bytes(bytes),
            (3, Value::Number(number)) => {
                kind = match number {
                    1 => Kind::Normal,
                    2 => Kind::Unknown,
                    4 => Kind::UserDefined,
                    6 => Kind::Byte,
                    _ => Kind::Other,
                }
            }
            _ => {}
        }
    }
    match text.is_empty() {
        true => Err("it has a piece without text".to_owned()),
        false => Ok((text, score, kind)),
    }
}

/// Whether what is unknown falls back to bytes.
fn read_trainer(message: &[u8]) -> Result<bool, String> {
    let mut falls_back = false;
    for field in Fields(message) {
        match field? {
            (3, Value::Number(1)) => {}
            (3, Value::Number(_)) => return Err("its model_type is not unigram".to_owned()),
            (24, Value::Number(1)) => {
                return Err("it takes white space as a suffix, which is not supported".to_owned());
            }
            (35, Value::Number(flag)) => falls_back = flag != 0,
            _ => {}
        }
    }
    Ok(falls_back)
}

fn read_normalizer(message: &[u8]) -> Result<Normalizer, String> {
    let mut normalizer = Normalizer::default();
    for field in Fields(message) {
        match field? {
            (2, Value::Bytes(table)) if !normalizer.set_table(table) => {
                return Err("its precompiled_charsmap is damaged".to_owned());
            }
            (3, Value::Number(flag)) => normalizer.add_dummy_prefix = flag != 0,
            (4, Value::Number(flag)) => normalizer.remove_extra_whitespaces = flag != 0,
            (5, Value::Number(flag)) => normalizer.escape_whitespaces = flag != 0,
            _ => {}
        }
    }
    Ok(normalizer)
}
