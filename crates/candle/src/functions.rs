//! What several operations compute with tensors.

use candle_core::{Error, Tensor};
use candle_nn::ops::rms_norm;
use candle_nn::rotary_emb::rope_thd;

use wardround_ops::Activation;

use super::{Buffer, Rope, Vector};

/// `[rows, width]` as heads `[1, rows, heads, head_dim]`, normed where there is a norm.
pub fn headed(x: &Tensor, norm: Option<(&Vector, f32)>, head_dim: usize) -> Result<Tensor, Error> {
    let (rows, width) = x.dims2()?;
    let heads = x.contiguous()?.reshape((1, rows, width / head_dim, head_dim))?;
    match norm {
        Some((norm, epsilon)) => rms_norm(&heads, &norm.0, epsilon),
        None => Ok(heads),
    }
}

/// `[rows, width]` of such heads, whose first pairs turn, as many as there are angles.
pub fn turned(heads: &Tensor, rope: &Rope, positions: &Tensor) -> Result<Tensor, Error> {
    let cosines = rope.cosines.index_select(positions, 0)?;
    let sines = rope.sines.index_select(positions, 0)?;
    let (turned, head_dim) = (2 * cosines.dim(1)?, heads.dim(3)?);
    let first = heads.narrow(3, 0, turned)?.contiguous()?;
    let first = rope_thd(&first, &cosines, &sines)?;
    let whole = match head_dim - turned {
        0 => first,
        rest => Tensor::cat(&[&first, &heads.narrow(3, turned, rest)?], 3)?,
    };
    whole.reshape((heads.dim(1)?, ()))
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
    gated_by(&products.narrow(1, 0, width)?.contiguous()?, activation, products, width)
}

pub fn gated_by(
    gate: &Tensor,
    activation: Activation,
    by: &Tensor,
    first: usize,
) -> Result<Tensor, Error> {
    let opened = match activation {
        Activation::Silu => gate.silu(),
        Activation::GeluTanh => gate.gelu(),
    };
    opened? * by.narrow(1, first, gate.dim(1)?)?.contiguous()?
}

pub fn capped(x: &Buffer, cap: f32) -> Result<Tensor, Error> {
    let cap = f64::from(cap);
    (x.tensor()? / cap)?.tanh()? * cap
}
