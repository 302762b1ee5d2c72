//! Weights in the order that a warp reads them: tiles of 16 outputs × 32 inputs, a lane's share side by side. Those that are
//! kept as f32 lie output by output.
//!
//! A tile is two steps of sixteen inputs. Lane 4·g + q has outputs g and g + 8, and of each step the inputs 2q,
//! 2q + 1, 2q + 8 and 2q + 9, as the tensor cores' first operand lies in registers.

use half::bf16;

use super::matrix::Format;
use crate::checkpoint::RawRow;
use crate::shared::Isa;
use crate::shared::rounding::{q4_k, q8_0};

/// Outputs and inputs of a tile.
pub const OUTPUTS: usize = 16;
pub const INPUTS: usize = 32;
/// Weights of a tile, which is a block of each output.
const BLOCK: usize = OUTPUTS * INPUTS;

/// Bytes of one group of sixteen outputs, by array.
#[derive(Clone, Copy, Debug)]
pub struct GroupBytes {
    pub values: usize,
    pub scales: usize,
    pub units: usize,
}

impl GroupBytes {
    /// For `k_tiles` tiles of inputs.
    pub fn of(format: Format, k_tiles: usize) -> GroupBytes {
        let (values, scales, units) = match format {
            Format::Bf16 => (1024, 0, 0),
            Format::Q8_0 => (512, 2 * OUTPUTS, 0),
            Format::Q4K => (256, 2 * OUTPUTS, 4 * OUTPUTS),
            Format::F32 => (2048, 0, 0),
        };
        GroupBytes {
            values: k_tiles * values,
            scales: k_tiles * scales,
            units: k_tiles.div_ceil(8) * units,
        }
    }

    pub fn total(self) -> usize {
        self.values + self.scales + self.units
    }
}

/// Where the arrays of a group lie; those that a format has no use for are empty.
#[derive(Debug)]
pub struct Group<'a> {
    pub values: &'a mut [u8],
    pub scales: &'a mut [u8],
    pub units: &'a mut [u8],
}

/// What one thread needs to pack groups, kept from one to the next: threads that ask the system for memory at each of a model's hundred
/// thousand groups wait for one another.
#[derive(Debug, Default)]
pub struct Packer {
    row: Vec<f32>,
    /// `[inputs, up to whole tiles][16 outputs]`.
    weights: Vec<[f32; OUTPUTS]>,
    quantised: Vec<u8>,
    halves: Vec<u16>,
}

