//! `config.json` as published, with the defaults that published files leave out, resolved to one description.
//!
//! What the decoder cannot run is refused here, by field and value, so that nothing further in branches on it.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::config::{Config, ConfigError, Family, Ids, Layer, RopeConfig, RopeScaling};
use crate::ops::Activation;

/// Fields of all three families; those of a vision or audio part are not ours and are passed over.
#[derive(Clone, Debug, Default, Deserialize)]
struct Raw {
    architectures: Option<Vec<String>>,
    model_type: Option<String>,
    text_config: Option<Value>,
    hidden_size: Option<usize>,
    intermediate_size: Option<usize>,
    num_hidden_layers: Option<usize>,
    num_attention_heads: Option<usize>,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    vocab_size: Option<usize>,
    max_position_embeddings: Option<usize>,
    rms_norm_eps: Option<f64>,
    hidden_act: Option<String>,
    hidden_activation: Option<String>,
    query_pre_attn_scalar: Option<f64>,
    tie_word_embeddings: Option<bool>,
    rope_theta: Option<f64>,
    rope_local_base_freq: Option<f64>,
    rope_scaling: Option<Value>,
    rope_parameters: Option<Value>,
    sliding_window: Option<usize>,
    use_sliding_window: Option<bool>,
    max_window_layers: Option<usize>,
    sliding_window_pattern: Option<usize>,
    #[serde(rename = "_sliding_window_pattern")]
    private_sliding_window_pattern: Option<usize>,
    layer_types: Option<Vec<String>>,
    attention_bias: Option<bool>,
    mlp_bias: Option<bool>,
    attn_logit_softcapping: Option<f64>,
    final_logit_softcapping: Option<f64>,
    use_bidirectional_attention: Option<bool>,
    quantization_config: Option<Value>,
    eos_token_id: Option<Ids>,
    bos_token_id: Option<Ids>,
}

pub(super) fn resolve(value: Value, path: &Path) -> Result<Config, ConfigError> {
    let parse = |value| {
        serde_json::from_value::<Raw>(value).map_err(|source| ConfigError::Json {
            path: path.to_owned(),
            source,
        })
    };
    let outer = parse(value)?;
    let reader = Reader { path };
    let family = reader.family(&outer)?;
    let mut text = match &outer.text_config {
        Some(nested) => parse(nested.clone())?,
        None => outer.clone(),
    };
    // The outer file's end-of-turn ids and tying hold for the nested decoder unless it has its own.
    text.eos_token_id = text.eos_token_id.or(outer.eos_token_id);
    text.bos_token_id = text.bos_token_id.or(outer.bos_token_id);
    text.tie_word_embeddings = text.tie_word_embeddings.or(outer.tie_word_embeddings);
    text.quantization_config = text.quantization_config.or(outer.quantization_config);
    reader.resolve(family, &text)
}

/// What a family's published files leave out.
struct Defaults {
    heads: Option<usize>,
    kv_heads: Option<usize>,
    head_dim: Option<usize>,
    vocab_size: Option<usize>,
    max_position_embeddings: usize,
    tied: bool,
    theta: f64,
    activation: &'static str,
    sliding_window: Option<usize>,
}

impl Family {
    fn defaults(self) -> Defaults {
        match self {
            Family::Gemma3 => Defaults {
                heads: Some(8),
                kv_heads: Some(4),
                head_dim: Some(256),
                vocab_size: Some(262_208),
                max_position_embeddings: 131_072,
                tied: true,
                theta: 1e6,
                activation: "gelu_pytorch_tanh",
                sliding_window: Some(4096),
            },
            Family::Llama => Defaults {
                heads: None,
                kv_heads: None,
                head_dim: None,
                vocab_size: None,
                max_position_embeddings: 2048,
                tied: false,
                theta: 1e4,
                activation: "silu",
                sliding_window: None,
            },
            Family::Qwen3 => Defaults {
                heads: None,
                kv_heads: None,
                head_dim: Some(128),
                vocab_size: None,
                max_position_embeddings: 32_768,
                tied: false,
                theta: 1e4,
                activation: "silu",
                sliding_window: None,
            },
        }
    }
}

struct Reader<'a> {
    path: &'a Path,
}

