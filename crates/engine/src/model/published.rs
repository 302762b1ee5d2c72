//! `config.json` as published, with the defaults that published files leave out, resolved to one description.
//!
//! What the decoder cannot run is refused here, by field and value, so that nothing further in branches on it.

mod delta;
mod layers;
mod parts;
mod ropes;

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::config::{Config, ConfigError, Ids};
use super::families::{Defaults, Family, Traits};
use crate::ops::Activation;

/// Fields of all families; those of a vision or audio part are not ours and are passed over.
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
    original_max_position_embeddings: Option<Value>,
    sliding_window: Option<usize>,
    use_sliding_window: Option<bool>,
    max_window_layers: Option<usize>,
    sliding_window_pattern: Option<usize>,
    #[serde(rename = "_sliding_window_pattern")]
    private_sliding_window_pattern: Option<usize>,
    layer_types: Option<Vec<String>>,
    /// 1 for a layer that has a rope, 0 for one that has none.
    no_rope_layers: Option<Vec<u8>>,
    no_rope_layer_interval: Option<usize>,
    full_attention_interval: Option<usize>,
    linear_num_key_heads: Option<usize>,
    linear_num_value_heads: Option<usize>,
    linear_key_head_dim: Option<usize>,
    linear_value_head_dim: Option<usize>,
    linear_conv_kernel_dim: Option<usize>,
    mamba_ssm_dtype: Option<String>,
    attn_output_gate: Option<bool>,
    partial_rotary_factor: Option<f64>,
    attention_bias: Option<bool>,
    mlp_bias: Option<bool>,
    attn_logit_softcapping: Option<f64>,
    final_logit_softcapping: Option<f64>,
    use_bidirectional_attention: Option<Value>,
    global_head_dim: Option<usize>,
    num_kv_shared_layers: Option<usize>,
    use_double_wide_mlp: Option<bool>,
    hidden_size_per_layer_input: Option<usize>,
    vocab_size_per_layer_input: Option<usize>,
    attention_k_eq_v: Option<bool>,
    enable_moe_block: Option<bool>,
    per_layer_config: Option<Value>,
    quantization_config: Option<Value>,
    eos_token_id: Option<Ids>,
}

pub(super) fn resolve(value: Value, path: &Path) -> Result<Config, ConfigError> {
    let parse = |value| {
        serde_json::from_value::<Raw>(value).map_err(|error| ConfigError::damaged(path, error))
    };
    let outer = parse(value)?;
    let reader = Reader { path };
    let family = reader.family(&outer)?;
    let mut text = match &outer.text_config {
        Some(nested) => parse(nested.clone())?,
        None => outer.clone(),
    };
    reader.refuse_other_text(family, &text)?;
    // The outer file's end-of-turn ids and tying hold for the nested decoder unless it has its own.
    text.eos_token_id = text.eos_token_id.or(outer.eos_token_id);
    text.tie_word_embeddings = text.tie_word_embeddings.or(outer.tie_word_embeddings);
    text.quantization_config = text.quantization_config.or(outer.quantization_config);
    reader.resolve(family, &text)
}

