//! A linear layer's weights on the GPU.

use rayon::prelude::*;

use super::Cuda;
use super::pack::{Group, GroupBytes, INPUTS, OUTPUTS, Row};
use super::region::Region;
use crate::ops::checkpoint::RawTensor;
use crate::ops::{OpsError, Precision, Quantisation};

/// How weights are kept; the numbers index kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Bf16,
    Q8_0,
    Q4K,
}

impl Format {
    fn of(precision: Precision) -> Format {
        match precision.quantisation {
            Quantisation::None => Format::Bf16,
            Quantisation::Q8_0 => Format::Q8_0,
            Quantisation::Q4K => Format::Q4K,
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
    /// Tiles of 32 inputs.
    pub(super) fn k_tiles(&self) -> usize {
        self.inputs.div_ceil(INPUTS)
    }
}

/// Groups that are packed before they are copied: what bounds the host's memory.
const GROUPS_AT_ONCE: usize = 1024;

impl Cuda {
    /// Packs outputs one after another.
    pub(super) fn pack_rows(
        &self,
        parts: &[RawTensor<'_>],
        inputs: usize,
        precision: Precision,
    ) -> Result<Matrix, OpsError> {
        let rows: Vec<Row> = parts
            .iter()
            .flat_map(|part| (0..part.rows(inputs)).map(move |row| Row { part, row }))
            .collect();
        let group = |group: usize| {
            std::array::from_fn(|output| rows.get(group * OUTPUTS + output).copied())
        };
        self.pack_groups(group, rows.len(), inputs, Format::of(precision))
    }

    /// Packs eight gates and their eight ups in turn, so that one lane gets both of a feature.
    pub(super) fn pack_pairs(
        &self,
        [gate, up]: &[RawTensor<'_>; 2],
        inputs: usize,
        precision: Precision,
    ) -> Result<Matrix, OpsError> {
        let features = gate.rows(inputs);
        let group = |group: usize| {
            std::array::from_fn(|output| {
                let part = if output < 8 { gate } else { up };
                let row = group * 8 + output % 8;
                (row < features).then_some(Row { part, row })
            })
        };
        self.pack_groups(group, 2 * features, inputs, Format::of(precision))
    }

    fn pack_groups<'a>(
        &self,
        rows: impl Fn(usize) -> [Option<Row<'a>>; OUTPUTS] + Sync,
        outputs: usize,
        inputs: usize,
        format: Format,
    ) -> Result<Matrix, OpsError> {
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
        let packed = if self.stream.has_memory() { groups } else { 0 };
        for first in (0..packed).step_by(GROUPS_AT_ONCE) {
            let last = groups.min(first + GROUPS_AT_ONCE);
            let packed: Vec<Group> = self.pool.install(|| {
                let groups = (first..last).into_par_iter();
                groups.map(|group| Group::pack(&rows(group), inputs, format)).collect()
            });
            let write = |region: &Region, bytes: usize, of: fn(&Group) -> &[u8]| {
                let all = packed.iter().map(of).collect::<Vec<_>>().concat();
                self.stream.write(region, first * bytes, &all);
            };
            write(&matrix.values, each.values, |group| &group.values);
            if let Some(scales) = &matrix.scales {
                write(scales, each.scales, |group| &group.scales);
            }
            if let Some(units) = &matrix.units {
                write(units, each.units, |group| &group.units);
            }
        }
        Ok(matrix)
    }
}