impl Reader<'_> {
    fn unsupported(&self, field: &str, value: impl ToString, supported: &str) -> ConfigError {
        ConfigError::Unsupported {
            path: self.path.to_owned(),
            field: field.to_owned(),
            value: value.to_string(),
            supported: supported.to_owned(),
        }
    }

    fn family(&self, raw: &Raw) -> Result<Family, ConfigError> {
        const KNOWN: &str = "known: Gemma3ForConditionalGeneration, Gemma3ForCausalLM, LlamaForCausalLM, Qwen3ForCausalLM";
        let architecture = raw.architectures.as_ref().and_then(|names| names.first());
        match (architecture.map(String::as_str), raw.model_type.as_deref()) {
            (Some("Gemma3ForConditionalGeneration" | "Gemma3ForCausalLM"), _)
            | (None, Some("gemma3" | "gemma3_text")) => Ok(Family::Gemma3),
            (Some("LlamaForCausalLM"), _) | (None, Some("llama")) => Ok(Family::Llama),
            (Some("Qwen3ForCausalLM"), _) | (None, Some("qwen3")) => Ok(Family::Qwen3),
            (Some(name), _) => Err(self.unsupported("architectures", name, KNOWN)),
            (None, Some(name)) => Err(self.unsupported("model_type", name, KNOWN)),
            (None, None) => Err(ConfigError::Missing {
                path: self.path.to_owned(),
                field: "architectures",
            }),
        }
    }

    fn resolve(&self, family: Family, raw: &Raw) -> Result<Config, ConfigError> {
        self.refuse_unknown_parts(raw)?;
        let defaults = family.defaults();
        let need = |value: Option<usize>, field| {
            value
                .filter(|&value| value > 0)
                .ok_or(ConfigError::Missing {
                    path: self.path.to_owned(),
                    field,
                })
        };
        let hidden_size = need(raw.hidden_size, "hidden_size")?;
        let heads = need(
            raw.num_attention_heads.or(defaults.heads),
            "num_attention_heads",
        )?;
        let kv_heads = raw
            .num_key_value_heads
            .or(defaults.kv_heads)
            .unwrap_or(heads);
        let head_dim = raw
            .head_dim
            .or(defaults.head_dim)
            .unwrap_or(hidden_size / heads);
        if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            return Err(self.inconsistent(format!(
                "{heads} attention heads cannot share {kv_heads} key-value heads"
            )));
        }
        if head_dim == 0 || !head_dim.is_multiple_of(2) {
            return Err(
                self.inconsistent(format!("head_dim {head_dim} is not a positive even number"))
            );
        }
        let layer_count = need(raw.num_hidden_layers, "num_hidden_layers")?;
        let attention_scale = raw
            .query_pre_attn_scalar
            .filter(|_| family == Family::Gemma3);
        let attention_scale = attention_scale.unwrap_or(match family {
            Family::Gemma3 => 256.0,
            Family::Llama | Family::Qwen3 => head_dim as f64,
        });
        let (full_rope, sliding_rope) = self.ropes(family, raw, &defaults)?;
        Ok(Config {
            family,
            hidden_size,
            intermediate_size: need(raw.intermediate_size, "intermediate_size")?,
            heads,
            kv_heads,
            head_dim,
            vocab_size: need(raw.vocab_size.or(defaults.vocab_size), "vocab_size")?,
            max_position_embeddings: raw
                .max_position_embeddings
                .unwrap_or(defaults.max_position_embeddings),
            rms_norm_eps: raw.rms_norm_eps.unwrap_or(1e-6) as f32,
            activation: self.activation(raw, &defaults)?,
            attention_scale: attention_scale.powf(-0.5) as f32,
            tied_embeddings: raw.tie_word_embeddings.unwrap_or(defaults.tied),
            layers: self.layers(family, raw, &defaults, layer_count)?,
            full_rope,
            sliding_rope,
            eos_ids: raw
                .eos_token_id
                .as_ref()
                .map(Ids::to_vec)
                .unwrap_or_default(),
            bos_id: raw
                .bos_token_id
                .as_ref()
                .and_then(|ids| ids.to_vec().first().copied()),
        })
    }

    fn inconsistent(&self, problem: String) -> ConfigError {
        ConfigError::Inconsistent {
            path: self.path.to_owned(),
            problem,
        }
    }

    fn refuse_unknown_parts(&self, raw: &Raw) -> Result<(), ConfigError> {
        for (field, value) in [
            ("attention_bias", raw.attention_bias),
            ("mlp_bias", raw.mlp_bias),
            (
                "use_bidirectional_attention",
                raw.use_bidirectional_attention,
            ),
        ] {
            if value == Some(true) {
                return Err(self.unsupported(field, "true", "only false is"));
            }
        }
        for (field, value) in [
            ("attn_logit_softcapping", raw.attn_logit_softcapping),
            ("final_logit_softcapping", raw.final_logit_softcapping),
        ] {
            if let Some(value) = value {
                return Err(self.unsupported(field, value, "only null is"));
            }
        }
        if let Some(quantization) = raw
            .quantization_config
            .as_ref()
            .filter(|value| !value.is_null())
        {
            let method = &quantization["quant_method"];
            return Err(self.unsupported(
                "quantization_config",
                method,
                "only unquantised checkpoints are",
            ));
        }
        Ok(())
    }

    fn activation(&self, raw: &Raw, defaults: &Defaults) -> Result<Activation, ConfigError> {
        let (field, name) = match (&raw.hidden_activation, &raw.hidden_act) {
            (Some(name), _) => ("hidden_activation", name.as_str()),
            (None, Some(name)) => ("hidden_act", name.as_str()),
            (None, None) => ("hidden_act", defaults.activation),
        };
        match name {
            "silu" | "swish" => Ok(Activation::Silu),
            "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
            other => Err(self.unsupported(field, other, "known: silu, gelu_pytorch_tanh")),
        }
    }

    fn layers(
        &self,
        family: Family,
        raw: &Raw,
        defaults: &Defaults,
        count: usize,
    ) -> Result<Vec<Layer>, ConfigError> {
        let window = raw.sliding_window.or(defaults.sliding_window);
        let sliding = |field: &'static str| match window {
            Some(window) if window > 0 => Ok(Layer::Sliding(window)),
            _ => Err(self.inconsistent(format!(
                "`{field}` asks for sliding layers, but `sliding_window` is missing"
            ))),
        };
        if family == Family::Llama
            || (family == Family::Qwen3 && raw.use_sliding_window != Some(true))
        {
            if let Some(other) = raw
                .layer_types
                .iter()
                .flatten()
                .find(|name| *name != "full_attention")
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
        let pattern = raw
            .sliding_window_pattern
            .or(raw.private_sliding_window_pattern)
            .unwrap_or(6);
        if pattern == 0 {
            return Err(self.unsupported("sliding_window_pattern", 0, "it counts layers from 1"));
        }
        let sliding = sliding("sliding_window_pattern")?;
        Ok((1..=count)
            .map(|layer| {
                if layer % pattern == 0 {
                    Layer::Full
                } else {
                    sliding
                }
            })
            .collect())
    }

    /// The ropes of full and of sliding layers, from `rope_theta` and `rope_scaling`, or from `rope_parameters`.
    fn ropes(
        &self,
        family: Family,
        raw: &Raw,
        defaults: &Defaults,
    ) -> Result<(RopeConfig, RopeConfig), ConfigError> {
        let local_theta = match family {
            Family::Gemma3 => raw.rope_local_base_freq.unwrap_or(1e4),
            Family::Llama | Family::Qwen3 => raw.rope_theta.unwrap_or(defaults.theta),
        };
        let theta = raw.rope_theta.unwrap_or(defaults.theta);
        let Some(parameters) = raw
            .rope_parameters
            .as_ref()
            .filter(|value| !value.is_null())
        else {
            let full = self.rope("rope_scaling", raw.rope_scaling.as_ref(), theta)?;
            // Gemma stretches its global layers only.
            let sliding = match family {
                Family::Gemma3 => RopeConfig {
                    theta: local_theta,
                    scaling: RopeScaling::None,
                },
                Family::Llama | Family::Qwen3 => full,
            };
            return Ok((full, sliding));
        };
        if parameters.get("full_attention").is_some()
            || parameters.get("sliding_attention").is_some()
        {
            let full = self.rope(
                "rope_parameters.full_attention",
                parameters.get("full_attention"),
                theta,
            )?;
            let sliding = parameters.get("sliding_attention");
            Ok((
                full,
                self.rope("rope_parameters.sliding_attention", sliding, local_theta)?,
            ))
        } else {
            let full = self.rope("rope_parameters", Some(parameters), theta)?;
            let sliding = match family {
                Family::Gemma3 => RopeConfig {
                    theta: local_theta,
                    scaling: RopeScaling::None,
                },
                Family::Llama | Family::Qwen3 => full,
            };
            Ok((full, sliding))
        }
    }

    fn rope(
        &self,
        field: &str,
        value: Option<&Value>,
        theta: f64,
    ) -> Result<RopeConfig, ConfigError> {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return Ok(RopeConfig {
                theta,
                scaling: RopeScaling::None,
            });
        };
        let number = |name: &str| {
            value
                .get(name)
                .and_then(Value::as_f64)
                .filter(|number| *number > 0.0)
                .ok_or_else(|| {
                    self.inconsistent(format!("`{field}` has no positive number `{name}`"))
                })
        };
        let theta = value
            .get("rope_theta")
            .and_then(Value::as_f64)
            .unwrap_or(theta);
        let kind = value.get("rope_type").or_else(|| value.get("type"));
        let scaling = match kind.and_then(Value::as_str).unwrap_or("default") {
            "default" => RopeScaling::None,
            "linear" => RopeScaling::Linear {
                factor: number("factor")?,
            },
            "llama3" => RopeScaling::Llama3 {
                factor: number("factor")?,
                low_frequency: number("low_freq_factor")?,
                high_frequency: number("high_freq_factor")?,
                original_positions: number("original_max_position_embeddings")?,
            },
            other => {
                return Err(self.unsupported(
                    &format!("{field}.rope_type"),
                    other,
                    "known: default, linear, llama3",
                ));
            }
        };
        Ok(RopeConfig { theta, scaling })
    }
}
