//! Attention of decoding rows that turns their heads itself and stores their keys and values: a kernel less between two
//! products.

use super::attention::Seen;
use super::stage::Step;
use super::{Buffer, Cuda, Pages};
use crate::ops::{AttentionShape, Backend, LayerPages, Unturned};

impl Cuda {
    /// By one kernel or by two.
    pub(super) fn turn_or_attend(
        &self,
        unturned: Unturned<'_, Cuda>,
        shape: AttentionShape,
        step: Step,
        LayerPages { pages, layer }: LayerPages<&mut Pages>,
        out: &mut Buffer,
    ) {
        // Of two rows of a sequence one sees the other's key, which is not there before the launch's end.
        let is_possible = step.chunk_slots > 0 && step.are_apart && !self.in_f32;
        if self.turns_heads && is_possible {
            return self.attend_turned(unturned, shape, step, LayerPages { pages, layer }, out);
        }
        let Unturned { qkv, queries, norms, rope } = unturned;
        let written = LayerPages { pages: &mut *pages, layer };
        self.rotate_and_store(qkv, queries, norms, rope, step, written);
        self.attention(queries, shape, step, LayerPages { pages: &*pages, layer }, out);
    }

    /// Of rows that are decoded, each of a sequence of its own. See kernels/attention_turned.cuh.
    pub(super) fn attend_turned(
        &self,
        unturned: Unturned<'_, Cuda>,
        shape: AttentionShape,
        step: Step,
        LayerPages { pages, layer }: LayerPages<&mut Pages>,
        out: &mut Buffer,
    ) {
        let Unturned { qkv, norms, rope, .. } = unturned;
        out.set_rows(step.rows);
        let layer = LayerPages { pages: &*pages, layer };
        let seen = Seen { queries: &qkv.region, shape, step, layer };
        let Some((launch, arguments)) = seen.in_chunks(&self.kernels.attend_turned, out) else {
            return;
        };
        let arguments = arguments
            .maybe(norms.map(|norms| &norms.query.0))
            .maybe(norms.map(|norms| &norms.key.0))
            .float(norms.map_or(0.0, |norms| norms.epsilon))
            .region(&rope.cosines)
            .region(&rope.sines);
        self.stream.launch(launch, arguments);
    }
}