impl Packer {
    /// Packs sixteen outputs; zeros for those that are not there.
    pub fn pack(
        &mut self,
        rows: &[Option<RawRow<'_>>; OUTPUTS],
        inputs: usize,
        format: Format,
        group: Group<'_>,
    ) {
        self.transpose(rows, inputs);
        let blocks = self.weights.len() / INPUTS;
        match format {
            Format::Bf16 => pack_bf16(&self.weights, group.values),
            Format::F32 => pack_f32(&self.weights, group.values),
            Format::Q8_0 => {
                self.quantised.resize(blocks * BLOCK, 0);
                self.halves.resize(blocks * OUTPUTS, 0);
                q8_0::quantise(Isa::detect(), &self.weights, &mut self.quantised, &mut self.halves);
                pack_q8_0(&self.quantised, group.values);
                put_halves(&self.halves, group.scales);
            }
            Format::Q4K => {
                self.quantised.clear(); // of a byte's two halves the second is added to the first
                self.quantised.resize(blocks * BLOCK / 2, 0);
                self.halves.resize(blocks.div_ceil(q4_k::TOGETHER) * 2 * OUTPUTS, 0);
                let (values, units) = (&mut self.quantised, &mut self.halves);
                q4_k::quantise(Isa::detect(), &self.weights, values, group.scales, units);
                pack_q4_k(values, group.values);
                put_halves(units, group.units);
            }
        }
    }

    fn transpose(&mut self, rows: &[Option<RawRow<'_>>; OUTPUTS], inputs: usize) {
        self.weights.clear();
        self.weights.resize(inputs.next_multiple_of(INPUTS), [0.0; OUTPUTS]);
        self.row.resize(inputs, 0.0);
        for (output, row) in rows.iter().enumerate() {
            let Some(row) = row else { continue };
            row.read(&mut self.row);
            for (weights, &value) in self.weights.iter_mut().zip(&self.row) {
                weights[output] = value;
            }
        }
    }
}

/// (step, g, q) in the order that lanes lie in.
fn shares() -> impl Iterator<Item = (usize, usize, usize)> {
    (0..64).map(|index| (index / 32, index / 4 % 8, index % 4))
}

/// A lane's four inputs of a step, by their place in the tile.
fn inputs_of(step: usize, q: usize) -> [usize; 4] {
    [0, 1, 8, 9].map(|input| step * 16 + q * 2 + input)
}

/// `[half][lane]` (output g, inputs 0, 1), (g + 8, 0, 1), (g, 2, 3), (g + 8, 2, 3) of the lane's four.
fn pack_bf16(weights: &[[f32; OUTPUTS]], packed: &mut [u8]) {
    let tiles = packed.as_chunks_mut::<16>().0.chunks_exact_mut(64);
    for (tile, packed) in weights.chunks_exact(INPUTS).zip(tiles) {
        for ((step, g, q), share) in shares().zip(packed) {
            let [a, b, c, d] = inputs_of(step, q);
            let numbers =
                [(a, g), (b, g), (a, g + 8), (b, g + 8), (c, g), (d, g), (c, g + 8), (d, g + 8)];
            for ((input, output), bytes) in numbers.into_iter().zip(share.as_chunks_mut().0) {
                *bytes = bf16::from_f32(tile[input][output]).to_le_bytes();
            }
        }
    }
}

/// `[16 outputs][inputs]`.
fn pack_f32(weights: &[[f32; OUTPUTS]], packed: &mut [u8]) {
    let outputs = packed.as_chunks_mut::<4>().0.chunks_exact_mut(weights.len());
    for (output, packed) in outputs.enumerate() {
        for (input, bytes) in weights.iter().zip(packed) {
            *bytes = input[output].to_le_bytes();
        }
    }
}

/// `[half][lane]` the lane's four inputs of output g, then of g + 8.
fn pack_q8_0(quantised: &[u8], packed: &mut [u8]) {
    let tiles = packed.as_chunks_mut::<8>().0.chunks_exact_mut(64);
    for (block, packed) in quantised.chunks_exact(BLOCK).zip(tiles) {
        for ((step, g, q), share) in shares().zip(packed) {
            let inputs = inputs_of(step, q);
            let of = |output: usize| inputs.map(|input| block[q8_0::place(output, input)] ^ 0x80);
            share[..4].copy_from_slice(&of(g));
            share[4..].copy_from_slice(&of(g + 8));
        }
    }
}

/// As [`pack_q8_0`], two inputs a byte, the lower one below.
fn pack_q4_k(quantised: &[u8], packed: &mut [u8]) {
    let tiles = packed.as_chunks_mut::<4>().0.chunks_exact_mut(64);
    for (block, packed) in quantised.chunks_exact(BLOCK / 2).zip(tiles) {
        for ((step, g, q), share) in shares().zip(packed) {
            let of = |output: usize| {
                let [a, b, c, d] = inputs_of(step, q).map(|input| {
                    let (place, shift) = q4_k::place(output, input);
                    block[place] >> shift & 15
                });
                [a | b << 4, c | d << 4]
            };
            share[..2].copy_from_slice(&of(g));
            share[2..].copy_from_slice(&of(g + 8));
        }
    }
}

fn put_halves(numbers: &[u16], packed: &mut [u8]) {
    for (number, bytes) in numbers.iter().zip(packed.as_chunks_mut().0) {
        *bytes = number.to_le_bytes();
    }
}
