//! A linear layer's weights on the GPU.

use std::sync::PoisonError;

use rayon::prelude::*;

use super::Cuda;
use super::arguments::Arguments;
use super::ferry::{Ferry, Freight};
use super::pack::{Group, GroupBytes, INPUTS, OUTPUTS, Packer};
use super::region::Region;
use crate::checkpoint::RawRow;
use crate::{OpsError, Precision, Quantisation};

/// How weights are kept; the numbers index kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Bf16,
    Q8_0,
    Q4K,
    F32,
}

impl Format {
    fn of(precision: Precision, in_f32: bool) -> Result<Format, OpsError> {
        match precision.quantisation {
            Quantisation::None if in_f32 => Ok(Format::F32),
            Quantisation::None => Ok(Format::Bf16),
            Quantisation::Q8_0 => Ok(Format::Q8_0),
            Quantisation::Q4K => Ok(Format::Q4K),
            Quantisation::Int8 => Err(OpsError::quantisation("a GPU", Quantisation::Int8)),
        }
    }
}

/// Weights `[outputs, inputs]` in tiles; the arrays that a format has no use for are `None`.
#[derive(Debug)]
pub struct Matrix {
    pub(super) format: Format,
    pub(super) outputs: usize,
    pub(super) inputs: usize,
    pub(super) values: Region,
    pub(super) scales: Option<Region>,
    pub(super) units: Option<Region>,
}

impl Matrix {
    /// What every kernel that multiplies with it takes first.
    pub fn arguments(&self) -> Arguments {
        Arguments::default()
            .region(&self.values)
            .maybe(self.scales.as_ref())
            .maybe(self.units.as_ref())
    }

    /// Tiles of 32 inputs.
    pub(super) fn k_tiles(&self) -> usize {
        self.inputs.div_ceil(INPUTS)
    }
}

impl Cuda {
    /// `rows` gives those of a group of outputs.
    pub(super) fn pack_groups<'a>(
        &self,
        rows: impl Fn(usize) -> [Option<RawRow<'a>>; OUTPUTS] + Sync,
        outputs: usize,
        inputs: usize,
        precision: Precision,
    ) -> Result<Matrix, OpsError> {
        let format = Format::of(precision, self.in_f32)?;
        let groups = outputs.div_ceil(OUTPUTS);
        let each = GroupBytes::of(format, inputs.div_ceil(INPUTS));
        let room = |bytes: usize| self.stream.allocate(groups * bytes, "weights");
        let some = |bytes: usize| (bytes > 0).then(|| room(bytes)).transpose();
        let matrix = Matrix {
            format,
            outputs,
            inputs,
            values: room(each.values)?,
            scales: some(each.scales)?,
            units: some(each.units)?,
        };
        let mut kept = self.ferry.lock().unwrap_or_else(PoisonError::into_inner);
        let ferry = match &mut *kept {
            Some(ferry) if ferry.pieces(each.total()) > 0 => ferry,
            other => other.insert(Ferry::new(&self.stream, each.total())?),
        };
        let at_once = ferry.pieces(each.total());
        for first in (0..groups).step_by(at_once) {
            let count = at_once.min(groups - first);
            let freight =
                |region, bytes| Freight { bytes: count * bytes, region, offset: first * bytes };
            let mut parts = vec![freight(&matrix.values, each.values)];
            parts.extend(matrix.scales.as_ref().map(|region| freight(region, each.scales)));
            parts.extend(matrix.units.as_ref().map(|region| freight(region, each.units)));
            let pack = |buffer: &mut [u8]| {
                let (values, rest) = buffer.split_at_mut(count * each.values);
                let (scales, units) = rest.split_at_mut(count * each.scales);
                let places = pieces(values, each.values, count)
                    .zip(pieces(scales, each.scales, count))
                    .zip(pieces(units, each.units, count));
                let places: Vec<_> = places.enumerate().collect();
                self.pool.install(|| {
                    places.into_par_iter().for_each_init(
                        Packer::default,
                        |packer, (index, ((values, scales), units))| {
                            let group = Group { values, scales, units };
                            packer.pack(&rows(first + index), inputs, format, group);
                        },
                    );
                });
            };
            ferry.carry(pack, &parts);
        }
        Ok(matrix)
    }
}

/// So many pieces of `bytes` each from the start of an array, which may be none.
fn pieces(mut array: &mut [u8], bytes: usize, count: usize) -> impl Iterator<Item = &mut [u8]> {
    (0..count).map(move |_| {
        let (piece, rest) = std::mem::take(&mut array).split_at_mut(bytes);
        array = rest;
        piece
    })
}
