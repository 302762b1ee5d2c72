//! A linear layer's weights, repacked so that one lane owns one output column.

use std::io;

use rayon::prelude::*;

use super::Isa;
use super::kept::Kept;
use super::lanes::LANES;
use super::quantised::{self, BLOCK, Int8, Q4K, Q8_0};
use super::slab::Slab;
use crate::checkpoint::{RawRow, RawTensor};
use crate::shared::rounding::{q4_k, q8_0};
use crate::{Precision, Quantisation, StoredType};

/// Weights of shape `[outputs, inputs]`, in tiles of sixteen outputs; the last tile is padded with zeros.
#[derive(Debug)]
pub struct Matrix {
    pub(super) outputs: usize,
    pub(super) inputs: usize,
    pub(super) tiles: Tiles,
}

#[derive(Debug)]
pub(super) enum Tiles {
    /// `[outputs / 16][inputs][16]`.
    F32(Slab<f32>),
    /// `[outputs / 16][inputs / 2][16][2]`, bf16 bits; the inputs padded to a multiple of 32.
    Bf16(Slab<u16>),
    Q8_0(Q8_0),
    Int8(Int8),
    Q4K(Q4K),
}

impl Matrix {
    /// Packs the rows of `parts` one after another; each part is row-major `[n, inputs]`.
    pub fn pack(
        parts: &[RawTensor<'_>],
        inputs: usize,
        precision: Precision,
    ) -> io::Result<Matrix> {
        let rows = RawRow::all(parts, inputs);
        let tiles = match (precision.quantisation, precision.stored) {
            (Quantisation::None, StoredType::F32) => Tiles::F32(interleave(&rows, inputs)?),
            (Quantisation::None, StoredType::Bf16) => Tiles::Bf16(interleave(&rows, inputs)?),
            (Quantisation::Q8_0, _) => Tiles::Q8_0(quantise_q8_0(&rows, inputs)?),
            (Quantisation::Int8, _) => Tiles::Int8(quantise_int8(&rows, inputs)?),
            (Quantisation::Q4K, _) => Tiles::Q4K(quantise_q4_k(&rows, inputs)?),
        };
        Ok(Matrix { outputs: rows.len(), inputs, tiles })
    }

    /// The weight `k` of output `n`.
    pub(super) fn weight(&self, n: usize, k: usize) -> f32 {
        let (tile, lane) = (n / LANES, n % LANES);
        let blocks = self.inputs.div_ceil(BLOCK);
        match &self.tiles {
            Tiles::F32(tiles) => tiles[(tile * self.inputs + k) * LANES + lane],
            Tiles::Bf16(tiles) => {
                let pair = tile * self.inputs.next_multiple_of(32) / 2 + k / 2;
                let bits = tiles[(pair * LANES + lane) * 2 + k % 2];
                f32::from_bits(u32::from(bits) << 16)
            }
            Tiles::Q8_0(tiles) => tiles.weight(tile * blocks + k / BLOCK, lane, k % BLOCK),
            Tiles::Int8(tiles) => tiles.weight(tile, blocks, lane, k),
            Tiles::Q4K(tiles) => tiles.weight(tile, blocks, lane, k),
        }
    }
}

/// Tiles of sixteen rows side by side, a column's weights of [`Kept::TOGETHER`] inputs next to each other; zeros fill the
/// inputs up to a multiple.
fn interleave<T: Kept>(rows: &[RawRow<'_>], inputs: usize) -> io::Result<Slab<T>> {
    let size = LANES * inputs.next_multiple_of(T::MULTIPLE);
    let mut tiles = Slab::zeroed(rows.len().div_ceil(LANES) * size)?;
    tiles.par_chunks_mut(size).zip(rows.par_chunks(LANES)).for_each(|(tile, rows)| {
        let mut values = vec![0.0; inputs];
        for (lane, row) in rows.iter().enumerate() {
            row.read(&mut values);
            for (k, &value) in values.iter().enumerate() {
                let group = k / T::TOGETHER * LANES + lane;
                tile[group * T::TOGETHER + k % T::TOGETHER] = T::keep(value);
            }
        }
    });
    Ok(tiles)
}

fn quantise_q8_0(rows: &[RawRow<'_>], inputs: usize) -> io::Result<Q8_0> {
    let blocks = inputs.div_ceil(BLOCK);
    let mut tiles = Q8_0::zeroed(rows.len().div_ceil(LANES) * blocks)?;
    let values = tiles.values.par_chunks_mut(blocks * BLOCK * LANES);
    let places = values.zip(tiles.scales.par_chunks_mut(blocks * LANES));
    by_tile(rows, inputs, places, |isa, weights, (values, scales)| {
        q8_0::quantise(isa, weights, values, scales);
    });
    Ok(tiles)
}

fn quantise_int8(rows: &[RawRow<'_>], inputs: usize) -> io::Result<Int8> {
    let blocks = inputs.div_ceil(BLOCK);
    let mut tiles = Int8::zeroed(rows.len().div_ceil(LANES), blocks)?;
    let values = tiles.values.par_chunks_mut(blocks * BLOCK * LANES);
    let places = values.zip(tiles.scales.as_chunks_mut().0.par_iter_mut());
    by_tile(rows, inputs, places, |isa, weights, (values, scales)| {
        quantised::int8::quantise(isa, weights, values, scales);
    });
    Ok(tiles)
}

fn quantise_q4_k(rows: &[RawRow<'_>], inputs: usize) -> io::Result<Q4K> {
    let blocks = inputs.div_ceil(BLOCK);
    let mut tiles = Q4K::zeroed(rows.len().div_ceil(LANES), blocks)?;
    let values = tiles.values.par_chunks_mut(blocks * BLOCK * LANES / 2);
    let scales = tiles.scales.par_chunks_mut(blocks * 2 * LANES);
    let units = tiles.units.par_chunks_mut(blocks.div_ceil(q4_k::TOGETHER) * 2 * LANES);
    by_tile(
        rows,
        inputs,
        values.zip(scales).zip(units),
        |isa, weights, ((values, scales), units)| {
            q4_k::quantise(isa, weights, values, scales, units);
        },
    );
    Ok(tiles)
}

/// Has `round` round each sixteen rows to the place of their tile.
fn by_tile<T: Send>(
    rows: &[RawRow<'_>],
    inputs: usize,
    places: impl IndexedParallelIterator<Item = T>,
    round: impl Fn(Isa, &[[f32; LANES]], T) + Sync,
) {
    let isa = Isa::detect();
    let tiles = places.zip(rows.par_chunks(LANES));
    tiles.for_each(|(place, rows)| round(isa, &transpose(rows, inputs), place));
}

/// Sixteen rows side by side, `[inputs, up to whole blocks][16]`, zeros where there is none.
fn transpose(rows: &[RawRow<'_>], inputs: usize) -> Vec<[f32; LANES]> {
    let mut tile = vec![[0.0; LANES]; inputs.next_multiple_of(BLOCK)];
    let mut values = vec![0.0; inputs];
    for (lane, row) in rows.iter().enumerate() {
        row.read(&mut values);
        for (column, &value) in tile.iter_mut().zip(&values) {
            column[lane] = value;
        }
    }
    tile
}
