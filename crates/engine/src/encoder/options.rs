//! What an encoder or reranker is opened with, and what it reads and gives.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::card::KnownModel;
use crate::model::WantedType;
use crate::ops::{Device, Precision, Quantisation, StoredType};

#[derive(Clone, Debug)]
pub struct EncoderOptions {
    pub directory: PathBuf,
    /// A model that is known by name: its card says how it is used where the folder does not.
    pub known: Option<KnownModel>,
    /// Cut vectors to this many numbers, at length 1; one of the card's widths.
    pub dims: Option<usize>,
    /// Cut texts at fewer tokens than the card says.
    pub max_tokens: Option<usize>,
    /// f32 unless asked for otherwise, as BERT is published.
    pub dtype: WantedType,
    pub quantisation: Quantisation,
    pub device: Device,
}

impl EncoderOptions {
    /// A folder as it is, on this device.
    pub fn new(directory: &Path, device: Device) -> EncoderOptions {
        EncoderOptions {
            directory: directory.to_owned(),
            known: None,
            dims: None,
            max_tokens: None,
            dtype: WantedType::Auto,
            quantisation: Quantisation::None,
            device,
        }
    }

    pub(super) fn precision(&self) -> Precision {
        let stored = match self.dtype {
            WantedType::Auto => StoredType::F32,
            WantedType::Exactly(stored) => stored,
        };
        Precision { quantisation: self.quantisation, ..stored.into() }
    }
}

/// Which side of a search a text is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    #[default]
    Document,
    Query,
}

/// What is retrieved; the title may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    pub title: &'a str,
    pub text: &'a str,
}

/// What a reranker scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<'a> {
    pub query: &'a str,
    pub title: &'a str,
    pub text: &'a str,
}

/// Vectors, and of each whether its text was cut at the model's limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Embedded {
    /// `[texts][width]`.
    pub vectors: Vec<Vec<f32>>,
    pub cut: Vec<bool>,
}
