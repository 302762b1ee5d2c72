//! What Gemma 4 has beside other families: heads of two widths, layers that share keys, inputs of layers, a cap of logits.

use super::{Raw, Reader};
use crate::model::config::ConfigError;
use crate::model::families::Traits;

pub(super) struct Parts {
    pub full_head_dim: usize,
    pub sharing_layers: usize,
    pub sharing_width: usize,
    pub layer_input: usize,
    pub logit_cap: Option<f32>,
}

impl Reader<'_> {
    /// Of a family without them, what says that there are none.
    pub(super) fn parts(
        &self,
        traits: &Traits,
        raw: &Raw,
        head_dim: usize,
    ) -> Result<Parts, ConfigError> {
        let parts = &traits.parts;
        let cap = raw.final_logit_softcapping.filter(|_| parts.caps_logits);
        if cap.is_some_and(|cap| cap <= 0.0) {
            return Err(self.inconsistent("`final_logit_softcapping` is not positive".to_owned()));
        }
        let full_head_dim =
            parts.full_head_dim.map(|left_out| raw.global_head_dim.unwrap_or(left_out));
        let input =
            parts.layer_input.map(|left_out| raw.hidden_size_per_layer_input.unwrap_or(left_out));
        let sharing_layers =
            if parts.shares_keys { raw.num_kv_shared_layers.unwrap_or(0) } else { 0 };
        let is_wide = sharing_layers > 0 && raw.use_double_wide_mlp == Some(true);
        Ok(Parts {
            full_head_dim: full_head_dim.unwrap_or(head_dim),
            sharing_layers,
            sharing_width: if is_wide { 2 } else { 1 },
            layer_input: input.unwrap_or(0),
            logit_cap: cap.map(|cap| cap as f32),
        })
    }

    /// What contradicts itself, or stands where it is not looked for.
    pub(super) fn check_parts(
        &self,
        parts: &Parts,
        raw: &Raw,
        windows: &[Option<usize>],
        vocab_size: usize,
    ) -> Result<(), ConfigError> {
        if raw.per_layer_config.as_ref().is_some_and(|value| !value.is_null()) {
            let supported = "`global_head_dim` says what full layers have";
            return Err(self.unsupported("per_layer_config", "there", supported));
        }
        if parts.full_head_dim == 0 || !parts.full_head_dim.is_multiple_of(2) {
            let problem =
                format!("global_head_dim {} is not a positive even number", parts.full_head_dim);
            return Err(self.inconsistent(problem));
        }
        let own = windows.len().checked_sub(parts.sharing_layers).map(|own| &windows[..own]);
        let has_keys = |window: &Option<usize>| {
            own.is_some_and(|own| own.iter().any(|other| other.is_some() == window.is_some()))
        };
        if !windows.iter().all(has_keys) {
            let problem = "`num_kv_shared_layers` leaves a kind of layers without keys of its own";
            return Err(self.inconsistent(problem.to_owned()));
        }
        let table = raw.vocab_size_per_layer_input.unwrap_or(vocab_size);
        if parts.layer_input > 0 && table != vocab_size {
            let supported = &format!("only `vocab_size`, {vocab_size}, is");
            return Err(self.unsupported("vocab_size_per_layer_input", table, supported));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use crate::model::Config;

    fn read(own: Value) -> Result<Config, String> {
        let mut text = json!({
            "model_type": "gemma4_text", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 12,
            "vocab_size": 100, "vocab_size_per_layer_input": 100, "final_logit_softcapping": 30.0,
            "rope_parameters": {
                "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        });
        text.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        let config =
            json!({"architectures": ["Gemma4ForConditionalGeneration"], "text_config": text});
        Config::from_json(config, Path::new("config.json")).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_computed_is_refused_by_name() {
        let config = read(json!({"use_bidirectional_attention": "vision"})).unwrap();
        assert_eq!((config.head_dim, config.full_head_dim, config.layer_input), (256, 512, 256));
        assert_eq!((config.logit_cap, config.attention_scale), (Some(30.0), 1.0));
        assert_eq!(config.windows[4..6], [Some(512), None]);
        for (own, field) in [
            (json!({"enable_moe_block": true}), "enable_moe_block"),
            (json!({"attention_k_eq_v": true}), "attention_k_eq_v"),
            (json!({"use_bidirectional_attention": "all"}), "use_bidirectional_attention"),
            (json!({"per_layer_config": {"5": {"head_dim": 64}}}), "per_layer_config"),
            (json!({"vocab_size_per_layer_input": 90}), "vocab_size_per_layer_input"),
            (json!({"num_kv_shared_layers": 8}), "num_kv_shared_layers"),
            (json!({"num_kv_shared_layers": 13}), "num_kv_shared_layers"),
            (json!({"rope_parameters": null}), "rope_parameters"),
            (json!({"attn_logit_softcapping": 50.0}), "attn_logit_softcapping"),
        ] {
            let problem = read(own).unwrap_err();
            assert!(problem.contains(field), "{field}: {problem}");
        }
    }

    #[test]
    fn the_last_layer_sees_everything_and_a_part_of_its_pairs_turns() {
        let config = read(json!({"num_hidden_layers": 10})).unwrap();
        assert_eq!(config.windows[8..], [Some(512), None]);
        let frequencies = config.full_rope.inverse_frequencies(512);
        assert_eq!(frequencies.iter().filter(|frequency| **frequency > 0.0).count(), 64);
        assert!(frequencies[63] > 0.0 && frequencies[0] == 1.0);
    }
}
