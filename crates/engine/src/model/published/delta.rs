//! Which layers are of the gated delta rule, and their sizes.

use super::{Raw, Reader};
use crate::model::config::{ConfigError, DeltaLayers};
use crate::model::families::Traits;
use crate::ops::DeltaShape;

/// What kernels take at once of a head.
const LANES: usize = 16;

impl Reader<'_> {
    /// `None`: the family has none.
    pub(super) fn delta_layers(
        &self,
        traits: &Traits,
        raw: &Raw,
        count: usize,
    ) -> Result<Option<DeltaLayers>, ConfigError> {
        let Some(interval) = traits.attends_each else { return Ok(None) };
        let interval = raw.full_attention_interval.unwrap_or(interval);
        let layers = match &raw.layer_types {
            Some(types) if types.len() != count => {
                let problem = format!("{} layer_types for {count} layers", types.len());
                return Err(self.inconsistent(problem));
            }
            Some(types) => types.iter().map(|name| match name.as_str() {
                "full_attention" => Ok(false),
                "linear_attention" => Ok(true),
                other => {
                    let known = "known: full_attention, linear_attention";
                    Err(self.unsupported("layer_types", other, known))
                }
            }),
            None if interval == 0 => {
                let problem = "it counts layers from 1";
                return Err(self.unsupported("full_attention_interval", interval, problem));
            }
            None => {
                let layers = (1..=count).map(|layer| !layer.is_multiple_of(interval)).collect();
                return Ok(Some(DeltaLayers { layers, shape: self.delta_shape(raw)? }));
            }
        };
        let layers = layers.collect::<Result<_, _>>()?;
        Ok(Some(DeltaLayers { layers, shape: self.delta_shape(raw)? }))
    }

    fn delta_shape(&self, raw: &Raw) -> Result<DeltaShape, ConfigError> {
        let shape = DeltaShape {
            key_heads: raw.linear_num_key_heads.unwrap_or(16),
            value_heads: raw.linear_num_value_heads.unwrap_or(32),
            key_dim: raw.linear_key_head_dim.unwrap_or(128),
            value_dim: raw.linear_value_head_dim.unwrap_or(128),
            taps: raw.linear_conv_kernel_dim.unwrap_or(4),
        };
        let DeltaShape { key_heads, value_heads, key_dim, value_dim, taps } = shape;
        if key_heads == 0 || value_heads == 0 || !value_heads.is_multiple_of(key_heads) {
            let problem = format!("{value_heads} value heads cannot share {key_heads} key heads");
            return Err(self.inconsistent(problem));
        }
        for (field, size) in
            [("linear_key_head_dim", key_dim), ("linear_value_head_dim", value_dim)]
        {
            if size == 0 || !size.is_multiple_of(LANES) {
                return Err(self.unsupported(field, size, "multiples of 16 are"));
            }
        }
        match taps {
            0 => Err(self.unsupported("linear_conv_kernel_dim", taps, "it counts rows from 1")),
            _ => Ok(shape),
        }
    }
}
