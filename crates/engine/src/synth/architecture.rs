//! The configs of synthetic checkpoints, with the fields that published files have and leave out.

use serde_json::{Value, json};

use crate::model::Family;

/// The sizes of a synthetic model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Shape {
    /// A few hundred thousand parameters; every trait of the family is there
    Tiny,
    /// The published model's sizes
    Full,
    /// Qwen3-0.6B's sizes, for the family qwen3 alone: what a small machine is measured with
    #[cfg_attr(feature = "clap", value(name = "qwen3-0.6b"))]
    Qwen3Small,
}

impl Shape {
    /// As command lines write it.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Tiny => "tiny",
            Shape::Full => "full",
            Shape::Qwen3Small => "qwen3-0.6b",
        }
    }

    /// Rows of the embedding table: more than `tokens`, as published tables have.
    pub(super) fn vocab_size(self, family: Family, tokens: usize) -> usize {
        let published = match family {
            Family::Gemma3 => 262_208,
            Family::Llama => 128_256,
            Family::Qwen3 => 151_936,
        };
        match self {
            Shape::Full | Shape::Qwen3Small => published.max(tokens),
            Shape::Tiny => (tokens + 1).next_multiple_of(64),
        }
    }

    /// `None` for a shape that the family does not have.
    pub(super) fn config(
        self,
        family: Family,
        vocab_size: usize,
        eos_ids: &[u32],
    ) -> Option<Value> {
        let config = match (family, self) {
            (Family::Gemma3, Shape::Tiny) => gemma3(
                eos_ids,
                json!({
                    "head_dim": 16, "hidden_size": 64, "intermediate_size": 96, "model_type": "gemma3_text",
                    "num_attention_heads": 4, "num_hidden_layers": 6, "num_key_value_heads": 2,
                    "query_pre_attn_scalar": 16, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
                    "sliding_window": 512, "vocab_size": vocab_size, "max_position_embeddings": 16384,
                }),
            ),
            (Family::Gemma3, Shape::Full) => gemma3(
                eos_ids,
                json!({
                    "hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
                    "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
                    "sliding_window": 1024,
                }),
            ),
            (Family::Gemma3 | Family::Llama, Shape::Qwen3Small) => return None,
            (Family::Llama, Shape::Tiny | Shape::Full) => {
                let [hidden, intermediate, layers, heads, kv_heads, head_dim, positions] =
                    match self {
                        Shape::Tiny => [64, 128, 3, 6, 2, 16, 16_384],
                        _ => [3072, 8192, 28, 24, 8, 128, 131_072],
                    };
                json!({
                    "architectures": ["LlamaForCausalLM"], "attention_bias": false, "eos_token_id": eos_ids,
                    "head_dim": head_dim, "hidden_act": "silu", "hidden_size": hidden,
                    "intermediate_size": intermediate, "max_position_embeddings": positions, "mlp_bias": false,
                    "model_type": "llama", "num_attention_heads": heads, "num_hidden_layers": layers,
                    "num_key_value_heads": kv_heads, "rms_norm_eps": 1e-5,
                    "rope_scaling": {
                        "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                        "original_max_position_embeddings": 8192, "rope_type": "llama3",
                    },
                    "rope_theta": 500000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
                    "vocab_size": vocab_size,
                })
            }
            (Family::Qwen3, _) => {
                let [hidden, intermediate, layers, heads, kv_heads, head_dim, positions] =
                    match self {
                        Shape::Tiny => [64, 96, 3, 4, 2, 32, 16_384],
                        Shape::Full => [2560, 9728, 36, 32, 8, 128, 40_960],
                        Shape::Qwen3Small => [1024, 3072, 28, 16, 8, 128, 40_960],
                    };
                json!({
                    "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "eos_token_id": eos_ids[0],
                    "head_dim": head_dim, "hidden_act": "silu", "hidden_size": hidden,
                    "intermediate_size": intermediate, "max_position_embeddings": positions,
                    "max_window_layers": layers, "model_type": "qwen3", "num_attention_heads": heads,
                    "num_hidden_layers": layers, "num_key_value_heads": kv_heads, "rms_norm_eps": 1e-6,
                    "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
                    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_sliding_window": false,
                    "vocab_size": vocab_size,
                })
            }
        };
        Some(config)
    }
}

fn gemma3(eos_ids: &[u32], text_config: Value) -> Value {
    json!({
        "architectures": ["Gemma3ForConditionalGeneration"],
        "eos_token_id": eos_ids,
        "model_type": "gemma3",
        "text_config": text_config,
        "torch_dtype": "bfloat16",
    })
}

impl Family {
    pub(super) fn end_of_turn_tokens(self) -> &'static [&'static str] {
        match self {
            Family::Gemma3 => &["<eos>", "<end_of_turn>"],
            Family::Llama => &["<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"],
            Family::Qwen3 => &["<|im_end|>", "<|endoftext|>"],
        }
    }

    /// The published decoding defaults.
    pub(super) fn generation_config(self, eos_ids: &[u32]) -> Value {
        match self {
            Family::Gemma3 => {
                json!({"do_sample": true, "eos_token_id": eos_ids, "top_k": 64, "top_p": 0.95})
            }
            Family::Llama => {
                json!({"do_sample": true, "eos_token_id": eos_ids, "temperature": 0.6, "top_p": 0.9})
            }
            Family::Qwen3 => json!({
                "do_sample": true, "eos_token_id": eos_ids, "temperature": 0.6, "top_k": 20, "top_p": 0.95,
            }),
        }
    }
}
