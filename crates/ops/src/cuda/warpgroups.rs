//! Whether this GPU's two kinds of products give the same bits: asked of each family of kernels by wgmma when a GPU is opened; and
//! whether it is wanted at all.
//!
//! Both sum sixteen products and what was there by one rule, as far as is known of Hopper; nowhere is it promised.

use std::ops::Range;

use half::bf16;

use super::attention::Seen;
use super::kernels::{Epilogue, MatmulForm, Product, WARPGROUP_DIMS};
use super::left_out::{LeftOut, WITHOUT, left_out};
use super::matmul::Matmul;
use super::region::Region;
use super::stage::Stage;
use super::units::{ROWS as TILE_ROWS, Units};
use super::wave::{Room, WAVES};
use super::{Buffer, Cuda, Matrix};
use crate::checkpoint::RawTensor;
use crate::sampling::philox;
use crate::{
    AttentionShape, Backend, CHUNK, LayerPages, Numbers, OpsError, PAGE, PageShape, Precision,
    Rows, StepLimits, StoredType,
};

/// Rows, outputs and inputs: every lane and both halves of a tile, sums of four chunks.
const ROWS: usize = 256;
const OUTPUTS: usize = 256;
const INPUTS: usize = 512;

impl Cuda {
    /// What may be taken of this GPU, once kernels by wgmma have been compared.
    pub(super) fn agreed_room(&self, left_out: LeftOut) -> Result<Room, OpsError> {
        let room = Room::without_wgmma(self.room.multiprocessors);
        if !self.stream.has_warpgroups() {
            return Ok(room);
        }
        let clusters = self.kernels.clusters_of_four;
        let waves = !left_out.waves && clusters.is_some() && told(self.waves_agree(), "waves")?;
        Ok(Room {
            units: !left_out.units && told(self.units_agree(), "units")?,
            clusters: clusters.filter(|_| waves),
            attention: !left_out.attention && told(self.attention_agrees(), "attention")?,
            ..room
        })
    }

    pub(super) fn describe_products(&self) -> String {
        let Room { units, clusters, attention, .. } = self.room;
        let left_out = left_out().unwrap_or_default();
        let taken = [units, clusters.is_some(), attention];
        let by = if taken.contains(&true) { "wgmma" } else { "mma.sync" };
        let wanted = [!left_out.units, !left_out.waves, !left_out.attention];
        let disagree = self.stream.has_warpgroups() && taken != wanted;
        let why = if disagree { "; what gave other bits by wgmma is not taken" } else { "" };
        format!("products by {by}{why}")
    }

    /// Multiplies the same matrices by warps and by units, these as one tile and several, whole and in chunks.
    fn units_agree(&self) -> Result<bool, OpsError> {
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
    fn waves_agree(&self) -> Result<bool, OpsError> {
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
            let room = Room::without_wgmma(1);
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

    /// The last rows of a sequence, behind a chunk of keys and more, by warps and by warpgroups; with the window some see less than
    /// half of a chunk.
    fn attention_agrees(&self) -> Result<bool, OpsError> {
        let cases = WARPGROUP_DIMS.into_iter().flat_map(|dim| [(dim, None), (dim, Some(40))]);
        cases
            .into_iter()
            .try_fold(true, |all, (dim, window)| Ok(all && self.attends_alike(dim, window)?))
    }

    fn attends_alike(&self, head_dim: usize, window: Option<usize>) -> Result<bool, OpsError> {
        // More rows than are attended to chunk by chunk, in blocks that lack queries.
        const ROWS: usize = 70;
        const HEADS: usize = 3;
        const KEYS: usize = 2 * CHUNK;
        let shape = PageShape { layers: 1, kv_heads: 1, head_dim };
        let pages = self.pages(shape, StoredType::Bf16, KEYS / PAGE)?;
        let mut queries = self.buffer(ROWS, HEADS * head_dim, Numbers::Narrow)?;
        queries.set_rows(ROWS);
        let fill = |region: &Region, seed| {
            let numbers = numbers(region.bytes() / 2, seed, 118..128).into_iter();
            self.stream.write(region, 0, &numbers.flat_map(bf16::to_le_bytes).collect::<Vec<_>>());
        };
        fill(&pages.keys, 3);
        fill(&pages.values, 4);
        fill(&queries.region, 5);

        let limits = StepLimits { rows: ROWS, logit_rows: 1, positions: KEYS };
        let mut stage = Stage::new(self, shape, HEADS, limits)?;
        let positions: Vec<u32> = (0..KEYS as u32).collect();
        let table: Vec<u32> = (0..(KEYS / PAGE) as u32).rev().collect();
        let rows = Rows {
            tokens: &[0; ROWS],
            positions: &positions[KEYS - ROWS..],
            sequences: &[0; ROWS],
            segments: &[],
            tables: &[&table],
            states: &[],
        };
        let step = stage.send(&self.stream, rows, &[]);
        debug_assert!(step.blocks > 1, "nothing would be compared");
        let seen = Seen {
            queries: &queries.region,
            shape: AttentionShape { heads: HEADS, scale: 0.5, window, both_ways: false },
            step,
            layer: LayerPages { pages: &pages, layer: 0 },
        };
        let (kernels, blocks) = (&self.kernels, [1, step.blocks]);
        let by_warps = kernels.attend_blocks(head_dim, blocks);
        let launches = [by_warps, kernels.attend_by_warpgroups(head_dim, blocks)];
        let mut results = Vec::new();
        for launch in launches.into_iter().flatten() {
            let mut out = self.buffer(ROWS, HEADS * head_dim, Numbers::Narrow)?;
            out.set_rows(ROWS);
            self.attend_by(launch, seen, &out);
            let mut back = self.stream.pin(out.region.bytes())?;
            self.stream.download(&out.region, &mut back, out.region.bytes())?;
            results.push(back.bytes().to_vec());
        }
        Ok(results.windows(2).all(|pair| pair[0] == pair[1]))
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

/// A failure says what to leave out.
fn told(agree: Result<bool, OpsError>, kernels: &str) -> Result<bool, OpsError> {
    agree.map_err(|error| match error {
        OpsError::Device { device, reason } => OpsError::Device {
            device,
            reason: format!("{reason} ({WITHOUT}={kernels} goes without the kernels that failed)"),
        },
        other => other,
    })
}

/// Numbers of both signs from 2⁻²⁰ to 2²⁰, so that sums lose what is far below their largest part.
fn scattered(count: usize, seed: u64) -> Vec<bf16> {
    numbers(count, seed, 107..148)
}

/// Numbers of both signs of such exponents, 127 for 1.
fn numbers(count: usize, seed: u64, exponents: Range<u64>) -> Vec<bf16> {
    let number = |index| {
        let bits = philox(seed, index);
        let exponent = exponents.start + (bits >> 8) % (exponents.end - exponents.start);
        bf16::from_bits(((bits & 0x80) << 8 | exponent << 7 | bits & 0x7F) as u16)
    };
    (0..count as u64).map(number).collect()
}
