//! A decoder's arithmetic over the rows of one step: matmul, norms, rotary, attention, behind one seam.
//!
//! A row is one position of one sequence. Every operation is a pure function of the row's own input, its position and
//! the keys and values before it: never of the rows beside it or the number of threads. That is what makes a batch of
//! sixteen give the bytes of a batch of one. (Not on Metal, which is a crate beside this one: see there.)
//!
//! A backend implements [`Backend`]; the decoder is written once against it.

#![allow(unsafe_code, reason = "the one module that may: registers, mapped files, disjoint writes")]

#[cfg(not(any(feature = "cuda", feature = "cuda-emulated")))]
mod absent;
mod backend;
pub mod checkpoint;
pub mod cpu;
#[cfg(any(feature = "cuda", feature = "cuda-emulated"))]
pub mod cuda;
mod cuda_memory;
pub mod diagnosis; // what every error says, and whom it blames
mod encoder_backend;
mod error;
pub mod mapped;
pub mod metal_memory;
pub mod regular_file; // how files are opened
pub mod sampling;
pub mod variable; // environment variables that are on or off
pub mod vectors;

use serde::{Deserialize, Serialize};

#[cfg(not(any(feature = "cuda", feature = "cuda-emulated")))]
use absent as cuda;
pub use backend::{Backend, HostStep, Numbers};
pub use cpu::{AttentionShape, Cpu, Limits};
pub use cuda::Cuda;
pub use encoder_backend::{Biased, EncoderBackend, LayerNorm, TextTables};
pub use error::OpsError;

/// The suffix of a device's kind under `--fast`: a row's bits may then depend on the rows beside it.
pub const FAST: &str = " fast";

/// The most that a step may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepLimits {
    pub rows: usize,
    /// Of the rows, those that give logits.
    pub logit_rows: usize,
    /// Positions of a sequence.
    pub positions: usize,
}

/// The pages of one layer: `P` is a shared or an exclusive reference to a pool of pages.
#[derive(Clone, Copy, Debug)]
pub struct LayerPages<P> {
    pub pages: P,
    pub layer: usize,
}

/// The norms around the addition of a branch to the residual.
#[derive(Clone, Copy, Debug)]
pub struct BranchNorms<'a, V> {
    /// Of the branch before it is added, where the family has one.
    pub post: Option<&'a V>,
    /// Of the sum, for whatever comes next.
    pub next: Option<&'a V>,
    pub epsilon: f32,
}

/// Norms over each head of queries and keys, `[head_dim]` each.
#[derive(Debug)]
pub struct HeadNorms<V> {
    pub query: V,
    pub key: V,
    pub epsilon: f32,
}

/// Cosines and sines `[positions][head_dim / 2]` of the angles `position · inverse_frequency`, which are f32 as the
/// models were trained with.
pub fn angles(inverse_frequencies: &[f32], positions: usize) -> (Vec<f32>, Vec<f32>) {
    let angles = (0..positions).flat_map(|position| {
        let frequencies = inverse_frequencies.iter();
        frequencies.map(move |frequency| f64::from(position as f32 * frequency))
    });
    angles.map(|angle| (libm::cos(angle) as f32, libm::sin(angle) as f32)).unzip()
}

/// The kinds of machines that a model can run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    Cpu,
    Cuda,
    Metal,
}

impl std::fmt::Display for Machine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Machine::Cpu => "cpu",
            Machine::Cuda => "cuda",
            Machine::Metal => "metal",
        })
    }
}

impl Machine {
    /// Bytes of one page of keys and values, over all layers. The CPU keeps them as `kept`, CUDA as bf16, Metal as f32.
    pub fn page_bytes(self, shape: PageShape, kept: StoredType) -> usize {
        match self {
            Machine::Cpu => cpu::KvPages::page_bytes(shape, kept),
            Machine::Cuda => cuda_memory::page_bytes(shape),
            Machine::Metal => metal_memory::page_bytes(shape),
        }
    }

    /// Rows of prompts that are worth computing in one step: enough to fill the machine, few enough that others who
    /// decode do not wait long.
    pub fn prefill_rows(self) -> usize {
        match self {
            Machine::Cpu | Machine::Metal => 512,
            Machine::Cuda => 2048,
        }
    }

    /// Rows of known tokens whose logits are worth computing in one step, for their log-probabilities.
    pub fn known_logit_rows(self) -> usize {
        match self {
            Machine::Cpu | Machine::Metal => 64,
            Machine::Cuda => 256,
        }
    }

    /// Bytes of activations.
    pub fn buffer_bytes(self, rows: usize, width: usize, numbers: Numbers) -> usize {
        match self {
            Machine::Cpu => size_of::<f32>() * rows * width,
            Machine::Cuda => cuda_memory::buffer_bytes(rows, width, numbers),
            Machine::Metal => metal_memory::buffer_bytes(rows, width),
        }
    }

    /// Bytes of what a step passes through beside its activations.
    pub fn stage_bytes(self, shape: PageShape, heads: usize, limits: StepLimits) -> usize {
        let StepLimits { rows, positions, .. } = limits;
        match self {
            Machine::Cpu => 0,
            Machine::Cuda => cuda_memory::partial_bytes(shape, heads, limits).iter().sum(),
            Machine::Metal => metal_memory::attention_bytes(shape, heads, rows, positions),
        }
    }
}

/// What a page holds, over all layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageShape {
    pub layers: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
}

/// Positions per page of keys and values. It divides [`CHUNK`], so that a page never straddles two chunks.
pub const PAGE: usize = 32;