/// Eight times what the largest published models have.
const MOST_LAYERS: usize = 1 << 10;
/// The same, of rows and columns of a tensor.
const MOST_SIZE: usize = 1 << 24;
/// The same, of heads with states, and of what they hold.
const MOST_HEADS: usize = 1 << 12;
/// The same, of tokens of context.
const MOST_POSITIONS: usize = 1 << 28;

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
        let named = raw.architectures.as_ref().and_then(|names| names.first());
        let (field, name, names): (_, _, fn(&Traits) -> _) = match (named, &raw.model_type) {
            (Some(name), _) => ("architectures", name, |traits| traits.architectures),
            (None, Some(name)) => ("model_type", name, |traits| traits.model_types),
            (None, None) => return Err(self.missing("architectures")),
        };
        let has_name = |family: &Family| names(family.traits()).contains(&name.as_str());
        Family::ALL.into_iter().find(has_name).ok_or_else(|| {
            let known: Vec<_> =
                Family::ALL.iter().flat_map(|family| names(family.traits())).copied().collect();
            self.unsupported(field, name, &format!("known: {}", known.join(", ")))
        })
    }

    /// One outer name may stand for several decoders.
    fn refuse_other_text(&self, family: Family, text: &Raw) -> Result<(), ConfigError> {
        let known = family.traits().model_types;
        match text.model_type.as_deref().filter(|name| !known.contains(name)) {
            Some(name) => Err(self.unsupported(
                "model_type",
                name,
                &format!("known of {}: {}", family.name(), known.join(", ")),
            )),
            None => Ok(()),
        }
    }

    fn resolve(&self, family: Family, raw: &Raw) -> Result<Config, ConfigError> {
        let traits = family.traits();
        self.refuse_unknown_parts(traits, raw)?;
        let defaults = &traits.defaults;
        self.refuse_sizes(raw)?;
        let need = |value: Option<usize>, field| {
            value.filter(|&value| value > 0).ok_or_else(|| self.missing(field))
        };
        let hidden_size = need(raw.hidden_size, "hidden_size")?;
        let heads = need(raw.num_attention_heads.or(defaults.heads), "num_attention_heads")?;
        let kv_heads = raw.num_key_value_heads.or(defaults.kv_heads).unwrap_or(heads);
        let head_dim = raw.head_dim.or(defaults.head_dim).unwrap_or(hidden_size / heads);
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
        let scalar =
            traits.attention_scalar.map(|left_out| raw.query_pre_attn_scalar.unwrap_or(left_out));
        let scalar = scalar.unwrap_or(head_dim as f64);
        let parts = self.parts(traits, raw, head_dim)?;
        let (full_rope, sliding_rope) = self.ropes(traits, raw)?;
        let unturned = self.unturned(traits, raw, layer_count)?;
        let windows = self.windows(traits, raw, &unturned, layer_count)?;
        let vocab_size = need(raw.vocab_size.or(defaults.vocab_size), "vocab_size")?;
        self.check_parts(&parts, raw, &windows, vocab_size)?;
        Ok(Config {
            family,
            hidden_size,
            intermediate_size: need(raw.intermediate_size, "intermediate_size")?,
            heads,
            kv_heads,
            head_dim,
            full_head_dim: parts.full_head_dim,
            vocab_size,
            max_position_embeddings: raw
                .max_position_embeddings
                .unwrap_or(defaults.max_position_embeddings),
            rms_norm_eps: raw.rms_norm_eps.unwrap_or(1e-6) as f32,
            activation: self.activation(raw, defaults)?,
            attention_scale: libm::pow(scalar, -0.5) as f32,
            tied_embeddings: raw.tie_word_embeddings.unwrap_or(defaults.tied),
            windows,
            delta: self.delta_layers(traits, raw, layer_count)?,
            turned_dim: self.turned_dim(traits, raw, head_dim)?,
            full_rope,
            sliding_rope,
            unturned,
            query_growth: self.query_growth(traits, raw)?,
            sharing_layers: parts.sharing_layers,
            sharing_width: parts.sharing_width,
            layer_input: parts.layer_input,
            logit_cap: parts.logit_cap,
            eos_ids: raw.eos_token_id.as_ref().map(Ids::to_vec).unwrap_or_default(),
        })
    }

    fn inconsistent(&self, problem: String) -> ConfigError {
        ConfigError::damaged(self.path, problem)
    }

    fn missing(&self, field: &str) -> ConfigError {
        self.inconsistent(format!("`{field}` is missing"))
    }

    /// What no machine holds is refused before it is asked for.
    fn refuse_sizes(&self, raw: &Raw) -> Result<(), ConfigError> {
        let sizes = [
            ("num_hidden_layers", raw.num_hidden_layers, MOST_LAYERS),
            ("hidden_size", raw.hidden_size, MOST_SIZE),
            ("intermediate_size", raw.intermediate_size, MOST_SIZE),
            ("num_attention_heads", raw.num_attention_heads, MOST_SIZE),
            ("num_key_value_heads", raw.num_key_value_heads, MOST_SIZE),
            ("head_dim", raw.head_dim, MOST_SIZE),
            ("global_head_dim", raw.global_head_dim, MOST_SIZE),
            ("hidden_size_per_layer_input", raw.hidden_size_per_layer_input, MOST_SIZE),
            ("vocab_size", raw.vocab_size, MOST_SIZE),
            ("max_position_embeddings", raw.max_position_embeddings, MOST_POSITIONS),
            ("sliding_window", raw.sliding_window, MOST_POSITIONS),
            ("linear_num_key_heads", raw.linear_num_key_heads, MOST_HEADS),
            ("linear_num_value_heads", raw.linear_num_value_heads, MOST_HEADS),
            ("linear_key_head_dim", raw.linear_key_head_dim, MOST_HEADS),
            ("linear_value_head_dim", raw.linear_value_head_dim, MOST_HEADS),
            ("linear_conv_kernel_dim", raw.linear_conv_kernel_dim, MOST_HEADS),
        ];
        for (field, size, most) in sizes {
            if let Some(size) = size.filter(|size| *size > most) {
                return Err(
                    self.inconsistent(format!("`{field}` is {size}; {most} at most are taken"))
                );
            }
        }
        Ok(())
    }

    fn refuse_unknown_parts(&self, traits: &Traits, raw: &Raw) -> Result<(), ConfigError> {
        let is_on = |said: Option<bool>| said.filter(|is_on| *is_on).map(|is_on| is_on.to_string());
        let number = |said: Option<f64>| said.map(|number| number.to_string());
        let quantised = raw.quantization_config.as_ref().filter(|value| !value.is_null());
        let method = quantised.map(|value| value["quant_method"].to_string());
        let gate = raw.attn_output_gate.filter(|is_gated| *is_gated != traits.gates_heads);
        let state = raw.mamba_ssm_dtype.clone().filter(|kept| kept != "float32");
        let (no_cap, writes) = ("only null is", "a model that writes text has false");
        // Of images alone, which no prompt has.
        let sees_ahead = raw
            .use_bidirectional_attention
            .as_ref()
            .filter(|said| !said.is_null() && **said != Value::Bool(false) && *said != "vision");
        let cap = raw.final_logit_softcapping.filter(|_| !traits.parts.caps_logits);
        let parts = [
            ("attention_bias", is_on(raw.attention_bias), "only false is"),
            ("mlp_bias", is_on(raw.mlp_bias), "only false is"),
            ("use_bidirectional_attention", sees_ahead.map(Value::to_string), writes),
            ("attn_logit_softcapping", number(raw.attn_logit_softcapping), no_cap),
            ("final_logit_softcapping", number(cap), no_cap),
            ("enable_moe_block", is_on(raw.enable_moe_block), "only false is: no experts"),
            ("attention_k_eq_v", is_on(raw.attention_k_eq_v), "only false is"),
            (
                "attn_output_gate",
                gate.map(|gate| gate.to_string()),
                "this family's way is the other",
            ),
            ("mamba_ssm_dtype", state, "states are kept as float32"),
            ("quantization_config", method, "only unquantised checkpoints are"),
        ];
        for (field, said, supported) in parts {
            if let Some(value) = said {
                return Err(self.unsupported(field, value, supported));
            }
        }
        Ok(())
    }

    /// How many numbers of a head its rope turns.
    fn turned_dim(
        &self,
        traits: &Traits,
        raw: &Raw,
        head_dim: usize,
    ) -> Result<usize, ConfigError> {
        if traits.turned_share == 1.0 {
            return Ok(head_dim);
        }
        let ropes = [&raw.rope_parameters, &raw.rope_scaling].into_iter().flatten();
        let said = ropes.filter_map(|rope| rope["partial_rotary_factor"].as_f64()).next();
        let share = said.or(raw.partial_rotary_factor).unwrap_or(traits.turned_share);
        let turned = (head_dim as f64 * share) as usize;
        match (2..=head_dim).contains(&turned) && turned.is_multiple_of(2) {
            true => Ok(turned),
            false => {
                let supported = "an even number of a head's numbers is turned";
                Err(self.unsupported("partial_rotary_factor", share, supported))
            }
        }
    }

    fn activation(&self, raw: &Raw, defaults: &Defaults) -> Result<Activation, ConfigError> {
        let (field, left_out) = defaults.activation;
        let said = match field {
            "hidden_activation" => &raw.hidden_activation,
            _ => &raw.hidden_act,
        };
        let name = said.as_deref().unwrap_or(left_out);
        match name {
            "silu" | "swish" => Ok(Activation::Silu),
            "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
            other => Err(self.unsupported(field, other, "known: silu, gelu_pytorch_tanh")),
        }
    }
}
