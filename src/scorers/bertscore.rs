//! BERTScore: the tokens of a candidate and a reference, each matched with the other's most similar one
//! (arXiv:1904.09675, §3), as bert-score 0.3.13 computes it.

use std::collections::HashMap;
use std::path::Path;

use candle_core::{Device, Tensor};
use candle_transformers::models::bert::{self, BertModel};
use rayon::prelude::*;
use serde_json::Value;

use super::check_heads;
use super::deberta::{self, Deberta};
use super::tokens::Tokens;
use crate::encoder::EncoderError;
use crate::encoder::folder::{CONFIG, Folder};
use crate::text::strip;

/// Pairs whose states are in memory at a time.
const PAIRS_AT_ONCE: usize = 32;

/// An encoder, and what bert-score uses of it.
#[derive(Clone, Copy, Debug)]
pub struct BertScoreModel {
    /// The name of the card whose files are loaded.
    pub card: &'static str,
    /// `deberta` or `bert`.
    pub family: &'static str,
    /// Word embeddings: what tells the published encoders apart.
    pub vocabulary: usize,
    /// The layer whose states are compared, counted from 1.
    pub layer: usize,
    /// What unrelated texts score; where there is none, scores are not rescaled.
    pub baseline: Option<f64>,
}

impl BertScoreModel {
    /// The baseline is F in row 40 of rescale_baseline/en/microsoft/deberta-xlarge-mnli.tsv in bert-score 0.3.13.
    pub const ENGLISH: Self = Self {
        card: "deberta-xlarge-mnli",
        family: "deberta",
        vocabulary: 50265,
        layer: 40,
        baseline: Some(0.515_019_2),
    };

    /// As MedGuards' code scores Arabic: English's model, and no baseline, for bert-score has none for Arabic.
    pub const ARABIC: Self = Self { baseline: None, ..Self::ENGLISH };

    /// What bert-score takes for Arabic and most other languages.
    pub const MULTILINGUAL: Self = Self {
        card: "bert-base-multilingual-cased",
        family: "bert",
        vocabulary: 119_547,
        layer: 9,
        baseline: None,
    };

    /// Without a baseline, as MedGuards reports it.
    pub const CHINESE: Self = Self {
        card: "bert-base-chinese",
        family: "bert",
        vocabulary: 21128,
        layer: 8,
        baseline: None,
    };
}

enum Encoder {
    Bert(Box<BertModel>),
    Deberta(Deberta),
}

/// A loaded encoder, on the CPU, in f32.
pub struct BertScore {
    encoder: Encoder,
    tokens: Tokens,
    baseline: Option<f64>,
}

impl BertScore {
    /// Loads config.json, the tokenizer (tokenizer.json, or vocab.json and merges.txt) and model.safetensors or
    /// pytorch_model.bin; of the layers, those that are used.
    ///
    /// # Errors
    /// A file that is missing or damaged, or is of another model than `model`; the hint names the card.
    pub fn load(folder: &Path, model: &BertScoreModel) -> Result<Self, EncoderError> {
        let folder = Folder::open(folder, Some(model.card))?;
        let config: Value = folder.json(CONFIG)?;
        folder.expect(&config, "model_type", model.family)?;
        folder.expect(&config, "vocab_size", model.vocabulary)?;
        let layers = &config["num_hidden_layers"];
        if layers.as_u64().is_none_or(|layers| layers < model.layer as u64) {
            let expected = format!("at least {}", model.layer);
            return Err(folder.unsupported("num_hidden_layers", &layers.to_string(), &expected));
        }
        let (encoder, positions) = match model.family {
            "deberta" => {
                let config = deberta::Config::read(&folder, config)?;
                let load = |weights| Deberta::load(weights, &config, model.layer);
                let encoder = Encoder::Deberta(folder.weights("deberta", load)?);
                (encoder, config.max_position_embeddings)
            }
            _ => {
                let mut config: bert::Config = folder.json(CONFIG)?;
                config.num_hidden_layers = model.layer;
                let load = |weights| {
                    check_heads(config.hidden_size, config.num_attention_heads)?;
                    BertModel::load(weights, &config)
                };
                let encoder = Encoder::Bert(Box::new(folder.weights("bert", load)?));
                (encoder, config.max_position_embeddings)
            }
        };
        let max_tokens = folder.max_tokens(positions)?;
        Ok(Self {
            encoder,
            tokens: Tokens::read(&folder, model.vocabulary, max_tokens)?,
            baseline: model.baseline,
        })
    }

