//! Weights in the order that a warp reads them: tiles of 16 outputs × 32 inputs, a lane's share side by side. Those that are
//! kept as f32 lie output by output.
//!
//! A tile is two steps of sixteen inputs. Lane 4·g + q has outputs g and g + 8, and of each step the inputs 2q,
//! 2q + 1, 2q + 8 and 2q + 9, as the tensor cores' first operand lies in registers.

use half::bf16;

use super::matrix::Format;
use crate::checkpoint::RawRow;
use crate::cpu::groups::{Q4Group, Q8Group};

/// Outputs and inputs of a tile.
pub const OUTPUTS: usize = 16;
pub const INPUTS: usize = 32;

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

/// The group's arrays.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub values: Vec<u8>,
    pub scales: Vec<u8>,
    pub units: Vec<u8>,
}

impl Group {
    /// Packs sixteen outputs; zeros for those that are not there.
    pub fn pack(rows: &[Option<RawRow<'_>>; OUTPUTS], inputs: usize, format: Format) -> Group {
        let weights = transpose(rows, inputs);
        match format {
            Format::Bf16 => Group { values: pack_bf16(&weights), ..Group::default() },
            Format::F32 => Group { values: pack_f32(&weights), ..Group::default() },
            Format::Q8_0 => {
                let group = Q8Group::quantise(&weights);
                Group {
                    values: group.values.iter().flat_map(pack_q8_0).collect(),
                    scales: bytes(&group.scales),
                    units: Vec::new(),
                }
            }
            Format::Q4K => {
                let group = Q4Group::quantise(&weights);
                Group {
                    values: group.values.iter().flat_map(pack_q4_k).collect(),
                    scales: group.scales,
                    units: bytes(&group.units),
                }
            }
        }
    }
}

/// `[inputs, up to whole tiles][16 outputs]`.
fn transpose(rows: &[Option<RawRow<'_>>; OUTPUTS], inputs: usize) -> Vec<[f32; OUTPUTS]> {
    let mut weights = vec![[0.0; OUTPUTS]; inputs.next_multiple_of(INPUTS)];
    let mut values = vec![0.0; inputs];
    for (output, row) in rows.iter().enumerate() {
        let Some(row) = row else { continue };
        row.read(&mut values);
        for (weights, &value) in weights.iter_mut().zip(&values) {
            weights[output] = value;
        }
    }
    weights
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
fn pack_bf16(weights: &[[f32; OUTPUTS]]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(weights.len() * OUTPUTS * 2);
    for tile in weights.chunks_exact(INPUTS) {
        for (step, g, q) in shares() {
            for inputs in inputs_of(step, q).as_chunks::<2>().0 {
                for output in [g, g + 8] {
                    let weights = inputs.map(|input| bf16::from_f32(tile[input][output]));
                    packed.extend(weights.map(bf16::to_le_bytes).as_flattened());
                }
            }
        }
    }
    packed
}

/// `[16 outputs][inputs]`.
fn pack_f32(weights: &[[f32; OUTPUTS]]) -> Vec<u8> {
    let of = |output: usize| weights.iter().flat_map(move |input| input[output].to_le_bytes());
    (0..OUTPUTS).flat_map(of).collect()
}

/// `[half][lane]` the lane's four inputs of output g, then of g + 8.
fn pack_q8_0(tile: &[[i8; OUTPUTS]; INPUTS]) -> Vec<u8> {
    let share = |(step, g, q)| {
        let of = move |output: usize| {
            inputs_of(step, q).map(|input| tile[input][output].cast_unsigned())
        };
        of(g).into_iter().chain(of(g + 8))
    };
    shares().flat_map(share).collect()
}

/// As [`pack_q8_0`], two inputs a byte, the lower one below.
fn pack_q4_k(tile: &[[u8; OUTPUTS]; INPUTS]) -> Vec<u8> {
    let share = |(step, g, q)| {
        let of = move |output: usize| {
            let [a, b, c, d] = inputs_of(step, q).map(|input| tile[input][output]);
            [a | b << 4, c | d << 4]
        };
        of(g).into_iter().chain(of(g + 8))
    };
    shares().flat_map(share).collect()
}

fn bytes(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
