//! What several operations compute with tensors.

use candle_core::{Error, Tensor};
use candle_nn::rotary_emb::rope_thd;

use wardround_ops::Activation;

use super::{Buffer, Rope};

/// Heads `[1, rows, heads, head_dim]`, whose first pairs turn, as many as there are angles.
pub fn rotated(heads: &Tensor, cosines: &Tensor, sines: &Tensor) -> Result<Tensor, Error> {
    let (turned, head_dim) = (2 * cosines.dim(1)?, heads.dim(3)?);
    if turned == head_dim {
        return rope_thd(heads, cosines, sines);
    }
    let first = heads.narrow(3, 0, turned)?.contiguous()?;
    let rest = heads.narrow(3, turned, head_dim - turned)?;
    Tensor::cat(&[&rope_thd(&first, cosines, sines)?, &rest], 3)
}

/// Turned queries, times what those of their positions grow by.
pub fn grown(queries: Tensor, rope: &Rope, positions: &Tensor) -> Result<Tensor, Error> {
    match &rope.growth {
        Some(growth) => queries.broadcast_mul(&growth.index_select(positions, 0)?),
        None => Ok(queries),
    }
}

pub fn gated(products: &Buffer, activation: Activation) -> Result<Tensor, Error> {
    let products = products.tensor()?;
    let width = products.dim(1)? / 2;
    let gate = products.narrow(1, 0, width)?.contiguous()?;
    opened(&gate, activation)? * products.narrow(1, width, width)?.contiguous()?
}

fn opened(gate: &Tensor, activation: Activation) -> Result<Tensor, Error> {
    match activation {
        Activation::Silu => gate.silu(),
        Activation::GeluTanh => gate.gelu(),
    }
}

pub fn gated_by(
    gate: &Buffer,
    activation: Activation,
    by: &Buffer,
    first: usize,
) -> Result<Tensor, Error> {
    let gate = opened(gate.tensor()?, activation)?;
    let by = by.tensor()?.narrow(1, first, gate.dim(1)?)?.contiguous()?;
    gate * by
}

pub fn capped(x: &Buffer, cap: f32) -> Result<Tensor, Error> {
    let cap = f64::from(cap);
    (x.tensor()? / cap)?.tanh()? * cap
}
