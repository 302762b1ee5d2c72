//! BERT behind an encoder or a reranker: its config, its tensors by name, and whole texts through it.

use std::sync::{Arc, Mutex, PoisonError};

use candle_nn::VarBuilder;
use serde_json::Value;

use super::folder::{CONFIG, Folder};
use super::steps::{Packed, Size, Take, steps};
use super::tokens::Sequence;
use super::{EncoderError, EncoderOptions};
use crate::model::{Bert, BertConfig, BertScratch};
use crate::ops::{Device, EncoderBackend, Precision};

/// A loaded model, on whatever machine.
pub(super) trait Network: Send + Sync {
    /// What `take` makes of each text's states. No bit depends on the texts beside it.
    fn run(&self, texts: &[Sequence], take: &Take<'_>) -> Result<Vec<Vec<f64>>, EncoderError>;
}

struct BertNetwork<B: EncoderBackend> {
    ops: B,
    bert: Bert<B>,
    /// What steps of this size are computed in, kept from one call to the next: each of many small calls would make it anew. Calls at one
    /// time make their own.
    spare: Mutex<Option<(Size, BertScratch<B>)>>,
}

pub(super) fn load(
    folder: &Folder,
    config: BertConfig,
    options: &EncoderOptions,
) -> Result<Arc<dyn Network>, EncoderError> {
    let precision = options.precision();
    match &options.device {
        Device::Cpu(cpu) => load_on(cpu, folder, config, precision),
        Device::Cuda(gpu) => load_on(&gpu.for_encoder(precision)?, folder, config, precision),
        device @ Device::Candle(_) => Err(EncoderError::Device { device: device.describe() }),
    }
}

fn load_on<B: EncoderBackend>(
    ops: &B,
    folder: &Folder,
    config: BertConfig,
    precision: Precision,
) -> Result<Arc<dyn Network>, EncoderError> {
    let bert = folder.weights("bert", |weights| {
        Bert::load(ops, config, &|name, shape| tensor(&weights, name, shape), precision)
    })?;
    Ok(Arc::new(BertNetwork { ops: ops.clone(), bert, spare: Mutex::new(None) }))
}

impl<B: EncoderBackend> Network for BertNetwork<B> {
    fn run(&self, texts: &[Sequence], take: &Take<'_>) -> Result<Vec<Vec<f64>>, EncoderError> {
        let (ops, bert) = (&self.ops, &self.bert);
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        check_segments(texts, bert.config.type_vocab_size)?;
        let steps = steps(texts, B::MACHINE.prefill_rows());
        let size = Size::of(&steps);
        let spare = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = spare().take().filter(|(kept, _)| kept.holds(size));
        let (size, mut scratch) = match kept {
            Some(kept) => kept,
            None => (size, BertScratch::new(ops, &bert.config, size.rows, size.pages)?),
        };
        let mut taken = Vec::with_capacity(texts.len());
        for step in steps {
            let packed = Packed::new(step);
            let states =
                packed.with_rows(|rows| ops.run(|| bert.forward(ops, rows, &mut scratch)))?;
            let mut rest = states.as_slice();
            for text in step {
                let (own, after) = rest.split_at(text.tokens.len() * bert.config.hidden_size);
                taken.push(take(own));
                rest = after;
            }
        }
        *spare() = Some((size, scratch));
        Ok(taken)
    }
}

/// A tokenizer may number more segments than the model has embeddings for.
fn check_segments(texts: &[Sequence], segments: usize) -> Result<(), EncoderError> {
    let is_beyond = |text: &&Sequence| text.segments.iter().any(|&one| one as usize >= segments);
    match texts.iter().find(is_beyond) {
        None => Ok(()),
        Some(text) => Err(EncoderError::Text {
            length: text.tokens.len(),
            problem: format!("the model has {segments} segments, and the tokenizer names more"),
        }),
    }
}

/// A tensor of a pickle or a safetensors file, as f32.
fn tensor(weights: &VarBuilder<'_>, name: &str, shape: &[usize]) -> Result<Vec<f32>, EncoderError> {
    // TensorFlow's names, which older checkpoints keep.
    let older = name.replace("LayerNorm.weight", "LayerNorm.gamma");
    let older = older.replace("LayerNorm.bias", "LayerNorm.beta");
    let is_older = !weights.contains_tensor(name) && weights.contains_tensor(&older);
    let name = if is_older { &older } else { name };
    Ok(weights.get(shape, name)?.flatten_all()?.to_vec1()?)
}

/// BERT's sizes, checked.
pub(super) fn bert_config(folder: &Folder) -> Result<BertConfig, EncoderError> {
    let value: Value = folder.json(CONFIG)?;
    folder.expect(&value, "model_type", "bert")?;
    folder.expect(&value, "hidden_act", "gelu")?;
    if value.get("position_embedding_type").is_some() {
        folder.expect(&value, "position_embedding_type", "absolute")?;
    }
    let config: BertConfig =
        serde_json::from_value(value).map_err(|error| folder.unreadable(CONFIG, &error))?;
    match config.problem() {
        None => Ok(config),
        Some(problem) => {
            Err(folder.wrong(CONFIG, format!("does not describe an encoder: {problem}")))
        }
    }
}

/// What stands behind the first state in a classifier of pairs.
pub(super) struct Classifier {
    /// `[hidden][hidden]`, then tanh.
    pooler: Linear,
    logit: Linear,
}

/// A linear layer over one vector.
struct Linear {
    /// `[outputs][inputs]`.
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Classifier {
    pub(super) fn read(folder: &Folder, hidden: usize) -> Result<Classifier, EncoderError> {
        folder.weights("", |weights| -> Result<_, EncoderError> {
            let linear = |name: &str, outputs: usize| {
                Ok::<_, EncoderError>(Linear {
                    weight: tensor(&weights, &format!("{name}.weight"), &[outputs, hidden])?,
                    bias: tensor(&weights, &format!("{name}.bias"), &[outputs])?,
                })
            };
            Ok(Classifier {
                pooler: linear("bert.pooler.dense", hidden)?,
                logit: linear("classifier", 1)?,
            })
        })
    }

    /// Of the first token's state.
    pub(super) fn score(&self, first: &[f64]) -> Vec<f64> {
        let mut pooled = self.pooler.apply(first);
        pooled.iter_mut().for_each(|number| *number = libm::tanh(*number));
        self.logit.apply(&pooled)
    }
}

impl Linear {
    fn apply(&self, vector: &[f64]) -> Vec<f64> {
        let product = |(row, bias): (&[f32], &f32)| {
            let terms = row.iter().zip(vector).map(|(weight, number)| f64::from(*weight) * number);
            terms.sum::<f64>() + f64::from(*bias)
        };
        self.weight.chunks_exact(vector.len()).zip(&self.bias).map(product).collect()
    }
}
