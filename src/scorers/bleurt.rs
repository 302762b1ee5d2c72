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
use super::sentencepiece::Pieces;
use super::tokens::{CLS, SEP, SPECIAL, check_room};
use crate::encoder::EncoderError;
use crate::encoder::folder::{CONFIG, Folder, TOKENIZER_LIMIT};

const CARD: &str = "bleurt-20";
const PIECES: &str = "spm.model";

/// A loaded checkpoint, on the CPU, in f32.
pub struct Bleurt {
    model: Model,
    pieces: Pieces,
    /// Of a whole pair, special tokens included.
    max_tokens: usize,
    cls: u32,
    sep: u32,
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
        let unusable = |problem: String| folder.bad_tokenizer(PIECES, &problem);
        let pieces = Pieces::read(&folder.file(PIECES)?).map_err(unusable)?;
        if pieces.count() > config.vocab_size {
            return Err(unusable(format!(
                "it has {} pieces, but config.json has vocab_size = {}",
                pieces.count(),
                config.vocab_size
            )));
        }
        let id = |piece: &str| {
            let id = pieces.id(piece);
            id.ok_or_else(|| unusable(format!("it has no {piece}")))
        };
        let (cls, sep) = (id(CLS)?, id(SEP)?);
        let max_tokens = folder.max_tokens(&[TOKENIZER_LIMIT], config.max_position_embeddings)?;
        check_room(&folder, PIECES, max_tokens)?;
        // The head lies beside `bleurt.`, not below it.
        let load = |weights: VarBuilder| Model::load(weights.root(), &config, width);
        Ok(Self { model: folder.weights("bleurt", load)?, pieces, max_tokens, cls, sep })
    }

    /// A score for each pair of a reference and a candidate, not clipped: about 0 for unrelated texts, 1 for equal ones.
    pub fn score(&self, pairs: &[(String, String)]) -> Result<Vec<f64>, EncoderError> {
        let score = |(index, (reference, candidate)): (usize, &(String, String))| {
            let (ids, segments) = self.tokens(reference, candidate);
            let score = self.model.score(&ids, &segments)?;
            match score.is_finite() {
                true => Ok(score),
                false => Err(EncoderError::NotFinite { place: index + 1, of: pairs.len() }),
            }
        };
        pairs.par_iter().enumerate().map(score).collect()
    }

    /// `[CLS]` reference `[SEP]` candidate `[SEP]` as token ids, and each token's segment. A pair that is too long loses the
    /// last token of its longer text, of two as long the candidate's, until it fits.
    pub fn tokens(&self, reference: &str, candidate: &str) -> (Vec<u32>, Vec<u32>) {
        let (mut first, mut second) = (self.encode(reference), self.encode(candidate));
        while first.len() + second.len() > self.max_tokens - 3 {
            match first.len() > second.len() {
                true => first.pop(),
                false => second.pop(),
            };
        }
        let mut ids = vec![self.cls];
        ids.append(&mut first);
        ids.push(self.sep);
        let mut segments = vec![0; ids.len()];
        ids.append(&mut second);
        ids.push(self.sep);
        segments.resize(ids.len(), 1);
        (ids, segments)
    }

    /// A special token that is spelt out in a text is that token, and what is between them is a text of its own.
    fn encode(&self, mut text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        let special = SPECIAL.map(|token| (token, self.pieces.id(token)));
        loop {
            let next = special
                .iter()
                .filter_map(|&(token, id)| Some((text.find(token)?, token, id?)))
                .min();
            let Some((at, token, id)) = next else {
                ids.append(&mut self.pieces.encode(text));
                return ids;
            };
            ids.append(&mut self.pieces.encode(&text[..at]));
            ids.push(id);
            text = &text[at + token.len()..];
        }
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
