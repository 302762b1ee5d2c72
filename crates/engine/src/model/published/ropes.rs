//! The ropes of full and of sliding layers, from `rope_theta`, `rope_scaling` and `rope_parameters`, as transformers takes them together.

use serde_json::{Map, Value};

use super::{Raw, Reader};
use crate::model::config::{ConfigError, RopeConfig, RopeScaling};
use crate::model::families::Traits;
use crate::ops::QueryGrowth;

/// What a file says of a rope, under a name for errors.
struct Said {
    field: &'static str,
    fields: Map<String, Value>,
}

const GROWTH: &str = "llama_4_scaling_beta";
const FULL: &str = "rope_parameters.full_attention";
const SLIDING: &str = "rope_parameters.sliding_attention";

impl Reader<'_> {
    /// Of full layers, of sliding ones.
    pub(super) fn ropes(
        &self,
        traits: &Traits,
        raw: &Raw,
    ) -> Result<(RopeConfig, RopeConfig), ConfigError> {
        let theta = raw.rope_theta.unwrap_or(traits.defaults.theta);
        let scaling = self.said("rope_scaling", raw.rope_scaling.as_ref())?;
        let parameters = self.said("rope_parameters", raw.rope_parameters.as_ref())?;
        let parts = |parameters: &Said| {
            let part = |field, name| self.said(field, parameters.fields.get(name));
            Ok((part(FULL, "full_attention")?, part(SLIDING, "sliding_attention")?))
        };
        if traits.says_ropes && parameters.is_none() {
            return Err(self.missing("rope_parameters"));
        }
        let (full, sliding) = match &parameters {
            Some(parameters) => parts(parameters)?,
            None => (None, None),
        };
        let is_by_layer = full.is_some() || sliding.is_some();
        // Where sliding layers have a rope of their own, only the others' is stretched.
        if let Some(left_out) = traits.local_theta {
            if parameters.is_some() && !is_by_layer {
                let problem = format!("`rope_parameters` has neither `{FULL}` nor `{SLIDING}`");
                return Err(self.inconsistent(problem));
            }
            let local_theta = raw.rope_local_base_freq.unwrap_or(left_out);
            let full = match (full, scaling) {
                (Some(mut full), Some(scaling)) => {
                    full.fields.extend(scaling.fields);
                    Some(full)
                }
                (full, scaling) => full.or(scaling),
            };
            return Ok((
                self.rope(full, theta, traits, raw)?,
                self.rope(sliding, local_theta, traits, raw)?,
            ));
        }
        if is_by_layer && scaling.is_none() {
            return Ok((
                self.rope(full, theta, traits, raw)?,
                self.rope(sliding, theta, traits, raw)?,
            ));
        }
        let mut one = scaling.or(parameters);
        if let (Some(said), Some(positions)) = (&mut one, &raw.original_max_position_embeddings) {
            said.fields.insert("original_max_position_embeddings".to_owned(), positions.clone());
        }
        let rope = self.rope(one, theta, traits, raw)?;
        Ok((rope, rope))
    }

    /// What queries grow by, as Llama 4 and Ministral 3 have it beside their ropes.
    pub(super) fn query_growth(
        &self,
        traits: &Traits,
        raw: &Raw,
    ) -> Result<Option<QueryGrowth>, ConfigError> {
        let Some(Said { field, fields }) =
            self.said("rope_parameters", raw.rope_parameters.as_ref())?
        else {
            return Ok(None);
        };
        let number = |name: &str| fields.get(name).and_then(Value::as_f64);
        let beta = number(GROWTH).filter(|beta| *beta != 0.0);
        match (beta, number("original_max_position_embeddings")) {
            (None, _) => Ok(None),
            (Some(beta), _) if !traits.queries_grow => {
                let supported = "this family's queries do not grow";
                Err(self.unsupported(&format!("{field}.{GROWTH}"), beta, supported))
            }
            (Some(beta), Some(every)) if every > 0.0 => {
                Ok(Some(QueryGrowth { beta: beta as f32, every: every as f32 }))
            }
            _ => Err(self.inconsistent(format!(
                "`{field}` has `{GROWTH}` without `original_max_position_embeddings`"
            ))),
        }
    }

    /// `None`: nothing, or nothing but an empty record.
    fn said(
        &self,
        field: &'static str,
        value: Option<&Value>,
    ) -> Result<Option<Said>, ConfigError> {
        match value {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(fields)) => {
                Ok(Some(Said { field, fields: fields.clone() }).filter(|_| !fields.is_empty()))
            }
            Some(other) => Err(self.unsupported(field, other, "only a record is")),
        }
    }

    fn rope(
        &self,
        said: Option<Said>,
        theta: f64,
        traits: &Traits,
        raw: &Raw,
    ) -> Result<RopeConfig, ConfigError> {
        let Some(Said { field, fields }) = said else {
            return Ok(RopeConfig { theta, scaling: RopeScaling::None });
        };
        let number = |name: &str| {
            fields.get(name).and_then(Value::as_f64).filter(|number| *number > 0.0).ok_or_else(
                || self.inconsistent(format!("`{field}` has no positive number `{name}`")),
            )
        };
        let theta = fields.get("rope_theta").and_then(Value::as_f64).unwrap_or(theta);
        let left_out = |name: &str, value| match fields.get(name) {
            None | Some(Value::Null) => Ok(value),
            Some(_) => number(name),
        };
        let original = || match raw.max_position_embeddings {
            Some(positions) if !fields.contains_key("original_max_position_embeddings") => {
                Ok(positions as f64)
            }
            _ => number("original_max_position_embeddings"),
        };
        let kind = fields.get("rope_type").or_else(|| fields.get("type"));
        let name = kind.map_or(Some("default"), Value::as_str).unwrap_or_default();
        let part = left_out("partial_rotary_factor", 1.0)?;
        // Where the share counts for all ropes, it is read as `turned_dim`.
        if part != 1.0 && name != "proportional" && traits.turned_share == 1.0 {
            let field = format!("{field}.partial_rotary_factor");
            return Err(self.unsupported(&field, part, "only whole heads are turned"));
        }
        let scaling = match name {
            "default" => RopeScaling::None,
            "linear" => RopeScaling::Linear { factor: number("factor")? },
            "llama3" => RopeScaling::Llama3 {
                factor: number("factor")?,
                low_frequency: number("low_freq_factor")?,
                high_frequency: number("high_freq_factor")?,
                original_positions: original()?,
            },
            "proportional" => RopeScaling::Proportional { part, factor: left_out("factor", 1.0)? },
            "yarn" => {
                let factor = number("factor")?;
                let scale =
                    |by: f64| if factor > 1.0 { 0.1 * by * libm::log(factor) + 1.0 } else { 1.0 };
                let plain =
                    |name: &str| fields.get(name).and_then(Value::as_f64).filter(|by| *by != 0.0);
                let magnitude = match (plain("mscale"), plain("mscale_all_dim")) {
                    (Some(own), Some(all)) => scale(own) / scale(all),
                    _ => scale(1.0),
                };
                RopeScaling::Yarn {
                    factor,
                    fast: left_out("beta_fast", 32.0)?,
                    slow: left_out("beta_slow", 1.0)?,
                    original_positions: original()?,
                    truncates: fields.get("truncate").and_then(Value::as_bool).unwrap_or(true),
                    magnitude: left_out("attention_factor", magnitude)?,
                }
            }
            _ => {
                return Err(self.unsupported(
                    &format!("{field}.rope_type"),
                    kind.map_or_else(String::new, |kind| kind.to_string()),
                    "known: default, linear, llama3, proportional, yarn",
                ));
            }
        };
        Ok(RopeConfig { theta, scaling })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::model::Config;

    fn read(architecture: &str, own: Value) -> Result<Config, String> {
        let mut config = json!({
            "architectures": [architecture], "hidden_size": 64, "intermediate_size": 64,
            "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 4,
            "vocab_size": 100, "sliding_window": 8, "max_position_embeddings": 4096,
        });
        config.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        Config::from_json(config, Path::new("config.json")).map_err(|error| error.to_string())
    }

    /// What transformers 5.24 makes of the same files.
    #[test]
    fn what_two_fields_say_is_taken_together() {
        let linear = RopeScaling::Linear { factor: 4.0 };
        let saved = json!({"rope_theta": 1e6, "rope_type": "default"});
        let card = json!({"rope_type": "linear", "factor": 4.0, "rope_theta": 5e5});
        let both = json!({"rope_parameters": saved, "rope_scaling": card});
        let config = read("Qwen3ForCausalLM", both).unwrap();
        assert_eq!(config.full_rope, RopeConfig { theta: 5e5, scaling: linear });
        let other = json!({"rope_type": "longrope", "factor": 4.0});
        let both = json!({"rope_parameters": saved, "rope_scaling": other});
        let problem = read("Qwen3ForCausalLM", both).unwrap_err();
        assert!(problem.contains("`rope_scaling.rope_type` is \"longrope\""), "{problem}");

        let by_layer = json!({
            "full_attention": {"rope_theta": 2e6, "rope_type": "default"},
            "sliding_attention": {"rope_theta": 2e4, "rope_type": "default"},
        });
        let both = json!({
            "rope_parameters": by_layer, "rope_scaling": {"rope_type": "linear", "factor": 4.0},
        });
        let config = read("Gemma3ForCausalLM", both).unwrap();
        assert_eq!(config.full_rope, RopeConfig { theta: 2e6, scaling: linear });
        assert_eq!(config.sliding_rope, RopeConfig { theta: 2e4, scaling: RopeScaling::None });
        let flat = read("Gemma3ForCausalLM", json!({"rope_parameters": saved})).unwrap_err();
        assert!(flat.contains("rope_parameters.full_attention"), "{flat}");
        for odd in [json!("yarn"), json!([]), json!({"rope_type": 3})] {
            let problem = read("LlamaForCausalLM", json!({"rope_scaling": odd})).unwrap_err();
            assert!(problem.contains("rope_scaling"), "{problem}");
        }
    }

    #[test]
    fn the_positions_of_the_training_stand_in_three_places() {
        let scaling = json!({
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        });
        let mut own = scaling.clone();
        own["original_max_position_embeddings"] = json!(1024);
        for (fields, expected) in [
            (json!({"rope_scaling": scaling}), 4096.0),
            (json!({"rope_scaling": own}), 1024.0),
            (json!({"rope_scaling": own, "original_max_position_embeddings": 2048}), 2048.0),
            (json!({"rope_scaling": scaling, "original_max_position_embeddings": 2048}), 2048.0),
        ] {
            let RopeScaling::Llama3 { original_positions, .. } =
                read("LlamaForCausalLM", fields.clone()).unwrap().full_rope.scaling
            else {
                panic!("{fields}");
            };
            assert_eq!(original_positions, expected, "{fields}");
        }
    }

    #[test]
    fn an_activation_has_one_name_in_a_family() {
        use crate::ops::Activation::{GeluTanh, Silu};
        let both = json!({"hidden_act": "silu", "hidden_activation": "gelu_pytorch_tanh"});
        let other = json!({"hidden_act": "silu"});
        for (architecture, fields, expected) in [
            ("LlamaForCausalLM", &both, Silu),
            ("Gemma3ForCausalLM", &both, GeluTanh),
            ("Gemma3ForCausalLM", &other, GeluTanh),
            ("Qwen3ForCausalLM", &json!({"hidden_activation": "gelu_pytorch_tanh"}), Silu),
        ] {
            assert_eq!(read(architecture, fields.clone()).unwrap().activation, expected);
        }
    }
}
