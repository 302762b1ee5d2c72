//! Text to vectors: BERT encoders from directories as sentence-transformers lays them out, such as all-MiniLM-L6-v2.
//!
//! Each text is a forward pass of its own, without padding, so no vector depends on the texts beside it.

mod error;
mod folder;

use std::collections::HashMap;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::BertModel;
use tokenizers::{Tokenizer, TruncationParams};

pub use error::EncoderError;
pub(crate) use error::said;

use folder::{Folder, Pooling};

/// An encoder on the CPU, in f32.
pub struct Encoder {
    model: BertModel,
    tokenizer: Tokenizer,
    pooling: Pooling,
    normalised: bool,
    width: usize,
    max_tokens: usize,
}

impl Encoder {
    /// Loads config.json, tokenizer.json and model.safetensors or pytorch_model.bin. modules.json says how vectors are
    /// pooled and whether their length is made 1; sentence_bert_config.json where texts are cut, and without it
    /// tokenizer_config.json or the last position.
    ///
    /// # Errors
    ///
    /// A file that is missing or damaged; weights that do not fit the config; what is no BERT, or is pooled otherwise.
    pub fn open(directory: &Path) -> Result<Encoder, EncoderError> {
        let folder = Folder::read(directory)?;
        let unfit = |error: candle_core::Error| EncoderError::Weights {
            path: folder.weights.clone(),
            problem: said(&error),
        };
        let weights = weights(&folder.weights).map_err(unfit)?;
        let weights = VarBuilder::from_tensors(weights, DType::F32, &Device::Cpu);
        let model = BertModel::load(weights, &folder.config).map_err(unfit)?;
        Ok(Encoder {
            model,
            tokenizer: tokenizer(&folder)?,
            pooling: folder.pooling,
            normalised: folder.normalised,
            width: folder.config.hidden_size,
            max_tokens: folder.max_tokens,
        })
    }

    /// Numbers in a vector.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Where texts are cut, special tokens included.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// `[texts][width]`; an empty text has a vector too, that of its special tokens.
    ///
    /// # Errors
    ///
    /// A text cannot be tokenised; the arithmetic fails, as when memory runs out.
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncoderError> {
        texts.iter().map(|text| self.embed_one(text)).collect()
    }

    fn embed_one(&self, text: &str) -> Result<Vec<f32>, EncoderError> {
        let encoding =
            self.tokenizer
                .encode_fast(text, true)
                .map_err(|error| EncoderError::Text {
                    length: text.len(),
                    problem: error.to_string(),
                })?;
        let row = |ids: &[u32]| Tensor::new(ids, &Device::Cpu)?.unsqueeze(0);
        let ids = row(encoding.get_ids())?;
        let types = row(encoding.get_type_ids())?;
        // [1, tokens, width]
        let states = self.model.forward(&ids, &types, None)?;
        let vector = pool(&states.squeeze(0)?.to_vec2()?, self.pooling);
        Ok(match self.normalised {
            true => normalise(&vector),
            false => vector.iter().map(|&number| number as f32).collect(),
        })
    }
}

/// All tensors of a file by name, without the `bert.` that whole models put before it. Pickles are read, never run.
fn weights(path: &Path) -> candle_core::Result<HashMap<String, Tensor>> {
    let tensors: Vec<(String, Tensor)> = match path.extension() {
        Some(extension) if extension == "bin" => candle_core::pickle::read_all(path)?,
        _ => candle_core::safetensors::load(path, &Device::Cpu)?
            .into_iter()
            .collect(),
    };
    let short = |name: String| {
        name.strip_prefix("bert.")
            .map(str::to_owned)
            .unwrap_or(name)
    };
    let renamed = tensors
        .into_iter()
        .map(|(name, tensor)| (short(name), tensor));
    Ok(renamed.collect())
}

/// The tokenizer with this encoder's own limit, and without the padding that published files carry.
fn tokenizer(folder: &Folder) -> Result<Tokenizer, EncoderError> {
    let unusable = |problem: String| EncoderError::Tokenizer {
        path: folder.tokenizer.clone(),
        problem,
    };
    let bytes = fs_err::read(&folder.tokenizer)?;
    let mut tokenizer =
        Tokenizer::from_bytes(&bytes).map_err(|error| unusable(error.to_string()))?;
    let truncation = TruncationParams {
        max_length: folder.max_tokens,
        ..TruncationParams::default()
    };
    tokenizer
        .with_padding(None)
        .with_truncation(Some(truncation))
        .map_err(|error| unusable(error.to_string()))?;
    let known = tokenizer.get_vocab(true).into_values().max();
    let rows = folder.config.vocab_size;
    if let Some(id) = known.filter(|&id| id as usize >= rows) {
        return Err(unusable(format!(
            "it has a token {id}, but config.json says vocab_size = {rows}"
        )));
    }
    let empty = tokenizer
        .encode_fast("", true)
        .map_err(|error| unusable(error.to_string()))?;
    match empty.is_empty() {
        true => Err(unusable("it adds no special tokens".to_owned())),
        false => Ok(tokenizer),
    }
}

/// `states` is `[tokens][width]`; all of them count, `[CLS]` and `[SEP]` too.
fn pool(states: &[Vec<f32>], pooling: Pooling) -> Vec<f64> {
    let pooled = match pooling {
        Pooling::Cls => &states[..1],
        Pooling::Mean => states,
    };
    let width = states.first().map_or(0, Vec::len);
    let mean = |at: usize| {
        let sum: f64 = pooled.iter().map(|state| f64::from(state[at])).sum();
        sum / pooled.len() as f64
    };
    (0..width).map(mean).collect()
}

/// At length 1, but for a vector of zeros.
fn normalise(vector: &[f64]) -> Vec<f32> {
    let length = vector.iter().map(|number| number * number).sum::<f64>();
    // sentence-transformers' own floor.
    let length = length.sqrt().max(1e-12);
    vector
        .iter()
        .map(|number| (number / length) as f32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_first_states() {
        let states = [vec![1.0, -2.0], vec![3.0, 6.0]];
        assert_eq!(pool(&states, Pooling::Mean), [2.0, 2.0]);
        assert_eq!(pool(&states, Pooling::Cls), [1.0, -2.0]);
    }

    #[test]
    fn zeros_keep_their_length() {
        assert_eq!(normalise(&[3.0, 4.0]), [0.6, 0.8]);
        assert_eq!(normalise(&[0.0, 0.0]), [0.0, 0.0]);
    }
}
