//! Which layers attend to everything, and which to a window.

use super::{Raw, Reader};
use crate::model::config::ConfigError;
use crate::model::families::{Traits, Windows};

impl Reader<'_> {
    pub(super) fn windows(
        &self,
        traits: &Traits,
        raw: &Raw,
        count: usize,
    ) -> Result<Vec<Option<usize>>, ConfigError> {
        let window = raw.sliding_window.or(traits.defaults.sliding_window);
        let sliding = |field: &'static str| match window {
            Some(window) if window > 0 => Ok(Some(window)),
            _ => Err(self.inconsistent(format!(
                "`{field}` asks for sliding layers, but `sliding_window` is missing"
            ))),
        };
        let has_windows = match traits.windows {
            Windows::Never => false,
            Windows::From(_) => raw.use_sliding_window == Some(true),
            Windows::Pattern(_) => true,
        };
        if !has_windows {
            if let Some(other) =
                raw.layer_types.iter().flatten().find(|name| *name != "full_attention")
            {
                return Err(self.unsupported(
                    "layer_types",
                    other,
                    "this family's layers are full_attention",
                ));
            }
            return Ok(vec![None; count]);
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
                    "full_attention" => Ok(None),
                    "sliding_attention" => sliding("layer_types"),
                    other => Err(self.unsupported(
                        "layer_types",
                        other,
                        "known: full_attention, sliding_attention",
                    )),
                })
                .collect();
        }
        match traits.windows {
            Windows::Never => Ok(vec![None; count]),
            Windows::From(first) => {
                let first = raw.max_window_layers.unwrap_or(first);
                let sliding = sliding("use_sliding_window")?;
                let layer = |layer| if layer < first { None } else { sliding };
                Ok((0..count).map(layer).collect())
            }
            Windows::Pattern(pattern) => {
                let pattern = raw
                    .sliding_window_pattern
                    .or(raw.private_sliding_window_pattern)
                    .unwrap_or(pattern);
                if pattern == 0 {
                    return Err(self.unsupported(
                        "sliding_window_pattern",
                        0,
                        "it counts layers from 1",
                    ));
                }
                let sliding = sliding("sliding_window_pattern")?;
                let layer = |layer: usize| {
                    if layer.is_multiple_of(pattern) { None } else { sliding }
                };
                Ok((1..=count).map(layer).collect())
            }
        }
    }
}
