//! BLEURT: a regression on reference and candidate read together (arXiv:2004.04696; BLEURT-20: arXiv:2110.06341).
//!
//! BLEURT-20 is RemBERT with 32 layers, embeddings narrower than its layers, in the PyTorch port lucadiliello/BLEURT-20.

use std::path::Path;

use candle_core::{DType, Device, Result as ComputeResult, Tensor};
use candle_nn::{Embedding, LayerNorm, Linear, Module, VarBuilder, embedding, layer_norm, linear};
use candle_transformers::models::bert::{self, BertEncoder};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::check_heads;
use super::tokens::Tokens;
use crate::encoder::EncoderError;
use crate::encoder::folder::{CONFIG, Folder};

const CARD: &str = "bleurt-20";

/// A loaded checkpoint, on the CPU, in f32.
pub struct Bleurt {
    model: Model,
    tokens: Tokens,
}

impl Bleurt {
    /// Loads config.json, spm.model and model.safetensors or pytorch_model.bin.
    ///
    /// # Errors
    /// A file that is missing or damaged, or is of another architecture; the hint names the card.
    pub fn load(folder: &Path) -> Result<Self, EncoderError> {
        let folder = Folder::open(folder, Some(CARD))?;
        let mut config: Value = folder.json(CONFIG)?;
        folder.expect(&config, "model_type", "bleurt")?;
        folder.expect(&config, "type_vocab_size", 2)?;
        let width = config["embedding_size"].as_u64().map(|width| width as usize);
        // Fields that candle's BERT requires and that only training needs.
        for field in ["initializer_range", "pad_token_id"] {
            config[field] = json!(0);
        }
        let config: bert::Config =
            serde_json::from_value(config).map_err(|error| folder.unreadable(CONFIG, &error))?;
        let max_tokens = folder.max_tokens(config.max_position_embeddings)?;
        let tokens = Tokens::of_pieces(&folder, config.vocab_size, max_tokens)?;
        // The head lies beside `bleurt.`, not below it.
        let load = |weights: VarBuilder| Model::load(weights.root(), &config, width);
        Ok(Self { model: folder.weights("bleurt", load)?, tokens })
    }

    /// A score for each pair of a reference and a candidate, not clipped: about 0 for unrelated texts, 1 for equal ones.
    pub fn score(&self, pairs: &[(String, String)]) -> Result<Vec<f64>, EncoderError> {
        let score = |(index, (reference, candidate)): (usize, &(String, String))| {
            let (ids, segments) = self.tokens(reference, candidate)?;
            let score = self.model.score(&ids, &segments)?;
            match score.is_finite() {
                true => Ok(score),
                false => Err(EncoderError::NotFinite { place: index + 1, of: pairs.len() }),
            }
        };
        pairs.par_iter().enumerate().map(score).collect()
    }

    /// A pair's token ids, and each token's segment.
    ///
    /// # Errors
    /// What the tokenizer cannot tokenise.
    pub fn tokens(
        &self,
        reference: &str,
        candidate: &str,
    ) -> Result<(Vec<u32>, Vec<u32>), EncoderError> {
        self.tokens.encode_pair(reference, candidate)
    }
}

struct Model {
    words: Embedding,
    positions: Embedding,
    segments: Embedding,
    norm: LayerNorm,
    /// From the embeddings' width to the layers'; absent where they are the same.
    projection: Option<Linear>,
    encoder: BertEncoder,
    pooler: Linear,
    head: Linear,
}

impl Model {
    fn load(
        weights: VarBuilder,
        config: &bert::Config,
        embedding_width: Option<usize>,
    ) -> ComputeResult<Self> {
        let body = weights.pp("bleurt");
        let (embeddings, encoder) = (body.pp("embeddings"), body.pp("encoder"));
        let width = config.hidden_size;
        check_heads(width, config.num_attention_heads)?;
        let narrow = embedding_width.unwrap_or(width);
        let table = |rows, name| embedding(rows, narrow, embeddings.pp(name));
        let projection =
            embedding_width.map(|narrow| linear(narrow, width, encoder.pp("embedding_projection")));
        Ok(Self {
            words: table(config.vocab_size, "word_embeddings")?,
            positions: table(config.max_position_embeddings, "position_embeddings")?,
            segments: table(config.type_vocab_size, "token_type_embeddings")?,
            norm: layer_norm(narrow, config.layer_norm_eps, embeddings.pp("LayerNorm"))?,
            projection: projection.transpose()?,
            encoder: BertEncoder::load(encoder, config)?,
            pooler: linear(width, width, body.pp("pooler.dense"))?,
            head: linear(width, 1, weights.pp("classifier"))?,
        })
    }

    fn score(&self, ids: &[u32], segments: &[u32]) -> ComputeResult<f64> {
        let row = |numbers: &[u32]| Tensor::new(numbers, &Device::Cpu)?.unsqueeze(0);
        let positions: Vec<u32> = (0..ids.len() as u32).collect();
        let states = self.words.forward(&row(ids)?)?;
        let states = (states + self.segments.forward(&row(segments)?)?)?;
        let states = (states + self.positions.forward(&row(&positions)?)?)?;
        let mut states = self.norm.forward(&states)?;
        if let Some(projection) = &self.projection {
            states = projection.forward(&states)?;
        }
        // Nothing is masked: [1, 1, 1, tokens] of zeros is added to the scores.
        let mask = Tensor::zeros((1, 1, 1, ids.len()), DType::F32, &Device::Cpu)?;
        // [1, tokens, width]
        let states = self.encoder.forward(&states, &mask)?;
        let pooled = self.pooler.forward(&states.narrow(1, 0, 1)?.squeeze(1)?)?;
        let score = self.head.forward(&pooled.tanh()?)?;
        Ok(f64::from(score.flatten_all()?.to_vec1::<f32>()?[0]))
    }
}
