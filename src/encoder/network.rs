//! Models behind encoders and rerankers: whole texts in, states out, many texts a step.

use candle_nn::VarBuilder;
use serde_json::Value;

use super::EncoderError;
use super::folder::{CONFIG, Folder};
use super::tokens::Sequence;
use crate::model::{Bert, BertConfig, BertScratch, Tensors};
use crate::ops::{Device, EncoderBackend, OpsError, PAGE, Precision, Rows};

/// Takes the states of one text, `[tokens][width]`, and leaves what is wanted of them.
pub(super) type Take<'a> = dyn Fn(&[f32]) -> Vec<f64> + Sync + 'a;

/// A loaded model.
pub(super) trait Network: Send + Sync {
    /// Numbers of a state.
    fn width(&self) -> usize;

    /// What `take` makes of each text's states; no bit depends on the texts beside it.
    fn run(&self, texts: &[Sequence], take: &Take<'_>) -> Result<Vec<Vec<f64>>, EncoderError>;
}

/// A model's files and where it is to run.
pub(super) struct Loading<'a> {
    pub(super) folder: &'a Folder,
    pub(super) precision: Precision,
    pub(super) device: &'a Device,
}

/// The widest step of texts, in tokens: enough to fill the machine.
fn step_rows<B: EncoderBackend>() -> usize {
    B::MACHINE.prefill_rows()
}

/// Texts that share a step, and the pages that they take.
struct Step {
    texts: std::ops::Range<usize>,
    rows: usize,
    pages: usize,
}

/// Runs of texts of at most `rows` tokens; a longer text is alone.
fn steps(texts: &[Sequence], rows: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let (length, pages) = (text.tokens.len(), text.tokens.len().div_ceil(PAGE));
        match steps.last_mut() {
            Some(step) if step.rows + length <= rows => {
                step.texts.end = index + 1;
                step.rows += length;
                step.pages += pages;
            }
            _ => steps.push(Step { texts: index..index + 1, rows: length, pages }),
        }
    }
    steps
}

/// The rows of a step's texts, one after another.
#[derive(Default)]
struct Packed {
    tokens: Vec<u32>,
    positions: Vec<u32>,
    sequences: Vec<u32>,
    segments: Vec<u32>,
    tables: Vec<Vec<u32>>,
    /// The last row of each text.
    last: Vec<usize>,
}

impl Packed {
    fn new(texts: &[Sequence]) -> Packed {
        let mut packed = Packed::default();
        let mut next_page = 0;
        for (index, text) in texts.iter().enumerate() {
            let length = text.tokens.len();
            packed.tokens.extend_from_slice(&text.tokens);
            packed.segments.extend_from_slice(&text.segments);
            packed.positions.extend(0..length as u32);
            packed.sequences.extend(std::iter::repeat_n(index as u32, length));
            let pages = length.div_ceil(PAGE) as u32;
            packed.tables.push((next_page..next_page + pages).collect());
            packed.last.push(packed.tokens.len() - 1);
            next_page += pages;
        }
        packed
    }

    fn with_rows<T>(&self, run: impl FnOnce(Rows<'_>) -> T) -> T {
        let tables: Vec<&[u32]> = self.tables.iter().map(Vec::as_slice).collect();
        run(Rows {
            tokens: &self.tokens,
            positions: &self.positions,
            sequences: &self.sequences,
            tables: &tables,
        })
    }
}

/// BERT on one machine.
pub(super) struct BertNetwork<B: EncoderBackend> {
    ops: B,
    bert: Bert<B>,
}

impl<B: EncoderBackend> Network for BertNetwork<B> {
    fn width(&self) -> usize {
        self.bert.config.hidden_size
    }

    fn run(&self, texts: &[Sequence], take: &Take<'_>) -> Result<Vec<Vec<f64>>, EncoderError> {
        let steps = steps(texts, step_rows::<B>());
        let rows = steps.iter().map(|step| step.rows).max().unwrap_or(0);
        let pages = steps.iter().map(|step| step.pages).max().unwrap_or(0);
        if rows == 0 {
            return Ok(Vec::new());
        }
        let width = self.width();
        let mut scratch = BertScratch::new(&self.ops, &self.bert.config, rows, pages)?;
        let mut taken = Vec::with_capacity(texts.len());
        for step in steps {
            let texts = &texts[step.texts];
            let packed = Packed::new(texts);
            let states = packed.with_rows(|rows| {
                let forward = || self.bert.forward(&self.ops, rows, &packed.segments, &mut scratch);
                self.ops.run(forward)
            })?;
            let mut rest = states.as_slice();
            for text in texts {
                let (own, after) = rest.split_at(text.tokens.len() * width);
                taken.push(take(own));
                rest = after;
            }
        }
        Ok(taken)
    }
}

/// A pickle's or a safetensors file's tensors, as f32.
struct Named<'a>(&'a VarBuilder<'static>);

impl From<OpsError> for candle_core::Error {
    fn from(error: OpsError) -> candle_core::Error {
        candle_core::Error::wrap(error)
    }
}

impl Tensors for Named<'_> {
    type Error = candle_core::Error;

    fn read(&self, name: &str, shape: &[usize]) -> candle_core::Result<Vec<f32>> {
        self.0.get(shape, name)?.flatten_all()?.to_vec1()
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_tensor(name)
    }
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

/// Linear layers after the states: of a classifier its pooler and its logit.
pub(super) struct Head {
    pub(super) pooler: Linear,
    pub(super) classifier: Linear,
}

/// `[outputs][inputs]`.
pub(super) struct Linear {
    pub(super) weight: Vec<f32>,
    pub(super) bias: Option<Vec<f32>>,
}

/// A BERT, and its classifier where one is asked for.
pub(super) fn load_bert(
    loading: &Loading<'_>,
    config: BertConfig,
    with_head: bool,
) -> Result<(Box<dyn Network>, Option<Head>), EncoderError> {
    let Loading { folder, precision, device } = loading;
    let Device::Cpu(ops) = device else {
        return Err(EncoderError::Device { device: device.describe() });
    };
    let hidden = config.hidden_size;
    let head = match with_head {
        true => Some(folder.weights("", |weights| {
            let linear = |name: &str, outputs: usize| {
                Ok::<_, candle_core::Error>(Linear {
                    weight: Named(&weights).read(&format!("{name}.weight"), &[outputs, hidden])?,
                    bias: Some(Named(&weights).read(&format!("{name}.bias"), &[outputs])?),
                })
            };
            Ok(Head {
                pooler: linear("bert.pooler.dense", hidden)?,
                classifier: linear("classifier", 1)?,
            })
        })?),
        false => None,
    };
    let bert =
        folder.weights("bert", |weights| Bert::load(ops, config, &Named(&weights), *precision))?;
    Ok((Box::new(BertNetwork { ops: ops.clone(), bert }), head))
}
