//! The directory of an encoder's checkpoint: its JSON files, its tokenizer, and its weights as candle asks for them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use candle_core::{DType, Device};
use candle_nn::VarBuilder;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::message;
use super::{EncoderError, EncoderOptions, older_pickle};
use crate::ceiling::{Ceiling, Source};
use crate::outside;
use crate::tokenizer::Library;

pub const CONFIG: &str = "config.json";
pub const TOKENIZER: &str = "tokenizer.json";
/// The first that is there is read.
const WEIGHTS: [&str; 2] = ["model.safetensors", "pytorch_model.bin"];

/// A directory, whose errors name the file and what is wrong with it.
pub struct Folder {
    path: PathBuf,
    /// The card whose files it should hold.
    card: Option<&'static str>,
}

impl Folder {
    /// `card`: the name under which its files are known.
    pub fn open(path: &Path, card: Option<&'static str>) -> Result<Self, EncoderError> {
        let folder = Self { path: path.to_owned(), card };
        match path.is_dir() {
            true => Ok(folder),
            false => Err(folder.wrong("", "is not a directory")),
        }
    }

    pub(super) fn of(options: &EncoderOptions) -> Result<Self, EncoderError> {
        Self::open(&options.directory, options.known.map(|known| known.name))
    }

    /// A folder below, as a file of this one names it.
    pub(super) fn subfolder(&self, name: &str) -> Result<Self, EncoderError> {
        Ok(Self { path: outside::below(&self.path, name)?, card: self.card })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file of weights that is read, by name.
    pub(super) fn weight_file(&self) -> Result<&'static str, EncoderError> {
        WEIGHTS.into_iter().find(|name| self.has(name)).ok_or_else(|| {
            self.wrong("", format!("has no weights: neither {} is there", WEIGHTS.join(" nor ")))
        })
    }

    pub fn has(&self, name: &str) -> bool {
        self.path.join(name).is_file()
    }

    /// The error for a file, or with an empty name for the folder; the problem reads on from the path.
    pub fn wrong(&self, name: &str, problem: impl Into<String>) -> EncoderError {
        EncoderError::Checkpoint {
            card: self.card,
            path: match name {
                "" => self.path.clone(),
                name => self.path.join(name),
            },
            problem: problem.into(),
        }
    }

    pub fn bad_tokenizer(&self, name: &str, problem: &str) -> EncoderError {
        self.wrong(name, format!("is not a tokenizer of this model: {problem}"))
    }

    pub fn file(&self, name: &str) -> Result<PathBuf, EncoderError> {
        match self.has(name) {
            true => Ok(self.path.join(name)),
            false => Err(self.wrong(name, "is missing")),
        }
    }

    pub fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, EncoderError> {
        outside::json(&self.file(name)?)?.map_err(|error| self.unreadable(name, &error))
    }

    /// The error for JSON that is not what the model's code reads.
    pub fn unreadable(&self, name: &str, error: &dyn std::fmt::Display) -> EncoderError {
        self.wrong(name, format!("does not describe an encoder: {error}"))
    }

    /// An error unless config.json has `expected` in `field`.
    pub fn expect(
        &self,
        config: &Value,
        field: &str,
        expected: impl Into<Value>,
    ) -> Result<(), EncoderError> {
        let (found, expected) = (&config[field], expected.into());
        match *found == expected {
            true => Ok(()),
            false => Err(self.unsupported(field, &spelt(found), &spelt(&expected))),
        }
    }

    /// The error for a field of config.json with a value that the model's code does not know.
    pub fn unsupported(&self, field: &str, found: &str, expected: &str) -> EncoderError {
        self.wrong(CONFIG, format!("is not supported: `{field}` is `{found}`, not {expected}"))
    }

    /// Where texts are cut, special tokens included: where the tokenizer says, and never beyond the positions.
    pub fn max_tokens(&self, positions: usize) -> Result<usize, EncoderError> {
        const CONFIG: &str = "tokenizer_config.json";
        if !self.has(CONFIG) {
            return Ok(positions);
        }
        // A tokenizer without a limit says 1e30, which is no integer.
        let limit = self.json::<Value>(CONFIG)?["model_max_length"].as_u64();
        Ok(limit.map_or(positions, |limit| positions.min(limit as usize)))
    }

    pub fn tokenizer(&self) -> Result<tokenizers::Tokenizer, EncoderError> {
        let read = Library::read(&self.file(TOKENIZER)?, Ok);
        read.map_err(|problem| self.bad_tokenizer(TOKENIZER, &problem))
    }

    /// An error where the tokenizer, read from the file `name`, has a token that the model has no embedding for.
    pub fn check_vocabulary(
        &self,
        name: &str,
        tokenizer: &tokenizers::Tokenizer,
        rows: usize,
    ) -> Result<(), EncoderError> {
        let greatest = tokenizer.get_vocab(true).into_values().max();
        match greatest.filter(|&id| id as usize >= rows) {
            None => Ok(()),
            Some(id) => {
                let problem =
                    format!("it has a token {id}, but config.json has vocab_size = {rows}");
                Err(self.bad_tokenizer(name, &problem))
            }
        }
    }

    /// Hands `load` the tensors by name, as f32, below `prefix` where the file puts it before every name. Pickles are
    /// read, never run.
    pub fn weights<T, E: Into<EncoderError>>(
        &self,
        prefix: &str,
        load: impl FnOnce(VarBuilder<'static>) -> Result<T, E>,
    ) -> Result<T, EncoderError> {
        let name = self.weight_file()?;
        let built = tensors(&self.path.join(name)).map_err(EncoderError::from);
        let built = built.and_then(|weights| {
            let whole =
                weights.contains_tensor(&format!("{prefix}.embeddings.word_embeddings.weight"));
            load(if whole { weights.pp(prefix) } else { weights }).map_err(E::into)
        });
        built.map_err(|error| {
            // Others are the machine's.
            let EncoderError::Compute(error) = error else { return error };
            let error = message(&error);
            let problem = format!("does not hold the weights that config.json describes: {error}");
            self.wrong(name, problem)
        })
    }
}

fn spelt(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn tensors(path: &Path) -> candle_core::Result<VarBuilder<'static>> {
    let device = &Device::Cpu;
    if path.extension().is_none_or(|extension| extension != "bin") {
        let bytes = outside::file(path)?;
        return VarBuilder::from_buffered_safetensors(bytes, DType::F32, device);
    }
    if let Some(tensors) = older_pickle::read(path)? {
        return Ok(VarBuilder::from_tensors(tensors, DType::F32, device));
    }
    let path = path.to_owned();
    unpickled(move || VarBuilder::from_pth(path, DType::F32, &Device::Cpu))
}

/// What `read` makes of the pickles before the numbers: a few hundred bytes can describe more than any machine holds, or nest deeper than
/// any thread's stack; and candle panics over some.
pub(super) fn unpickled<T: Send + 'static>(
    read: impl FnOnce() -> candle_core::Result<T> + Send + 'static,
) -> candle_core::Result<T> {
    let ceiling = Ceiling::new("reading the pickle", 64 << 20, Duration::from_secs(60));
    let ceiling = Ceiling { stack: 512 << 20, ..ceiling };
    Source::default().bounded(ceiling, read).map_err(candle_core::Error::wrap)?
}
