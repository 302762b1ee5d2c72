//! A scorer's folder: where its files lie, and its weights as candle asks for them.

use std::path::{Path, PathBuf};

use candle_core::{DType, Device};
use candle_nn::VarBuilder;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ScorerError;
use super::older_pickle::OlderPickle;
use crate::encoder::said;

pub(super) const CONFIG: &str = "config.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
/// Of both forms safetensors goes first.
const WEIGHTS: [&str; 2] = ["model.safetensors", "pytorch_model.bin"];

/// A directory, and the card whose files it should hold.
#[derive(Clone, Copy)]
pub(super) struct Folder<'a> {
    path: &'a Path,
    pub(super) card: &'static str,
}

impl<'a> Folder<'a> {
    pub(super) fn open(path: &'a Path, card: &'static str) -> Result<Self, ScorerError> {
        match path.is_dir() {
            true => Ok(Self { path, card }),
            false => Err(ScorerError::NoDirectory {
                path: path.to_owned(),
                card,
            }),
        }
    }

    /// The path of a file, there or not.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn file(&self, name: &str) -> Result<PathBuf, ScorerError> {
        let path = self.path(name);
        match path.is_file() {
            true => Ok(path),
            false => Err(ScorerError::Missing {
                path,
                card: self.card,
            }),
        }
    }

    pub(super) fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, ScorerError> {
        let path = self.file(name)?;
        let text = fs_err::read_to_string(&path)?;
        serde_json::from_str(&text).map_err(|source| ScorerError::Json {
            path,
            card: self.card,
            source,
        })
    }

    /// An error unless `config.json` says `expected` of `field`.
    pub(super) fn expect(
        &self,
        field: &'static str,
        value: &Value,
        expected: &Value,
    ) -> Result<(), ScorerError> {
        let said = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match value == expected {
            true => Ok(()),
            false => Err(ScorerError::Unsupported {
                path: self.path(CONFIG),
                card: self.card,
                field,
                value: said(value),
                expected: said(expected),
            }),
        }
    }

    /// Where texts are cut, special tokens included: the tokenizer's limit, and never more than there are positions.
    pub(super) fn max_tokens(&self, positions: usize) -> Result<usize, ScorerError> {
        if !self.path(TOKENIZER_CONFIG).is_file() {
            return Ok(positions);
        }
        let config: Value = self.json(TOKENIZER_CONFIG)?;
        // A tokenizer without a limit says nothing, or 1e30.
        let limit = config["model_max_length"].as_u64();
        Ok(limit.map_or(positions, |limit| positions.min(limit as usize)))
    }

    /// Hands `load` the tensors by name, as f32, below `prefix` where the file puts it before every name. Pickles are
    /// read, never run, and tensors that nobody asks for are not read.
    pub(super) fn weights<T>(
        &self,
        prefix: &str,
        load: impl FnOnce(VarBuilder<'static>) -> candle_core::Result<T>,
    ) -> Result<T, ScorerError> {
        let path = WEIGHTS
            .iter()
            .find_map(|name| self.file(name).ok())
            .ok_or_else(|| ScorerError::NoWeights {
                directory: self.path.to_owned(),
                card: self.card,
            })?;
        let built = builder(&path).and_then(|weights| {
            let whole =
                weights.contains_tensor(&format!("{prefix}.embeddings.word_embeddings.weight"));
            load(if whole { weights.pp(prefix) } else { weights })
        });
        built.map_err(|error| ScorerError::Weights {
            path,
            card: self.card,
            problem: said(&error),
        })
    }
}

fn builder(path: &Path) -> candle_core::Result<VarBuilder<'static>> {
    let device = &Device::Cpu;
    if path.extension().is_none_or(|extension| extension != "bin") {
        let bytes = fs_err::read(path)?;
        return VarBuilder::from_buffered_safetensors(bytes, DType::F32, device);
    }
    match OlderPickle::open(path)? {
        Some(older) => Ok(VarBuilder::from_backend(
            Box::new(older),
            DType::F32,
            device.clone(),
        )),
        None => VarBuilder::from_pth(path, DType::F32, device),
    }
}