/// Keys per attention chunk, anchored at absolute positions: each chunk has a softmax of its own, and the
/// chunks merge in ascending order, so that a split of the work never shows in the bits.
pub const CHUNK: usize = 256;

/// The type that weights are kept as. Arithmetic is f32 in either case; widening bf16 is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredType {
    F32,
    Bf16,
}

impl StoredType {
    pub fn size_bytes(self) -> usize {
        match self {
            StoredType::F32 => 4,
            StoredType::Bf16 => 2,
        }
    }

    /// `value` as this type would hold it.
    pub fn round(self, value: f32) -> f32 {
        match self {
            StoredType::F32 => value,
            StoredType::Bf16 => half::bf16::from_f32(value).to_f32(),
        }
    }
}

impl std::fmt::Display for StoredType {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            StoredType::F32 => "f32",
            StoredType::Bf16 => "bf16",
        })
    }
}

/// How matrices are rounded to blocks of weights when they are loaded; norms never are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantisation {
    #[default]
    None,
    /// 32 weights in bytes under one scale: 8.5 bits a weight.
    Q8_0,
    /// Bytes under one scale a row: 8 bits a weight; activations share a scale by 128.
    Int8,
    /// Halves of bytes in blocks of 32, eight of them under two scales: 4.6 bits a weight, but for a few matrices.
    Q4K,
}

impl Quantisation {
    pub const ALL: [Quantisation; 4] =
        [Quantisation::None, Quantisation::Q8_0, Quantisation::Int8, Quantisation::Q4K];

    pub fn is_none(&self) -> bool {
        *self == Quantisation::None
    }

    pub fn name(self) -> &'static str {
        match self {
            Quantisation::None => "none",
            Quantisation::Q8_0 => "q8_0",
            Quantisation::Int8 => "int8",
            Quantisation::Q4K => "q4_k",
        }
    }
}

impl std::str::FromStr for Quantisation {
    type Err = OpsError;

    fn from_str(text: &str) -> Result<Quantisation, OpsError> {
        Quantisation::ALL
            .into_iter()
            .find(|quantisation| quantisation.name() == text)
            .ok_or_else(|| OpsError::QuantisationName(text.to_owned()))
    }
}

impl std::fmt::Display for Quantisation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// How a model's numbers are kept: its matrices as numbers of a type, or in blocks made from the checkpoint's numbers; its keys and
/// values as numbers of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precision {
    pub stored: StoredType,
    pub quantisation: Quantisation,
    pub kv: StoredType,
}

impl Precision {
    /// Whether matrices are f32.
    pub fn is_f32(self) -> bool {
        (self.stored, self.quantisation) == (StoredType::F32, Quantisation::None)
    }

    pub fn size_bytes(self, weights: usize) -> usize {
        match self.quantisation {
            Quantisation::None => weights * self.stored.size_bytes(),
            Quantisation::Q8_0 => weights / 16 * 17,
            // Beside them four bytes a row.
            Quantisation::Int8 => weights / 64 * 65,
            // Per eight blocks of 32: 128 bytes of values, 16 of scales and minima, 4 of units.
            Quantisation::Q4K => weights / 64 * 37,
        }
    }

    /// How a decoder's token table and head are kept: they lose most by few bits, so that under q4_k they have eight.
    pub fn of_tables(self) -> Precision {
        match self.quantisation {
            Quantisation::Q4K => Precision { quantisation: Quantisation::Q8_0, ..self },
            Quantisation::None | Quantisation::Q8_0 | Quantisation::Int8 => self,
        }
    }

    /// How a decoder's matrix of so many inputs is kept. Where they end within a group of 256, q4_k becomes q8_0: models with such
    /// widths are small, and lose most. Rows of less than one group, which no published model has, stay.
    pub fn of_layer(self, inputs: usize) -> Precision {
        if inputs > 256 && !inputs.is_multiple_of(256) { self.of_tables() } else { self }
    }

    /// How layer `layer`'s down projection is kept. Those of the first and last eighth of the layers lose most by few bits, so that
    /// under q4_k they have eight.
    pub fn of_down(self, inputs: usize, layer: usize, layers: usize) -> Precision {
        let end = layers / 8;
        if layer < end || layer + end >= layers { self.of_tables() } else { self.of_layer(inputs) }
    }
}

impl From<StoredType> for Precision {
    fn from(stored: StoredType) -> Precision {
        Precision { stored, quantisation: Quantisation::None, kv: stored }
    }
}

/// What multiplies the up projection in a gated feed-forward layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `x · sigmoid(x)`.
    Silu,
    /// The tanh approximation of GELU, `x · sigmoid(2·√(2/π)·(x + 0.044715·x³))`.
    GeluTanh,
}

/// The rows of one step. All slices but `tables` have one entry a row, `segments` none but for steps of whole texts.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    pub tokens: &'a [u32],
    /// Absolute positions in their sequences.
    pub positions: &'a [u32],
    /// Index into `tables`.
    pub sequences: &'a [u32],
    /// Which text of a pair each token of an encoder's is of.
    pub segments: &'a [u32],
    /// The pages of each sequence, in order; page `i` holds positions `i · PAGE ..`.
    pub tables: &'a [&'a [u32]],
}

impl Rows<'_> {
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Of each sequence: the position after its last row here.
    pub fn lengths(&self) -> Vec<usize> {
        let mut lengths = vec![0; self.tables.len()];
        for (&sequence, &position) in self.sequences.iter().zip(self.positions) {
            let length = &mut lengths[sequence as usize];
            *length = (*length).max(position as usize + 1);
        }
        lengths
    }
}
