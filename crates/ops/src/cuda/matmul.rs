//! A product of activations with weights, which is one launch.

use super::arguments::Arguments;
use super::kernels::{Epilogue, Product};
use super::launch::Launch;
use super::matrix::{Format, Matrix};
use super::{Buffer, Cuda};

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
    /// By warpgroups, in CTAs that stay.
    Units {
        launch: Launch,
        /// Of a tile.
        rows: usize,
        /// Tiles whose inputs a CTA takes all, blocks of rows, chunks of another tile, and what is to be done in all.
        pieces: [usize; 4],
    },
}

impl Matmul {
    pub fn launch(self) -> Launch {
        match self {
            Matmul::Small(launch)
            | Matmul::Medium(launch)
            | Matmul::Large(launch)
            | Matmul::Wave { launch, .. }
            | Matmul::Units { launch, .. } => launch,
        }
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
        let arguments = weights
            .arguments()
            .rows(x)
            .int(x.rows)
            .int(weights.outputs)
            .int(k_tiles)
            // A quarter of all tiles is summed at once, for the same bits in every kernel.
            .int(k_tiles.div_ceil(4))
            .rows(out)
            .int(epilogue.gate());
        let map = |rows| self.stream.rows_map(&x.region, [x.rows, x.stride], rows);
        let arguments = match matmul {
            Matmul::Small(_) | Matmul::Large(_) => arguments,
            Matmul::Medium(_) => arguments.region(&self.sums).region(&self.tickets),
            Matmul::Wave { rows, .. } => arguments.rows_map(map(rows)),
            Matmul::Units { rows, pieces, .. } => {
                let arguments = pieces.into_iter().fold(arguments, Arguments::int);
                arguments.region(&self.sums).region(&self.tickets).rows_map(map(rows))
            }
        };
        self.stream.launch(matmul.launch(), arguments);
    }
}
