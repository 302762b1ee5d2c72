//! Attention on the GPU: decoding rows by chunks of keys, also beside prompts, of which blocks of rows are taken at once; in f32 row by row.

use super::arguments::Arguments;
use super::kernels::for_dim;
use super::launch::Launch;
use super::region::Region;
use super::rotary::COMMON_DIM;
use super::stage::Step;
use super::{Buffer, Cuda, Pages};
use crate::{AttentionShape, LayerPages, OpsError, PageShape};

/// Heads that share keys, at most.
const MOST_GROUPED: usize = 16;

#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub queries: &'a Region,
    pub shape: AttentionShape,
    pub step: Step,
    pub layer: LayerPages<&'a Pages>,
}

impl Seen<'_> {
    /// The arguments that every kind of attention begins with.
    fn arguments(&self) -> Arguments {
        let [keys, values] = self.layer.pages.layer(self.layer.layer);
        Arguments::default()
            .region(self.queries)
            .address(keys)
            .address(values)
            .address(self.step.at.positions)
            .address(self.step.at.sequences)
            .address(self.step.at.tables)
            .int(self.step.at.table_stride)
            .int(self.shape.heads)
            .int(self.layer.pages.kv_heads)
            .int(self.layer.pages.head_dim)
    }

    /// What scores are made of, which comes after them.
    fn scores(&self, arguments: Arguments) -> Arguments {
        arguments.int(self.shape.window.unwrap_or(0)).float(self.shape.scale)
    }

    /// Of texts whose rows see ahead; else null.
    fn lengths(&self) -> u64 {
        if self.shape.both_ways { self.step.at.lengths } else { 0 }
    }
}

impl Cuda {
    /// Whether there are kernels for so many heads over such keys.
    pub(super) fn check_heads(&self, heads: usize, shape: PageShape) -> Result<(), OpsError> {
        let PageShape { kv_heads, head_dim, .. } = shape;
        let dim = head_dim.next_multiple_of(32);
        let is_compiled = self.kernels.attend_blocks(dim, [1, 1]).is_some();
        let fits = !self.in_f32 || dim <= COMMON_DIM;
        if is_compiled && fits && heads / kv_heads.max(1) <= MOST_GROUPED {
            return Ok(());
        }
        let reason = format!(
            "no kernel attends with {heads} heads of {head_dim} numbers over {kv_heads} of keys"
        );
        Err(OpsError::Device { device: self.kind(), reason })
    }

    pub(super) fn attend(&self, seen: Seen<'_>, out: &mut Buffer) {
        let Step { rows, decoding, blocks, .. } = seen.step;
        debug_assert!(!seen.shape.both_ways || decoding == 0, "only texts see ahead");
        out.set_shape(rows, seen.shape.heads * seen.layer.pages.head_dim);
        if self.in_f32 {
            return self.attend_in_f32(seen, out);
        }
        if decoding > 0 {
            self.attend_chunks(seen, out);
        }
        if blocks > 0 {
            self.attend_rows(seen, out);
        }
    }

    /// Keys in chunks, a CTA each; a row's last one merges them.
    fn attend_chunks(&self, seen: Seen<'_>, out: &Buffer) {
        let Seen { shape, step, layer, .. } = seen;
        let pages = layer.pages;
        let slots = step.chunk_slots(shape);
        let Some(function) = for_dim(&self.kernels.attend_chunks, pages.dim()) else { return };
        let arguments = seen
            .scores(seen.arguments())
            .int(slots)
            .address(step.partial_sums)
            .address(step.partial_stats)
            .address(step.tickets)
            .rows(out);
        let grid = [step.decoding, pages.kv_heads, slots];
        self.stream.launch(Launch::new(function, grid, 128), arguments);
    }

    /// Rows in blocks, over all their keys.
    fn attend_rows(&self, seen: Seen<'_>, out: &Buffer) {
        let pages = seen.layer.pages;
        let blocks = [pages.kv_heads, seen.step.blocks];
        let by_warpgroups = self.kernels.attend_by_warpgroups(pages.dim(), blocks);
        let launch = by_warpgroups.filter(|_| self.room.attention);
        if let Some(launch) = launch.or_else(|| self.kernels.attend_blocks(pages.dim(), blocks)) {
            self.attend_by(launch, seen, out);
        }
    }

    /// `launch` is one of those for blocks of rows; whichever it is, the bits are the same.
    pub(super) fn attend_by(&self, launch: Launch, seen: Seen<'_>, out: &Buffer) {
        let arguments = seen
            .scores(seen.arguments())
            .address(seen.step.at.block_list)
            .rows(out)
            .address(seen.lengths());
        self.stream.launch(launch, arguments);
    }

    /// A CTA for each row and head, over all its keys.
    fn attend_in_f32(&self, seen: Seen<'_>, out: &Buffer) {
        let Seen { shape, step, layer, .. } = seen;
        let attend = Launch::new(self.kernels.attend_f32, [step.rows, shape.heads, 1], 128);
        let arguments =
            seen.scores(seen.arguments().int(layer.pages.dim())).rows(out).address(seen.lengths());
        self.stream.launch(attend, arguments);
    }
}
