//! Weights in the order that a warp reads them: tiles of 16 outputs × 32 inputs, a lane's share side by side.
//!
//! Lane 4·g + q of a tile has outputs g and g + 8, inputs 8q to 8q + 7: two steps of m16n8k16, each with four
//! inputs of both outputs. The tensor cores' own order of inputs is permuted so, in weights and activations alike.

use half::bf16;

use super::matrix::Format;
use crate::ops::checkpoint::RawTensor;
use crate::ops::cpu::groups::{Q4Group, Q8Group};

/// Outputs and inputs of a tile.
pub const OUTPUTS: usize = 16;
pub const INPUTS: usize = 32;

/// One output's weights, where they still lie in their file.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub part: &'a RawTensor<'a>,
    pub row: usize,
}

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
        };
        GroupBytes {
            values: k_tiles * values,
            scales: k_tiles * scales,
            units: k_tiles.div_ceil(8) * units,
        }
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
    pub fn pack(rows: &[Option<Row<'_>>; OUTPUTS], inputs: usize, format: Format) -> Group {
        let weights = transpose(rows, inputs);
        match format {
            Format::Bf16 => Group {
                values: pack_bf16(&weights),
                ..Group::default()
            },
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
fn transpose(rows: &[Option<Row<'_>>; OUTPUTS], inputs: usize) -> Vec<[f32; OUTPUTS]> {
    let mut weights = vec![[0.0; OUTPUTS]; inputs.next_multiple_of(INPUTS)];
    let mut values = vec![0.0; inputs];
    for (output, row) in rows.iter().enumerate() {
        let Some(row) = row else { continue };
        row.part.read_row(row.row, &mut values);
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

/// `[half][lane]` (output g, inputs 0, 1), (g + 8, 0, 1), (g, 2, 3), (g + 8, 2, 3) of the step's four.
fn pack_bf16(weights: &[[f32; OUTPUTS]]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(weights.len() * OUTPUTS * 2);
    for tile in weights.chunks_exact(INPUTS) {
        for (step, g, q) in shares() {
            let first = q * 8 + step * 4;
            for (output, input) in [
                (g, first),
                (g + 8, first),
                (g, first + 2),
                (g + 8, first + 2),
            ] {
                for weight in [tile[input][output], tile[input + 1][output]] {
                    packed.extend(bf16::from_f32(weight).to_le_bytes());
                }
            }
        }
    }
    packed
}

/// `[half][lane]` the step's four inputs of output g, then of g + 8.
fn pack_q8_0(tile: &[[i8; OUTPUTS]; INPUTS]) -> Vec<u8> {
    let share = |(step, g, q)| {
        let inputs = &tile[q * 8 + step * 4..][..4];
        let of = move |output: usize| {
            inputs
                .iter()
                .map(move |input| input[output].cast_unsigned())
        };
        of(g).chain(of(g + 8))
    };
    shares().flat_map(share).collect()
}

/// As [`pack_q8_0`], two inputs a byte, the lower one below.
fn pack_q4_k(tile: &[[u8; OUTPUTS]; INPUTS]) -> Vec<u8> {
    let share = |(step, g, q)| {
        let inputs = tile[q * 8 + step * 4..][..4].as_chunks::<2>().0;
        let of = move |output: usize| {
            let pairs = inputs.iter();
            pairs.map(move |[low, high]| low[output] | high[output] << 4)
        };
        of(g).chain(of(g + 8))
    };
    shares().flat_map(share).collect()
}

fn bytes(numbers: &[u16]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}
