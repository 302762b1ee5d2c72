//! Whether this GPU's two kinds of products give the same bits: asked once, before wgmma is trusted with many rows; and whether
//! it is wanted at all.
//!
//! Both sum sixteen products and what was there by one rule, as far as is known of Hopper; nowhere is it promised.

use half::bf16;

use super::kernels::{Epilogue, MatmulForm, Product};
use super::matmul::Matmul;
use super::units::{ROWS as TILE_ROWS, Units};
use super::wave::{Room, WAVES};
use super::{Buffer, Cuda, Matrix};
use crate::checkpoint::RawTensor;
use crate::sampling::philox;
use crate::{Backend, Numbers, OpsError, Precision, StoredType};

/// Rows, outputs and inputs: every lane and both halves of a tile, sums of four chunks.
const ROWS: usize = 256;
const OUTPUTS: usize = 256;
const INPUTS: usize = 512;

/// What to leave out where a GPU stumbles over it: `wgmma`, or of its products `units`, the CTAs that stay, or `waves`. That changes how
/// fast a step is, not its bits.
const WITHOUT: &str = "WARDROUND_CUDA_WITHOUT";

pub fn left_out() -> Result<LeftOut, OpsError> {
    LeftOut::named(&std::env::var(WITHOUT).unwrap_or_default())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub wgmma: bool,
    pub units: bool,
    pub waves: bool,
}

impl LeftOut {
    fn named(name: &str) -> Result<LeftOut, OpsError> {
        match name.trim() {
            "" => Ok(LeftOut { wgmma: false, units: false, waves: false }),
            "units" => Ok(LeftOut { wgmma: false, units: true, waves: false }),
            "wgmma" => Ok(LeftOut { wgmma: true, units: true, waves: true }),
            "waves" => Ok(LeftOut { wgmma: false, units: false, waves: true }),
            "units,waves" => Ok(LeftOut { wgmma: false, units: true, waves: true }),
            other => Err(OpsError::unknown(format!(
                "{WITHOUT} names `{other}`, which cannot be left out; known: wgmma, units, waves, or \"units,waves\""
            ))),
        }
    }
}

impl Cuda {
    /// What products may take of this GPU, once those by wgmma have been compared.
    ///
    /// Units' bits stand for wgmma's: they are compared even where they are left out, and where they are others no kernel by wgmma
    /// is taken.
    pub(super) fn agreed_room(&self, left_out: LeftOut) -> Result<Room, OpsError> {
        let agree = !left_out.wgmma && self.stream.has_warpgroups() && self.units_agree()?;
        let units = agree && !left_out.units;
        let clusters = self.kernels.clusters_of_four;
        let waves = agree && !left_out.waves && clusters.is_some() && self.waves_agree()?;
        let clusters = clusters.filter(|_| waves);
        Ok(Room { warpgroups: agree, units, clusters, ..self.room })
    }

    /// Multiplies the same matrices by warps and by units, these as one tile and several, whole and in chunks.
    pub(super) fn units_agree(&self) -> Result<bool, OpsError> {
        let cuts = TILE_ROWS.iter().flat_map(|rows| {
            let rounds = [(usize::MAX, 1), (2, 2), (0, 3), (0, 132)];
            rounds.map(|(whole, ctas)| Units { rows: *rows, whole, ctas })
        });
        let cuts: Vec<Units> = cuts.collect();
        self.agree(|form, size| {
            cuts.iter().map(|cut| self.kernels.by_units(form, size, *cut)).collect()
        })
    }

    /// The same in one wave, its CTAs alone and in clusters.
    pub(super) fn waves_agree(&self) -> Result<bool, OpsError> {
        self.agree(|form, size| {
            let waves = WAVES.into_iter().filter(|wave| size.rows <= wave.rows);
            let cuts = waves.flat_map(|wave| [1, 4].map(|chunks| (wave, [chunks, 4])));
            cuts.map(|(wave, cut)| self.kernels.by_wave(form, size.outputs, wave, cut)).collect()
        })
    }

    fn agree(
        &self,
        kernels_of: impl Fn(MatmulForm, Product) -> Vec<Matmul>,
    ) -> Result<bool, OpsError> {
        let numbers = scattered(OUTPUTS * INPUTS, 1).into_iter();
        let weights: Vec<u8> = numbers.flat_map(|number| number.to_f32().to_le_bytes()).collect();
        let kept = Precision::from(StoredType::Bf16);
        let weights = self.pack(&[RawTensor::from_f32_bytes(&weights)], INPUTS, kept)?;
        let mut x = self.buffer(ROWS, INPUTS, Numbers::Narrow)?;
        let numbers = scattered(ROWS * INPUTS, 2).into_iter();
        let halves: Vec<u8> = numbers.flat_map(bf16::to_le_bytes).collect();
        self.stream.write(&x.region, 0, &halves);
        for rows in [ROWS / 16, ROWS / 4, ROWS / 2, ROWS] {
            x.set_rows(rows);
            // On a GPU of one multiprocessor every size is a large one.
            let room = Room { multiprocessors: 1, warpgroups: false, units: false, clusters: None };
            let size = Product { rows, outputs: OUTPUTS, inputs: INPUTS };
            let kernels = &self.kernels;
            let by_warps = kernels.matmul(weights.format, Epilogue::Plain, size, room);
            let by_warps = self.multiply_by(by_warps, &x, &weights)?;
            for kernel in kernels_of((weights.format, Epilogue::Plain), size) {
                if by_warps != self.multiply_by(kernel, &x, &weights)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The bits of a product by one of the kernels for many rows.
    fn multiply_by(
        &self,
        matmul: Matmul,
        x: &Buffer,
        weights: &Matrix,
    ) -> Result<Vec<u32>, OpsError> {
        let mut out = self.buffer(x.rows, OUTPUTS, Numbers::Wide)?;
        out.set_rows(x.rows);
        self.launch_matmul((matmul, Epilogue::Plain), x, weights, &out);
        let numbers = self.read(&out, x.rows)?;
        Ok(numbers.into_iter().map(f32::to_bits).collect())
    }
}

/// Numbers of both signs from 2⁻²⁰ to 2²⁰, so that sums lose what is far below their largest part.
fn scattered(count: usize, seed: u64) -> Vec<bf16> {
    let number = |index| {
        let bits = philox(seed, index);
        let exponent = 107 + (bits >> 8) % 41;
        bf16::from_bits(((bits & 0x80) << 8 | exponent << 7 | bits & 0x7F) as u16)
    };
    (0..count as u64).map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wgmma_and_units_can_be_left_out() {
        let named = |name| LeftOut::named(name).map(|left_out| (left_out.wgmma, left_out.units));
        assert_eq!((named(""), named(" units")), (Ok((false, false)), Ok((false, true))));
        assert_eq!(named(" wgmma"), Ok((true, true)));
        let error = named("wgmma,graphs").unwrap_err();
        assert!(error.to_string().contains("`wgmma,graphs`"), "{error}");
    }
}
