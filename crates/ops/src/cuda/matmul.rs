//! A product of activations with weights: its launches, most often one.

use std::ops::Range;

use super::arguments::Arguments;
use super::kernels::{Epilogue, Product};
use super::launch::Launch;
use super::matrix::{Format, Matrix};
use super::pack::{GroupBytes, OUTPUTS};
use super::region::Region;
use super::{Buffer, Cuda};

/// Outputs of a block of the warpgroups' CTAs.
pub const BLOCK_OUTPUTS: usize = 128;

#[derive(Clone, Copy, Debug)]
pub enum Matmul {
    Small(Launch),
    /// Where the grid's third dimension is above one, each chunk of inputs has a CTA of its own, and they meet in
    /// memory: it takes sums and tickets.
    Medium(Launch),
    /// All CTAs at once; a cluster has a CTA for each chunk of inputs.
    Wave {
        launch: Launch,
        /// That it is compiled for.
        rows: usize,
    },
    Large(Launch),
    /// By warpgroups: of so many blocks of outputs a CTA takes all inputs, of the others a cluster's take a chunk each.
    Warpgroups {
        whole: Launch,
        split: Launch,
        blocks: usize,
        /// Of a CTA.
        rows: usize,
    },
    /// By warpgroups whose CTAs stay.
    Units {
        launch: Launch,
        rows: usize,
        /// Tiles whose inputs a CTA takes all, blocks of rows, chunks of another tile, and what is to be done in all.
        pieces: [usize; 4],
    },
}

impl Matmul {
    /// Its launches, each with the outputs that are its own.
    fn parts(self, outputs: usize) -> impl Iterator<Item = (Launch, Range<usize>)> {
        let (first, second) = match self {
            Matmul::Small(launch)
            | Matmul::Medium(launch)
            | Matmul::Large(launch)
            | Matmul::Wave { launch, .. }
            | Matmul::Units { launch, .. } => ((launch, 0..outputs), None),
            Matmul::Warpgroups { whole, split, blocks, .. } => {
                let middle = outputs.min(blocks * BLOCK_OUTPUTS);
                ((whole, 0..middle), Some((split, middle..outputs)))
            }
        };
        [Some(first), second].into_iter().flatten().filter(|(_, outputs)| !outputs.is_empty())
    }
}

impl Cuda {
    pub(super) fn multiply(
        &self,
        x: &Buffer,
        weights: &Matrix,
        epilogue: Epilogue,
        out: &mut Buffer,
    ) {
        let gated = if epilogue == Epilogue::Plain { 1 } else { 2 };
        out.set_shape(x.rows, weights.outputs / gated);
        if x.rows == 0 {
            return;
        }
        let size = Product { rows: x.rows, outputs: weights.outputs, inputs: weights.inputs };
        if weights.format == Format::F32 {
            debug_assert_eq!(epilogue, Epilogue::Plain, "encoders have no gates");
            return self.multiply_in_f32(x, weights, out);
        }
        let matmul = self.kernels.matmul(weights.format, epilogue, size, self.room);
        self.launch_matmul((matmul, epilogue), x, weights, out);
    }

    /// `matmul` is one of those for the format of `weights` and that epilogue; whichever it is, the bits are the same.
    pub(super) fn launch_matmul(
        &self,
        (matmul, epilogue): (Matmul, Epilogue),
        x: &Buffer,
        weights: &Matrix,
        out: &Buffer,
    ) {
        debug_assert_eq!(x.width, weights.inputs);
        let k_tiles = weights.k_tiles();
        for (launch, outputs) in matmul.parts(weights.outputs) {
            let group = outputs.start / OUTPUTS;
            // Of a group's sixteen outputs eight are gates, where there are any.
            let out_bytes = group * if out.is_wide { 4 * OUTPUTS } else { OUTPUTS };
            let arguments = weights_from(weights, group)
                .rows(x)
                .int(x.rows)
                .int(outputs.len())
                .int(k_tiles)
                // A quarter of all tiles is summed at once, for the same bits in every kernel.
                .int(k_tiles.div_ceil(4))
                .address(out.region.address() + out_bytes as u64)
                .int(out.stride)
                .int(epilogue.gate());
            let arguments = match matmul {
                Matmul::Medium(_) => arguments.region(&self.sums).region(&self.tickets),
                Matmul::Units { rows, pieces, .. } => {
                    let map = self.stream.rows_map(&x.region, [x.rows, x.stride], rows);
                    let arguments = pieces.into_iter().fold(arguments, Arguments::int);
                    arguments.region(&self.sums).region(&self.tickets).rows_map(map)
                }
                Matmul::Wave { rows, .. } | Matmul::Warpgroups { rows, .. } => {
                    arguments.rows_map(self.stream.rows_map(&x.region, [x.rows, x.stride], rows))
                }
                _ => arguments,
            };
            self.stream.launch(launch, arguments);
        }
    }
}

/// Where the weights lie of that group of sixteen outputs and those that follow.
fn weights_from(weights: &Matrix, group: usize) -> Arguments {
    let each = GroupBytes::of(weights.format, weights.k_tiles());
    let address = |region: &Region, bytes: usize| region.address() + (group * bytes) as u64;
    Arguments::default()
        .address(address(&weights.values, each.values))
        .address(weights.scales.as_ref().map_or(0, |scales| address(scales, each.scales)))
        .address(weights.units.as_ref().map_or(0, |units| address(units, each.units)))
}
