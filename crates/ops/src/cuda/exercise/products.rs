//! Products by every kernel that has them.

use super::super::cut::{Cut, ROWS as CTA_ROWS};
use super::super::kernels::{Epilogue, Product};
use super::super::matrix::Matrix;
use super::super::wave::{Room, WAVES};
use super::super::{Buffer, Cuda};
use super::{KEPT, bytes, kept_as, noise};
use crate::checkpoint::RawTensor;
use crate::{Activation, Backend, Numbers, OpsError, Precision, StoredType};

const EPILOGUES: [Epilogue; 3] =
    [Epilogue::Plain, Epilogue::Gated(Activation::Silu), Epilogue::Gated(Activation::GeluTanh)];
/// Outputs and inputs: groups and tiles that are not whole blocks and chunks.
const SHAPE: (usize, usize) = (144, 544);
/// On one multiprocessor every size is a large one.
const BY_WARPS: [Room; 2] = [
    Room { multiprocessors: 132, warpgroups: false, clusters: None },
    Room { multiprocessors: 1, warpgroups: false, clusters: None },
];

impl Cuda {
    fn layer(&self, epilogue: Epilogue, kept: Precision) -> Result<Matrix, OpsError> {
        let (outputs, inputs) = SHAPE;
        let halves = [3, 4].map(|seed| bytes(&noise(outputs / 2 * inputs, seed)));
        let parts = halves.each_ref().map(|half| RawTensor::from_f32_bytes(half));
        match epilogue {
            Epilogue::Plain => self.pack(&parts, inputs, kept),
            Epilogue::Gated(_) => self.pack_gated(&parts, inputs, kept),
        }
    }

    /// What a product's rows and results lie in.
    fn sides(&self, epilogue: Epilogue, rows: usize) -> Result<(Buffer, Buffer), OpsError> {
        let (width, kind) = match epilogue {
            Epilogue::Plain => (SHAPE.0, Numbers::Wide),
            Epilogue::Gated(_) => (SHAPE.0 / 2, Numbers::Narrow),
        };
        let mut out = self.buffer(rows, width, kind)?;
        out.set_rows(rows);
        Ok((self.made_up(rows, SHAPE.1, Numbers::Narrow)?, out))
    }

    /// Every format and epilogue, each by what `launch` makes of it.
    fn multiply_each(
        &self,
        launch: impl Fn(&Matrix, Epilogue) -> Result<(), OpsError>,
    ) -> Result<(), OpsError> {
        for kept in KEPT {
            for epilogue in EPILOGUES {
                launch(&self.layer(epilogue, kept_as(kept))?, epilogue)?;
            }
        }
        Ok(())
    }

    /// By the kernel for such a GPU.
    fn multiply_in(&self, room: Room, rows: &[usize]) -> Result<(), OpsError> {
        self.multiply_each(|weights, epilogue| {
            for &rows in rows {
                let (x, out) = self.sides(epilogue, rows)?;
                let size = Product { rows, outputs: weights.outputs, inputs: weights.inputs };
                let matmul = self.kernels.matmul(weights.format, epilogue, size, room);
                self.launch_matmul((matmul, epilogue), &x, weights, &out);
            }
            Ok(())
        })
    }

    pub(super) fn multiply_few(&self) -> Result<(), OpsError> {
        self.multiply_in(BY_WARPS[0], &[3, 13, 32])
    }

    pub(super) fn multiply_blocks(&self) -> Result<(), OpsError> {
        // Medium ones of chunks and whole, then large ones.
        self.multiply_in(BY_WARPS[0], &[33])?;
        self.multiply_in(BY_WARPS[1], &[64, 130])
    }

    pub(super) fn multiply_in_waves(&self) -> Result<(), OpsError> {
        if !self.stream.has_warpgroups() {
            return Ok(());
        }
        let most = if self.stream.most_clustered() < 4 { 1 } else { 4 };
        let cuts = || WAVES.into_iter().flat_map(|wave| [(wave, 1), (wave, 4)]);
        self.multiply_each(|weights, epilogue| {
            for (wave, chunks) in cuts().filter(|(_, chunks)| *chunks <= most) {
                let (x, out) = self.sides(epilogue, wave.rows - 3)?;
                let form = (weights.format, epilogue);
                let matmul = self.kernels.by_wave(form, weights.outputs, wave, [chunks, 4]);
                self.launch_matmul((matmul, epilogue), &x, weights, &out);
            }
            Ok(())
        })
    }

    pub(super) fn multiply_by_cuts(&self) -> Result<(), OpsError> {
        if !self.stream.has_warpgroups() {
            return Ok(());
        }
        // The second of two blocks of outputs is a cluster's, where there are any.
        let whole = if self.stream.most_clustered() < 4 { 2 } else { 1 };
        self.multiply_each(|weights, epilogue| {
            for rows in CTA_ROWS {
                let (x, out) = self.sides(epilogue, 130)?;
                let size = Product { rows: 130, outputs: weights.outputs, inputs: weights.inputs };
                let form = (weights.format, epilogue);
                let matmul = self.kernels.by_warpgroups(form, size, Cut { rows, whole });
                self.launch_matmul((matmul, epilogue), &x, weights, &out);
            }
            Ok(())
        })
    }

    pub(super) fn multiply_wide(&self) -> Result<(), OpsError> {
        let gpu = self.for_encoder(StoredType::F32.into())?;
        let weights = gpu.layer(Epilogue::Plain, StoredType::F32.into())?;
        let (x, mut out) = gpu.sides(Epilogue::Plain, 70)?;
        gpu.multiply(&x, &weights, Epilogue::Plain, &mut out);
        gpu.stream.synchronise()
    }
}
