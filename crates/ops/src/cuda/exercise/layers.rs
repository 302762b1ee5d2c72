//! What lies between products: embeddings, norms, attention, draws and scores.

use std::sync::Arc;

use super::super::Cuda;
use super::super::stage::Step;
use super::{KEPT, kept_as};
use crate::sampling::{Sampling, SamplingRequest};
use crate::{
    AttentionShape, Backend, Biased, BranchNorms, EncoderBackend, HeadNorms, LayerNorm, LayerPages,
    Numbers, OpsError, PAGE, PageShape, Precision, Rows, StepLimits, StoredType, TextTables,
};

const ROWS: usize = 9;
const EPSILON: f32 = 1e-6;
const NO_PAGES: PageShape = PageShape { layers: 1, kv_heads: 1, head_dim: 32 };
/// Keys of a sequence: on two chunks, and not on whole pages.
const KEYS: usize = 290;
const VOCABULARY: usize = 3000;

impl Cuda {
    /// The same with activations in f32.
    fn wide(&self) -> Result<Cuda, OpsError> {
        self.for_encoder(StoredType::F32.into())
    }

    /// A step of rows that attend to nothing.
    fn step(&self, logit_rows: &[usize], body: impl FnMut(Step)) -> Result<(), OpsError> {
        let limits = StepLimits { rows: ROWS, logit_rows: 16, positions: 64 };
        let mut stage = self.stage(NO_PAGES, 1, limits)?;
        let column = |count: u32| (0..ROWS as u32).map(|row| row * 7 % count).collect::<Vec<_>>();
        let (tokens, positions, segments) = (column(50), column(40), column(2));
        // Texts give no rows of logits.
        let segments = if logit_rows.is_empty() { &*segments } else { &[] };
        let step = Rows {
            tokens: &tokens,
            positions: &positions,
            sequences: &[0; ROWS],
            segments,
            tables: &[&[0, 1]],
        };
        self.compute(step, logit_rows, &mut stage, body);
        self.stream.synchronise()
    }

    pub(super) fn embed_all(&self) -> Result<(), OpsError> {
        for kept in KEPT {
            let words = self.table((50, 544), kept_as(kept))?;
            let mut out = self.buffer(ROWS, 544, Numbers::Wide)?;
            self.step(&[], |step| self.embed(&words, step, 2.0, &mut out))?;
        }
        let gpu = self.wide()?;
        let tables = TextTables {
            words: gpu.table((50, 200), Precision::from(StoredType::F32))?,
            positions: gpu.noisy(64 * 200, 3)?,
            segments: gpu.noisy(2 * 200, 4)?,
        };
        let mut out = gpu.buffer(ROWS, 200, Numbers::Wide)?;
        gpu.step(&[], |step| gpu.embed_text(&tables, step, &mut out))
    }

    pub(super) fn norm_all(&self) -> Result<(), OpsError> {
        for width in [40, 1152] {
            let mut x = self.made_up(ROWS, width, Numbers::Wide)?;
            let branch = self.made_up(ROWS, width, Numbers::Wide)?;
            let [post, next] = [self.noisy(width, 3)?, self.noisy(width, 4)?];
            let mut out = self.buffer(ROWS, width, Numbers::Narrow)?;
            self.rms_norm(&x, &next, EPSILON, &mut out);
            for post in [None, Some(&post)] {
                let norms = BranchNorms { post, next: Some(&next), epsilon: EPSILON };
                self.add_norm(&mut x, &branch, norms, &mut out);
            }
            self.step(&[8, 0, 3], |step| self.gather_norm(&x, step, &next, EPSILON, &mut out))?;
        }
        Ok(())
    }

    pub(super) fn encode_all(&self) -> Result<(), OpsError> {
        for gpu in [self, &self.wide()?] {
            for width in [30, 768] {
                let mut x = gpu.made_up(ROWS, width, Numbers::Wide)?;
                let products = gpu.made_up(ROWS, width, Numbers::Wide)?;
                let mut out = gpu.buffer(ROWS, width, Numbers::Narrow)?;
                let [weight, shift, bias] =
                    [gpu.noisy(width, 4)?, gpu.noisy(width, 5)?, gpu.noisy(width, 6)?];
                let norm = LayerNorm { weight, bias: shift, epsilon: 1e-12 };
                let branch = || Biased { products: &products, bias: &bias };
                gpu.layer_norm(&mut x, &norm, &mut out);
                gpu.add_layer_norm(&mut x, branch(), &norm, &mut out);
                gpu.gelu(branch(), &mut out);
                gpu.add_bias(&mut x, &bias);
            }
            gpu.stream.synchronise()?;
        }
        Ok(())
    }

