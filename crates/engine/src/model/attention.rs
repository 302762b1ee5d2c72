//! A layer that attends to the keys and values of its sequence's rows, which lie in pages.

use super::ModelError;
use super::decoder::Activations;
use super::weights::Loader;
use crate::ops::checkpoint::RawTensor;
use crate::ops::{AttentionShape, Backend, HeadNorms, LayerPages};

#[derive(Debug)]
pub(super) struct Attention<B: Backend> {
    pub shape: AttentionShape,
    pub is_turned: bool,
    /// Where its keys and values lie in pages.
    place: usize,
    /// `[(heads + 2 · kv_heads) · head_dim, hidden]`.
    qkv: B::Matrix,
    /// Of what the heads give, `[heads · head_dim, hidden]`.
    gates: Option<B::Matrix>,
    head_norms: Option<HeadNorms<B::Vector>>,
}

impl<B: Backend> Attention<B> {
    pub fn load(loader: &Loader<'_, B>, index: usize) -> Result<Attention<B>, ModelError> {
        let config = loader.config;
        let (hidden, head_dim) = (config.hidden_size, config.head_dim);
        let (queries, keys) = (config.heads * head_dim, config.kv_heads * head_dim);
        let name = |part: &str| format!("layers.{index}.self_attn.{part}");
        let traits = config.family.traits();
        let head_norms = match traits.norms_heads {
            false => None,
            true => Some(HeadNorms {
                query: loader.norm(&name("q_norm"), head_dim)?,
                key: loader.norm(&name("k_norm"), head_dim)?,
                epsilon: config.rms_norm_eps,
            }),
        };
        let key = loader.tensor(&name("k_proj"), &[keys, hidden])?;
        let value = loader.tensor(&name("v_proj"), &[keys, hidden])?;
        let gated = if traits.gates_heads { 2 } else { 1 };
        let all = loader.tensor(&name("q_proj"), &[gated * queries, hidden])?;
        // A head's queries, and then its gates.
        let part = |part: usize| {
            let rows =
                move |head| (head * gated + part) * head_dim..(head * gated + part + 1) * head_dim;
            (0..config.heads).map(move |head| all.part(rows(head), hidden))
        };
        let precision = loader.precision.of_layer(hidden);
        let qkv: Vec<RawTensor<'_>> = part(0).chain([key, value]).collect();
        let gates = || loader.ops.pack(&part(1).collect::<Vec<_>>(), hidden, precision);
        Ok(Attention {
            shape: AttentionShape {
                heads: config.heads,
                scale: config.attention_scale,
                window: config.windows[index],
                both_ways: false,
            },
            is_turned: !config.unturned.contains(&index),
            place: config.place(index),
            qkv: loader.ops.pack(&qkv, hidden, precision)?,
            gates: traits.gates_heads.then(gates).transpose()?,
            head_norms,
        })
    }

    /// Leaves what the heads give in `attended`.
    pub fn compute(
        &self,
        ops: &B,
        rope: &B::Rope,
        step: B::Step<'_>,
        pages: &mut B::Pages,
        activations: &mut Activations<B>,
    ) {
        let Activations { normed, qkv, queries, attended, gates, .. } = activations;
        let layer = self.place;
        ops.matmul(normed, &self.qkv, qkv);
        let written = LayerPages { pages: &mut *pages, layer };
        ops.rotate_and_store(qkv, queries, self.head_norms.as_ref(), rope, step, written);
        ops.attention(queries, self.shape, step, LayerPages { pages: &*pages, layer }, attended);
        if let (Some(weights), Some(gates)) = (&self.gates, gates) {
            ops.matmul(normed, weights, gates);
            ops.gate_heads(attended, gates);
        }
    }
}
