//! Which layers attend to everything and which to a window, and which are turned by no rope.

use super::{Raw, Reader};
use crate::model::config::ConfigError;
use crate::model::families::{Traits, Windows};

impl Reader<'_> {
    /// The layers without a rope: zeros of `no_rope_layers`, or each of so many.
    pub(super) fn unturned(
        &self,
        traits: &Traits,
        raw: &Raw,
        count: usize,
    ) -> Result<Vec<usize>, ConfigError> {
        let Some(interval) = traits.unturned_interval else {
            let supported = "this family's layers all have a rope";
            return match (&raw.no_rope_layers, raw.no_rope_layer_interval) {
                (Some(layers), _) if layers.contains(&0) => {
                    Err(self.unsupported("no_rope_layers", format!("{layers:?}"), supported))
                }
                (None, Some(interval)) => {
                    Err(self.unsupported("no_rope_layer_interval", interval, supported))
                }
                // A list of ones goes before an interval.
                _ => Ok(Vec::new()),
            };
        };
        let Some(turned) = &raw.no_rope_layers else {
            let interval = raw.no_rope_layer_interval.unwrap_or(interval).max(1);
            return Ok((0..count).filter(|layer| (layer + 1).is_multiple_of(interval)).collect());
        };
        if turned.len() < count {
            let problem = format!("{} no_rope_layers for {count} layers", turned.len());
            return Err(self.inconsistent(problem));
        }
        Ok((0..count).filter(|layer| turned[*layer] == 0).collect())
    }

    pub(super) fn windows(
        &self,
        traits: &Traits,
        raw: &Raw,
        unturned: &[usize],
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
            Windows::From(_) | Windows::Unturned => raw.use_sliding_window == Some(true),
            Windows::Every => raw.sliding_window.is_some(),
            Windows::Pattern(_) | Windows::PatternToFull(_) => true,
        };
        if traits.attends_each.is_some() {
            return Ok(vec![None; count]);
        }
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
            let windows: Result<_, ConfigError> = types
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
            return windows.map(|windows| ends_full(traits, windows));
        }
        match traits.windows {
            Windows::Never => Ok(vec![None; count]),
            Windows::Every => Ok(vec![sliding("sliding_window")?; count]),
            Windows::Unturned => {
                let sliding = sliding("use_sliding_window")?;
                let layer = |layer| if unturned.contains(&layer) { sliding } else { None };
                Ok((0..count).map(layer).collect())
            }
            Windows::From(first) => {
                let first = raw.max_window_layers.unwrap_or(first);
                let sliding = sliding("use_sliding_window")?;
                let layer = |layer| if layer < first { None } else { sliding };
                Ok((0..count).map(layer).collect())
            }
            Windows::PatternToFull(pattern) => {
                let sliding = sliding("layer_types")?;
                let layer = |layer: usize| {
                    if layer.is_multiple_of(pattern) { None } else { sliding }
                };
                Ok(ends_full(traits, (1..=count).map(layer).collect()))
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

/// The last layer of some families sees everything, whatever their files say.
fn ends_full(traits: &Traits, mut windows: Vec<Option<usize>>) -> Vec<Option<usize>> {
    if let (Windows::PatternToFull(_), Some(last)) = (&traits.windows, windows.last_mut()) {
        *last = None;
    }
    windows
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use crate::model::Config;

    fn read(architecture: &str, own: Value) -> Result<Config, String> {
        let mut config = json!({
            "architectures": [architecture], "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 4,
            "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 100,
        });
        config.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        Config::from_json(config, Path::new("config.json")).map_err(|error| error.to_string())
    }

    #[test]
    fn layers_without_a_rope_are_computed_or_refused() {
        let unturned = |own| read("SmolLM3ForCausalLM", own).map(|config| config.unturned);
        assert_eq!(unturned(json!({})).unwrap(), [3]);
        assert_eq!(unturned(json!({"no_rope_layer_interval": 2})).unwrap(), [1, 3]);
        let said = json!({"no_rope_layers": [0, 1, 1, 1, 0], "no_rope_layer_interval": 4});
        assert_eq!(unturned(said).unwrap(), [0]);
        assert!(
            unturned(json!({"no_rope_layers": [1, 0]})).unwrap_err().contains("2 no_rope_layers")
        );
        for (own, field) in [
            (json!({"no_rope_layers": [1, 1, 1, 0]}), "`no_rope_layers`"),
            (json!({"no_rope_layer_interval": 4}), "`no_rope_layer_interval`"),
        ] {
            let problem = read("LlamaForCausalLM", own).unwrap_err();
            assert!(problem.contains(field), "{problem}");
        }
        let ones = json!({"no_rope_layers": [1, 1, 1, 1], "no_rope_layer_interval": 4});
        assert_eq!(read("LlamaForCausalLM", ones).unwrap().unturned, [0; 0]);
    }

    #[test]
    fn what_grows_is_computed_or_refused() {
        let rope = json!({
            "rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 16384,
            "llama_4_scaling_beta": 0.1,
        });
        let growth = read("Ministral3ForCausalLM", json!({"rope_parameters": rope}));
        assert_eq!(growth.unwrap().query_growth.map(|growth| growth.every), Some(16384.0));
        let problem = read("LlamaForCausalLM", json!({"rope_parameters": rope})).unwrap_err();
        assert!(problem.contains("llama_4_scaling_beta"), "{problem}");
        let part =
            json!({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.25}});
        assert!(read("LlamaForCausalLM", part).unwrap_err().contains("partial_rotary_factor"));
        let other = json!({"text_config": {"model_type": "mistral"}});
        assert!(
            read("Mistral3ForConditionalGeneration", other).unwrap_err().contains("model_type")
        );
    }
}
