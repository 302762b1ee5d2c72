//! A linear layer's weights, repacked so that one lane owns one output column.

use rayon::prelude::*;

use super::lanes::LANES;
use super::{Buffer, Cpu};
use crate::ops::StoredType;
use crate::ops::checkpoint::RawTensor;

/// Weights of shape `[outputs, inputs]`, as tiles `[outputs / 16][inputs][16]`; the last tile is padded with zeros.
#[derive(Debug)]
pub struct Matrix {
    pub(super) outputs: usize,
    pub(super) inputs: usize,
    pub(super) tiles: Tiles,
}

#[derive(Debug)]
pub(super) enum Tiles {
    F32(Vec<f32>),
    Bf16(Vec<u16>),
}

impl Matrix {
    /// Packs the rows of `parts` one after another; each part is row-major `[n, inputs]`.
    pub fn pack(parts: &[RawTensor<'_>], inputs: usize, stored: StoredType) -> Matrix {
        let rows: Vec<Row> = parts
            .iter()
            .flat_map(|part| (0..part.rows(inputs)).map(move |row| Row { part, row }))
            .collect();
        let tiles = match stored {
            StoredType::F32 => Tiles::F32(interleave(&rows, inputs, |value| value)),
            StoredType::Bf16 => Tiles::Bf16(interleave(&rows, inputs, |value| {
                half::bf16::from_f32(value).to_bits()
            })),
        };
        Matrix {
            outputs: rows.len(),
            inputs,
            tiles,
        }
    }

    pub fn outputs(&self) -> usize {
        self.outputs
    }

    pub fn inputs(&self) -> usize {
        self.inputs
    }
}

/// One output's weights, where they still lie in their file.
struct Row<'a> {
    part: &'a RawTensor<'a>,
    row: usize,
}

fn interleave<T: Copy + Default + Send>(
    rows: &[Row<'_>],
    inputs: usize,
    convert: impl Fn(f32) -> T + Sync,
) -> Vec<T> {
    let mut tiles = vec![T::default(); rows.len().div_ceil(LANES) * LANES * inputs];
    tiles
        .par_chunks_mut(LANES * inputs)
        .zip(rows.par_chunks(LANES))
        .for_each(|(tile, rows)| {
            let mut values = vec![0.0; inputs];
            for (lane, row) in rows.iter().enumerate() {
                row.part.read_row(row.row, &mut values);
                for (k, &value) in values.iter().enumerate() {
                    tile[k * LANES + lane] = convert(value);
                }
            }
        });
    tiles
}

impl Cpu {
    /// Rows `tokens` of an embedding table `[vocabulary, hidden]`, times `scale`, into `out` `[tokens, hidden]`.
    pub fn embed(&self, table: &Matrix, tokens: &[u32], scale: f32, out: &mut Buffer) {
        out.reshape(tokens.len(), table.inputs);
        for (row, &token) in tokens.iter().enumerate() {
            let (tile, lane) = (token as usize / LANES, token as usize % LANES);
            let from = tile * table.inputs * LANES + lane;
            for (k, value) in out.row_mut(row).iter_mut().enumerate() {
                *value = scale
                    * match &table.tiles {
                        Tiles::F32(tiles) => tiles[from + k * LANES],
                        Tiles::Bf16(tiles) => {
                            f32::from_bits(u32::from(tiles[from + k * LANES]) << 16)
                        }
                    };
            }
        }
    }
}
