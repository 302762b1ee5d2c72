//! A decoder's arithmetic over the rows of one step: matmul, norms, rotary, attention, behind one seam.
//!
//! A row is one position of one sequence. Every operation is a pure function of the row's own input, its
//! position and the keys and values before it: never of the rows beside it, the number of threads, or the
//! width of a vector register. That is what makes a batch of sixteen give the bytes of a batch of one.
//!
//! A backend is a module with the same types and methods; the decoder is written once against them.

#![allow(
    unsafe_code,
    reason = "the one module that may: registers, mapped files, disjoint writes"
)]

pub mod checkpoint;
pub mod cpu;

pub use cpu::{
    AttentionShape, Buffer, Cpu as Ops, HeadNorms, KvPages, Limits, Matrix, Rope, Vector,
};

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quantisation {
    #[default]
    None,
    /// 32 weights in bytes under one scale: 8.5 bits a weight.
    Q8_0,
    /// Halves of bytes in blocks of 32, eight of them under two scales: 4.6 bits a weight.
    Q4K,
}

impl Quantisation {
    pub const ALL: [Quantisation; 3] = [Quantisation::None, Quantisation::Q8_0, Quantisation::Q4K];

    pub fn name(self) -> &'static str {
        match self {
            Quantisation::None => "none",
            Quantisation::Q8_0 => "q8_0",
            Quantisation::Q4K => "q4_k",
        }
    }
}

impl std::fmt::Display for Quantisation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// How a model's matrices are kept: as numbers of a type, or in blocks made from the checkpoint's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precision {
    pub stored: StoredType,
    pub quantisation: Quantisation,
}

impl Precision {
    /// Bytes of `weights` weights.
    pub fn size_bytes(self, weights: usize) -> usize {
        match self.quantisation {
            Quantisation::None => weights * self.stored.size_bytes(),
            Quantisation::Q8_0 => weights / 16 * 17,
            // Per eight blocks of 32: 128 bytes of values, 16 of scales and minima, 4 of units.
            Quantisation::Q4K => weights / 64 * 37,
        }
    }
}

impl From<StoredType> for Precision {
    fn from(stored: StoredType) -> Precision {
        Precision {
            stored,
            quantisation: Quantisation::None,
        }
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

/// The rows of one step. All slices but `tables` have one entry a row.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    pub tokens: &'a [u32],
    /// Absolute positions in their sequences.
    pub positions: &'a [u32],
    /// Index into `tables`.
    pub sequences: &'a [u32],
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
}
