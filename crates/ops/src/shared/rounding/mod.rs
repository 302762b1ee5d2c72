//! How weights are rounded to blocks of 32, sixteen columns side by side: the numbers are the same on every machine, and each lays them out for
//! its products.

pub mod q4_k;
pub mod q8_0;

use super::lanes::LANES;

/// Weights of a block.
pub const BLOCK: usize = 32;

/// Bytes of weights that one step of a product takes: four of each of sixteen columns, a column's four together.
pub const STEP_BYTES: usize = 64;

/// Bytes of a block whose weights have one each.
pub const BYTES: usize = BLOCK * LANES;
