//! Text to vectors: BERT encoders from directories as sentence-transformers lays them out, such as all-MiniLM-L6-v2.
//!
//! Each text is a forward pass of its own, without padding, so no vector depends on the texts beside it.

mod error;
pub(crate) mod folder;
mod modules;
mod older_pickle;

use std::path::Path;

use candle_core::{Device, Tensor};
use candle_transformers::models::bert::{self, BertModel};
use serde_json::Value;
use tokenizers::{Tokenizer, TruncationParams};

pub use error::EncoderError;

use folder::{CONFIG, Folder, TOKENIZER};
use modules::{Modules, Pooling};

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
    /// A file that is missing or damaged; weights that do not fit the config; what is no BERT, or is pooled otherwise.
    pub fn open(directory: &Path) -> Result<Encoder, EncoderError> {
        let modules = Modules::read(&Folder::open(directory, None)?)?;
        let folder = &modules.transformer;
        folder.expect(&folder.json::<Value>(CONFIG)?, "model_type", "bert")?;
        let config: bert::Config = folder.json(CONFIG)?;
        let max_tokens = modules.max_tokens(config.max_position_embeddings)?;
        Ok(Encoder {
            model: folder.weights("bert", |weights| BertModel::load(weights, &config))?,
            tokenizer: tokenizer(folder, config.vocab_size, max_tokens)?,
            pooling: modules.pooling,
            normalised: modules.normalised,
            width: config.hidden_size,
            max_tokens,
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
    /// A text cannot be tokenised; the arithmetic fails, as when memory runs out.
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncoderError> {
        texts.iter().map(|text| self.embed_one(text)).collect()
    }

    fn embed_one(&self, text: &str) -> Result<Vec<f32>, EncoderError> {
        let encoding = self.tokenizer.encode_fast(text, true).map_err(|error| {
            EncoderError::Text { length: text.len(), problem: error.to_string() }
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

/// The tokenizer with this encoder's own limit.
fn tokenizer(folder: &Folder, rows: usize, max_tokens: usize) -> Result<Tokenizer, EncoderError> {
    let unusable = |problem: &str| folder.bad_tokenizer(TOKENIZER, problem);
    let mut tokenizer = folder.tokenizer()?;
    let truncation = TruncationParams { max_length: max_tokens, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(truncation)).map_err(|error| unusable(&error.to_string()))?;
    folder.check_vocabulary(TOKENIZER, &tokenizer, rows)?;
    match tokenizer.encode_fast("", true) {
        Ok(empty) if !empty.is_empty() => Ok(tokenizer),
        Ok(_) => Err(unusable("it adds no special tokens")),
        Err(error) => Err(unusable(&error.to_string())),
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
    vector.iter().map(|number| (number / length) as f32).collect()
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
