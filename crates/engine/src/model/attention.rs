//! A layer that attends to the keys and values of its sequence's rows, which lie in pages.

use super::ModelError;
use super::layer::KeyPlace;
use super::scratch::Activations;
use super::weights::Loader;
use crate::ops::checkpoint::RawTensor;
use crate::ops::{AttentionShape, Backend, HeadNorms, LayerPages};

#[derive(Debug)]
pub(super) struct Attention<B: Backend> {
    pub shape: AttentionShape,
    pub is_turned: bool,
    /// Where the keys and values that it sees lie in pages.
    place: KeyPlace,
    /// `[(heads + 2 · kv_heads) · head_dim, hidden]`; queries alone where the keys are another layer's.
    qkv: B::Matrix,
    /// Of what the heads give, `[heads · head_dim, hidden]`.
    gates: Option<B::Matrix>,
    keys: Keys<B>,
    head_dim: usize,
    epsilon: f32,
}

/// Whose keys and values a layer sees, with the norms of heads.
#[derive(Debug)]
pub(super) enum Keys<B: Backend> {
    Own(Option<HeadNorms<B::Vector>>),
    /// Of queries alone.
    Shared(Option<B::Vector>),
}

impl<B: Backend> Attention<B> {
    pub fn load(loader: &Loader<'_, B>, index: usize) -> Result<Attention<B>, ModelError> {
        let config = loader.config;
        let (hidden, head_dim) = (config.hidden_size, config.head_dim_of(index));
        let (queries, keys) = (config.heads * head_dim, config.kv_heads * head_dim);
        let name = |part: &str| format!("layers.{index}.self_attn.{part}");
        let traits = config.family.traits();
        let own: &[&str] = if config.is_sharing(index) { &[] } else { &["k_proj", "v_proj"] };
        let own = own.iter().map(|part| loader.tensor(&name(part), &[keys, hidden]));
        let own = own.collect::<Result<Vec<_>, _>>()?;
        let gated = if traits.gates_heads { 2 } else { 1 };
        let all = loader.tensor(&name("q_proj"), &[gated * queries, hidden])?;
        // A head's queries, and then its gates.
        let part = |part: usize| {
            let rows =
                move |head| (head * gated + part) * head_dim..(head * gated + part + 1) * head_dim;
            (0..config.heads).map(move |head| all.part(rows(head), hidden))
        };
        let precision = loader.precision.of_layer(hidden);
        let qkv: Vec<RawTensor<'_>> = part(0).chain(own).collect();
        let gates = || loader.ops.pack(&part(1).collect::<Vec<_>>(), hidden, precision);
        Ok(Attention {
            shape: AttentionShape {
                heads: config.heads,
                scale: config.attention_scale,
                window: config.windows[index],
                both_ways: false,
            },
            is_turned: !config.unturned.contains(&index),
            place: config.key_place(index),
            qkv: loader.ops.pack(&qkv, hidden, precision)?,
            gates: traits.gates_heads.then(gates).transpose()?,
            keys: loader.keys(index)?,
            head_dim,
            epsilon: config.rms_norm_eps,
        })
    }

    /// Leaves what the heads give in `attended`.
    pub fn compute(
        &self,
        ops: &B,
        rope: &B::Rope,
        step: B::Step<'_>,
        pages: &mut [B::Pages],
        activations: &mut Activations<B>,
    ) {
        let Activations { normed, qkv, queries, attended, gates, .. } = activations;
        let KeyPlace { pool, layer } = self.place;
        let pages = &mut pages[pool];
        ops.matmul(normed, &self.qkv, qkv);
        match &self.keys {
            Keys::Own(norms) => {
                let written = LayerPages { pages: &mut *pages, layer };
                ops.rotate_and_store(qkv, queries, norms.as_ref(), rope, step, written);
            }
            Keys::Shared(norm) => {
                let norm = norm.as_ref().map(|norm| (norm, self.epsilon));
                ops.rotate(qkv, queries, norm, rope, step, self.head_dim);
            }
        }
        ops.attention(queries, self.shape, step, LayerPages { pages: &*pages, layer }, attended);
        if let (Some(weights), Some(gates)) = (&self.gates, gates) {
            ops.matmul(normed, weights, gates);
            ops.gate_heads(attended, gates);
        }
    }
}
