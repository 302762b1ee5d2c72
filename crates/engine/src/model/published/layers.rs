//! Which layers attend to everything, and which to a window.

use super::defaults::Defaults;
use super::{Raw, Reader};
use crate::model::config::{ConfigError, Family, Layer};

impl Reader<'_> {
    pub(super) fn layers(
        &self,
        family: Family,
        raw: &Raw,
        defaults: &Defaults,
        count: usize,
    ) -> Result<Vec<Layer>, ConfigError> {
        let window = raw.sliding_window.or(defaults.sliding_window);
        // Half of it to either side, the row itself counted on both.
        let window = window.map(|window| if raw.both_ways() { window / 2 + 1 } else { window });
        let sliding = |field: &'static str| match window {
            Some(window) if window > 0 => Ok(Layer::Sliding(window)),
            _ => Err(self.inconsistent(format!(
                "`{field}` asks for sliding layers, but `sliding_window` is missing"
            ))),
        };
        if family == Family::Llama
            || (family == Family::Qwen3 && raw.use_sliding_window != Some(true))
        {
            if let Some(other) =
                raw.layer_types.iter().flatten().find(|name| *name != "full_attention")
            {
                return Err(self.unsupported(
                    "layer_types",
                    other,
                    "this family's layers are full_attention",
                ));
            }
            return Ok(vec![Layer::Full; count]);
        }
        if let Some(types) = &raw.layer_types {
            if types.len() != count {
                return Err(
                    self.inconsistent(format!("{} layer_types for {count} layers", types.len()))
                );
            }
            return types
                .iter()
                .map(|name| match name.as_str() {
                    "full_attention" => Ok(Layer::Full),
                    "sliding_attention" => sliding("layer_types"),
                    other => Err(self.unsupported(
                        "layer_types",
                        other,
                        "known: full_attention, sliding_attention",
                    )),
                })
                .collect();
        }
        if family == Family::Qwen3 {
            let full = raw.max_window_layers.unwrap_or(28);
            let sliding = sliding("use_sliding_window")?;
            return Ok((0..count)
                .map(|layer| if layer < full { Layer::Full } else { sliding })
                .collect());
        }
        let pattern =
            raw.sliding_window_pattern.or(raw.private_sliding_window_pattern).unwrap_or(6);
        if pattern == 0 {
            return Err(self.unsupported("sliding_window_pattern", 0, "it counts layers from 1"));
        }
        let sliding = sliding("sliding_window_pattern")?;
        Ok((1..=count)
            .map(|layer| if layer % pattern == 0 { Layer::Full } else { sliding })
            .collect())
    }
}