    /// A prompt and rows that decode, heads of every size; and texts whose rows see ahead.
    pub(super) fn attend_all(&self) -> Result<(), OpsError> {
        for (head_dim, window) in [(16, None), (64, Some(40)), (128, None), (256, Some(300))] {
            self.attend_over(head_dim, window, false)?;
        }
        self.attend_over(64, None, true)?;
        for both_ways in [false, true] {
            self.wide()?.attend_over(64, Some(40), both_ways)?;
        }
        Ok(())
    }

    fn attend_over(
        &self,
        head_dim: usize,
        window: Option<usize>,
        both_ways: bool,
    ) -> Result<(), OpsError> {
        let (heads, kv_heads) = (4, 2);
        let pages_shape = PageShape { layers: 1, kv_heads, head_dim };
        let tables: Vec<u32> = (0..KEYS.div_ceil(PAGE) as u32).rev().collect();
        let limits = StepLimits { rows: KEYS, logit_rows: 1, positions: tables.len() * PAGE };
        let mut stage = self.stage(pages_shape, heads, limits)?;
        let mut pages = self.pages(pages_shape, StoredType::Bf16, tables.len())?;
        let rope = self.rope(&vec![0.3; head_dim / 2], limits.positions)?;
        let norms = HeadNorms {
            query: self.noisy(head_dim, 7)?,
            key: self.noisy(head_dim, 8)?,
            epsilon: EPSILON,
        };
        let shape = AttentionShape { heads, scale: 0.2, window, both_ways };
        let prompt = if both_ways { KEYS } else { KEYS - 1 };
        for rows in [0..prompt, prompt..KEYS].into_iter().filter(|rows| !rows.is_empty()) {
            let width = (heads + 2 * kv_heads) * head_dim;
            let mut qkv = self.made_up(rows.len(), width, Numbers::Wide)?;
            let room = |width| self.buffer(rows.len(), width, Numbers::Narrow);
            let mut queries = room(heads * head_dim.next_multiple_of(32))?;
            let mut out = room(heads * head_dim)?;
            let positions: Vec<u32> = rows.clone().map(|row| row as u32).collect();
            let zeros = vec![0; rows.len()];
            let step = Rows {
                tokens: &zeros,
                positions: &positions,
                sequences: &zeros,
                segments: if both_ways { &zeros } else { &[] },
                tables: &[&tables],
            };
            self.compute(step, &[], &mut stage, |step| {
                let to = LayerPages { pages: &mut pages, layer: 0 };
                self.rotate_and_store(&mut qkv, &mut queries, Some(&norms), &rope, step, to);
                let from = LayerPages { pages: &pages, layer: 0 };
                self.attention(&queries, shape, step, from, &mut out);
            });
            self.stream.synchronise()?;
        }
        Ok(())
    }

    /// Draws with no filter and with all of them, of few rows and of many; and scores.
    pub(super) fn sample_all(&self) -> Result<(), OpsError> {
        let limits = StepLimits { rows: 64, logit_rows: 64, positions: 64 };
        let mut stage = self.stage(NO_PAGES, 1, limits)?;
        let all: Arc<[u32]> = vec![u32::MAX; VOCABULARY.div_ceil(32)].into();
        // What draws is made for as many rows as come first.
        for rows in [64, 3] {
            let mut logits = self.made_up(rows, VOCABULARY, Numbers::Wide)?;
            let requests: Vec<_> = (0..rows).map(|row| Some(request(row, &all))).collect();
            self.draw(&mut logits, &requests, &mut stage)?;
            let wanted: Vec<(u32, usize)> = (0..rows as u32).map(|row| (row * 31, 8)).collect();
            self.score(&logits, 0, &wanted, &mut stage)?;
        }
        Ok(())
    }
}

fn request(row: usize, all: &Arc<[u32]>) -> SamplingRequest {
    let is_filtered = row.is_multiple_of(2);
    SamplingRequest {
        sampling: Sampling {
            temperature: [0.0, 0.7, 1.3][row % 3],
            top_k: is_filtered.then_some(40),
            top_p: is_filtered.then_some(0.9),
            min_p: is_filtered.then_some(0.05),
            repetition_penalty: is_filtered.then_some(1.3),
            ..Sampling::default()
        },
        allowed: all.clone(),
        seen: vec![1, 5, 9],
        added: Vec::new(),
        random: 1 << 60 | row as u64,
        logprobs: row.is_multiple_of(4).then_some(5),
    }
}
