//! Products of few rows whose CTAs make the norm that they take, each for itself: a kernel less between two products.

use super::kernels::{Epilogue, Product};
use super::launch::Launch;
use super::matrix::{Format, Matrix};
use super::pack::OUTPUTS;
use super::{Buffer, Cuda};
use crate::ops::{Added, Backend};

/// Numbers of a row that a CTA holds in registers; see kernels/matmul_normed.cuh.
const MOST_HIDDEN: usize = 4096;
/// The most rows for which this pays: each CTA makes all of them, one after another, and asks the second cache for them.
pub const FOLDED_ROWS: usize = 2;

impl Cuda {
    pub(super) fn multiply_added(
        &self,
        added: Added<'_, Cuda>,
        weights: &Matrix,
        epilogue: Epilogue,
        out: &mut Buffer,
    ) {
        match self.folded(&added, weights, epilogue) {
            Some(launch) => self.launch_folded(launch, added, weights, out),
            None => {
                let Added { residual, branch, norms, normed } = added;
                self.add_norm(residual, branch, norms, normed);
                self.multiply(normed, weights, epilogue, out);
            }
        }
    }

    /// `None` where it takes two kernels, or where two are faster.
    fn folded(
        &self,
        added: &Added<'_, Cuda>,
        weights: &Matrix,
        epilogue: Epilogue,
    ) -> Option<Launch> {
        let size =
            Product { rows: added.residual.rows, outputs: weights.outputs, inputs: weights.inputs };
        let is_possible = self.folds_norms
            && weights.format != Format::F32
            && (1..=added.residual.moving_rows).contains(&size.rows)
            && size.inputs <= MOST_HIDDEN
            && added.norms.next.is_some();
        // Products of blocks of weights wait for instructions: there each CTA's norms would show, but for what CTAs are
        // there at once.
        let are_few = size.outputs.div_ceil(OUTPUTS) <= 3 * self.stream.multiprocessors();
        let pays = size.rows <= FOLDED_ROWS && (weights.format == Format::Bf16 || are_few);
        let launch = (is_possible && pays)
            .then(|| self.kernels.matmul_normed(weights.format, epilogue, size));
        launch.flatten()
    }

    /// `launch` is of `Kernels::matmul_normed`.
    pub(super) fn launch_folded(
        &self,
        launch: Launch,
        added: Added<'_, Cuda>,
        weights: &Matrix,
        out: &mut Buffer,
    ) {
        let Added { residual, branch, norms, .. } = added;
        assert!(residual.rows <= residual.moving_rows, "rows that have nowhere to go");
        out.set_rows(residual.rows);
        let [old, new] = match (residual.places(), residual.has_moved) {
            ([first, second], false) => [first, second],
            ([first, second], true) => [second, first],
        };
        let k_tiles = weights.k_tiles();
        let arguments = weights
            .arguments()
            .address(old)
            .region(&branch.region)
            .int(residual.rows)
            .int(weights.outputs)
            .int(k_tiles)
            .int(k_tiles.div_ceil(4))
            .region(&out.region)
            .int(out.stride)
            .maybe(norms.post.map(|post| &post.0))
            .maybe(norms.next.map(|next| &next.0))
            .float(norms.epsilon)
            .int(residual.width)
            .address(new);
        self.stream.launch(launch, arguments);
        residual.has_moved = !residual.has_moved;
    }
}