    /// F of each pair of a reference and a candidate, the harmonic mean of precision and recall, rescaled where the model has a baseline, and
    /// not clipped. White space around a text does not count. An empty text makes it zero before rescaling, and so does bert-score.
    /// A text that spells nothing but `[CLS]` and `[SEP]` weighs nothing: its part is zero where bert-score's is not a number.
    pub fn score(&self, pairs: &[(String, String)]) -> Result<Vec<f64>, EncoderError> {
        let mut scores = Vec::with_capacity(pairs.len());
        for pairs in pairs.chunks(PAIRS_AT_ONCE) {
            let mut texts: Vec<&str> = pairs
                .iter()
                .flat_map(|(reference, candidate)| [strip(reference), strip(candidate)])
                .collect();
            texts.sort_unstable();
            texts.dedup();
            let embedded: HashMap<&str, Embedded> = texts
                .par_iter()
                .enumerate()
                .map(|(index, &text)| match self.embed(text)? {
                    Some(embedded) => Ok((text, embedded)),
                    None => Err(EncoderError::NotFinite { place: index + 1, of: texts.len() }),
                })
                .collect::<Result<_, EncoderError>>()?;
            for (reference, candidate) in pairs {
                let (reference, candidate) =
                    (&embedded[strip(reference)], &embedded[strip(candidate)]);
                scores.push(rescaled(greedy_match(reference, candidate)?, self.baseline));
            }
        }
        Ok(scores)
    }

    /// The token ids of a text, `[CLS]` first and `[SEP]` last.
    pub fn tokens(&self, text: &str) -> Result<Vec<u32>, EncoderError> {
        self.tokens.encode(strip(text))
    }

    /// The states that are compared, `[tokens][width]`.
    pub fn states(&self, text: &str) -> Result<Vec<Vec<f32>>, EncoderError> {
        Ok(self.encode(&self.tokens(text)?)?.to_vec2()?)
    }

    fn encode(&self, ids: &[u32]) -> Result<Tensor, EncoderError> {
        Ok(match &self.encoder {
            Encoder::Deberta(model) => model.states(ids)?,
            Encoder::Bert(model) => {
                let ids = Tensor::new(ids, &Device::Cpu)?.unsqueeze(0)?;
                model.forward(&ids, &ids.zeros_like()?, None)?.squeeze(0)?
            }
        })
    }

    /// `None`: the states are not finite numbers.
    fn embed(&self, text: &str) -> Result<Option<Embedded>, EncoderError> {
        let ids = self.tokens.encode(text)?;
        let states = self.encode(&ids)?;
        let lengths = states.sqr()?.sum_keepdim(1)?.sqrt()?;
        if !lengths.sum_all()?.to_scalar::<f32>()?.is_finite() {
            return Ok(None);
        }
        Ok(Some(Embedded {
            directions: states.broadcast_div(&lengths)?,
            counts: ids.iter().map(|&id| !self.tokens.is_mark(id)).collect(),
        }))
    }
}

struct Embedded {
    /// `[tokens, width]`, each of length 1.
    directions: Tensor,
    /// Whether a token is averaged over; `[CLS]` and `[SEP]` are matched with, and do not count.
    counts: Vec<bool>,
}

/// §3 of the paper, without weights for rare words: the mean over a text's tokens of the best cosine in the other text.
fn greedy_match(reference: &Embedded, candidate: &Embedded) -> Result<f64, EncoderError> {
    if [reference, candidate].iter().any(|text| text.counts.len() == 2) {
        return Ok(0.0);
    }
    // [candidate's tokens, reference's tokens]
    let cosines = candidate.directions.matmul(&reference.directions.t()?)?;
    let precision = mean(&cosines.max(1)?.to_vec1()?, &candidate.counts);
    let recall = mean(&cosines.max(0)?.to_vec1()?, &reference.counts);
    Ok(match precision + recall {
        0.0 => 0.0,
        sum => 2.0 * precision * recall / sum,
    })
}

/// About 0 for unrelated texts, 1 for equal ones.
fn rescaled(f: f64, baseline: Option<f64>) -> f64 {
    let baseline = baseline.unwrap_or(0.0);
    (f - baseline) / (1.0 - baseline)
}

/// The mean of what counts; zero where nothing does.
fn mean(cosines: &[f32], counts: &[bool]) -> f64 {
    let counted = cosines.iter().zip(counts).filter(|(_, counts)| **counts);
    let counted: Vec<f64> = counted.map(|(&cosine, _)| f64::from(cosine)).collect();
    match counted.len() {
        0 => 0.0,
        length => counted.iter().sum::<f64>() / length as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_at_its_baseline_rescales_to_zero_and_an_equal_text_stays_at_one() {
        let baseline = BertScoreModel::ENGLISH.baseline;
        assert_eq!(rescaled(baseline.unwrap(), baseline), 0.0);
        assert!((rescaled(0.0, baseline) + 1.061_94).abs() < 1e-5);
        assert_eq!([rescaled(1.0, baseline), rescaled(0.5, None)], [1.0, 0.5]);
    }

    #[test]
    fn texts_are_stripped_as_python_strips_them() {
        assert_eq!(strip("\u{1f} \u{3000}a b\u{a0}\u{85}\n"), "a b");
        assert_eq!(strip("\u{200b}"), "\u{200b}");
    }
}
