//! Where layers differ: the width of their heads, whose keys and values they see, and where those lie.

use super::ModelError;
use super::attention::Keys;
use super::config::Config;
use super::weights::Loader;
use crate::ops::{Backend, HeadNorms, PageShape};

/// Where a layer's keys and values lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyPlace {
    /// Of the pools of pages.
    pub pool: usize,
    /// Of those in the pool.
    pub layer: usize,
}

impl Config {
    /// Numbers of each head of a layer.
    pub fn head_dim_of(&self, layer: usize) -> usize {
        if self.windows[layer].is_some() { self.head_dim } else { self.full_head_dim }
    }

    /// Numbers between the products of its feed-forward layer.
    pub fn inner_of(&self, layer: usize) -> usize {
        self.intermediate_size * if self.is_sharing(layer) { self.sharing_width } else { 1 }
    }

    /// Layers with keys and values of their own, which come first.
    pub fn own_layers(&self) -> usize {
        self.layer_count().saturating_sub(self.sharing_layers)
    }

    /// Whether it sees another's keys and values.
    pub fn is_sharing(&self, layer: usize) -> bool {
        layer >= self.own_layers()
    }

    /// What the pages of each pool hold: heads of one width lie in one.
    pub fn page_shapes(&self) -> Vec<PageShape> {
        let own = || self.attending().filter(|layer| !self.is_sharing(*layer));
        let shape = |layers, head_dim| PageShape { layers, kv_heads: self.kv_heads, head_dim };
        if self.head_dim == self.full_head_dim {
            return vec![shape(own().count(), self.head_dim)];
        }
        let sliding = own().filter(|layer| self.windows[*layer].is_some()).count();
        vec![shape(sliding, self.head_dim), shape(own().count() - sliding, self.full_head_dim)]
    }

    /// How many numbers of a head the rope of layers that see all positions turns.
    pub(super) fn full_turned_dim(&self) -> usize {
        if self.head_dim == self.full_head_dim { self.turned_dim } else { self.full_head_dim }
    }

    /// Of the shapes the one with the widest heads.
    pub(super) fn widest_page_shape(&self) -> PageShape {
        let head_dim = self.head_dim.max(self.full_head_dim);
        PageShape { layers: self.own_layers(), kv_heads: self.kv_heads, head_dim }
    }

    /// Where a layer finds keys and values: its own, or those of the last layer of its kind that has some.
    pub(super) fn key_place(&self, layer: usize) -> KeyPlace {
        let is_like =
            |other: &usize| self.windows[*other].is_some() == self.windows[layer].is_some();
        let owner = match self.is_sharing(layer) {
            true => (0..self.own_layers()).rfind(is_like).unwrap_or(0),
            false => layer,
        };
        if self.head_dim == self.full_head_dim {
            return KeyPlace { pool: 0, layer: self.place(owner) };
        }
        let pool = if self.windows[layer].is_some() { 0 } else { 1 };
        KeyPlace { pool, layer: (0..owner).filter(is_like).count() }
    }

    /// Whether kernels for GPUs of NVIDIA take the widths of its layers: they multiply in tiles of 32 numbers, of which a narrower
    /// layer must not leave a part as a wider one had it.
    pub(super) fn fits_tiles(&self) -> bool {
        let heads = [self.head_dim, self.full_head_dim].map(|head_dim| self.heads * head_dim);
        let inner = [1, self.sharing_width].map(|wider| self.intermediate_size * wider);
        let fits = |widths: [usize; 2]| {
            widths[0] == widths[1] || widths.iter().all(|width| width.is_multiple_of(32))
        };
        fits(heads) && fits(inner)
    }
}

impl<B: Backend> Loader<'_, B> {
    /// The norms of a layer's heads.
    pub fn keys(&self, layer: usize) -> Result<Keys<B>, ModelError> {
        let (traits, head_dim) = (self.config.family.traits(), self.config.head_dim_of(layer));
        let name = |part: &str| format!("layers.{layer}.self_attn.{part}");
        let norm =
            |part: &str| traits.norms_heads.then(|| self.norm(&name(part), head_dim)).transpose();
        let query = norm("q_norm")?;
        if self.config.is_sharing(layer) {
            // Published files have the keys and values that nothing reads, too.
            ["k_proj", "v_proj", "k_norm"].iter().for_each(|part| self.pass_over(&name(part)));
            return Ok(Keys::Shared(query));
        }
        let ones = || self.ops.vector(vec![1.0; head_dim]);
        let value = traits.parts.norms_values.then(ones).transpose()?;
        let (norms, epsilon) = (query.zip(norm("k_norm")?), self.config.rms_norm_eps);
        Ok(Keys::Own(norms.map(|(query, key)| HeadNorms { query, key, value, epsilon })))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    #[test]
    fn layers_that_share_find_the_last_one_of_their_kind() {
        let kinds = ["s", "s", "f", "s", "f", "s", "f"]
            .map(|kind| if kind == "s" { "sliding_attention" } else { "full_attention" });
        let own = json!({
            "architectures": ["Gemma4ForCausalLM"], "hidden_size": 64, "intermediate_size": 64,
            "num_hidden_layers": 7, "vocab_size": 100, "vocab_size_per_layer_input": 100,
            "layer_types": kinds,
            "num_kv_shared_layers": 2, "use_double_wide_mlp": true, "num_key_value_heads": 1,
            "rope_parameters": {
                "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        });
        let config = Config::from_json(own, Path::new("config.json")).unwrap();
        let shape = |layers, head_dim| PageShape { layers, kv_heads: 1, head_dim };
        assert_eq!(config.page_shapes(), [shape(3, 256), shape(2, 512)]);
        let places: Vec<_> = (0..7).map(|layer| config.key_place(layer)).collect();
        let expected = [(0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (0, 2), (1, 1)];
        assert_eq!(places, expected.map(|(pool, layer)| KeyPlace { pool, layer }));
        assert_eq!([4, 5].map(|layer| config.inner_of(layer)), [64, 128]);
        assert!(config.fits_tiles());
        assert!(!Config { intermediate_size: 72, ..config }.fits_tiles());
    }
}
