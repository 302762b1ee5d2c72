//! Sixteen outputs' weights in blocks, plainly arranged, for machines that arrange them their own way.

use super::Isa;
use super::lanes::LANES;
use super::quantised::{BLOCK, q4_k, q8_0};

/// `[blocks][32 inputs][16 outputs]` values, of which each block and output has a scale of its own.
pub struct Q8Group {
    pub values: Vec<[[i8; LANES]; BLOCK]>,
    /// `[blocks][16 outputs]`, f16 bits.
    pub scales: Vec<u16>,
}

/// As [`Q8Group`], of values from 0 to 15.
pub struct Q4Group {
    pub values: Vec<[[u8; LANES]; BLOCK]>,
    /// `[blocks][scale, minimum][16 outputs]`.
    pub scales: Vec<u8>,
    /// `[blocks / 8, rounded up][d, dmin][16 outputs]`, f16 bits.
    pub units: Vec<u16>,
}

impl Q8Group {
    /// `weights` is `[inputs][16 outputs]`, a whole number of blocks.
    pub fn quantise(weights: &[[f32; LANES]]) -> Q8Group {
        let blocks = weights.len() / BLOCK;
        let mut values = vec![0; weights.len() * LANES];
        let mut scales = vec![0; blocks * LANES];
        q8_0::quantise(Isa::detect(), weights, &mut values, &mut scales);
        let plain = |block: &[u8]| {
            std::array::from_fn(|k| {
                std::array::from_fn(|lane| (block[q8_0::place(lane, k)] ^ 0x80).cast_signed())
            })
        };
        Q8Group { values: values.chunks_exact(BLOCK * LANES).map(plain).collect(), scales }
    }
}

impl Q4Group {
    /// `weights` is `[inputs][16 outputs]`, a whole number of blocks.
    pub fn quantise(weights: &[[f32; LANES]]) -> Q4Group {
        let blocks = weights.len() / BLOCK;
        let mut values = vec![0; blocks * BLOCK * LANES / 2];
        let mut scales = vec![0; blocks * 2 * LANES];
        let mut units = vec![0; blocks.div_ceil(q4_k::TOGETHER) * 2 * LANES];
        q4_k::quantise(Isa::detect(), weights, &mut values, &mut scales, &mut units);
        let plain = |block: &[u8]| {
            std::array::from_fn(|k| {
                std::array::from_fn(|lane| {
                    let (place, shift) = q4_k::place(lane, k);
                    block[place] >> shift & 15
                })
            })
        };
        Q4Group {
            values: values.chunks_exact(BLOCK * LANES / 2).map(plain).collect(),
            scales,
            units,
        }
    }
}
