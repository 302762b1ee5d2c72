//! Qwen 3.5, dense, its text alone: layers of the gated delta rule with an attending one in four, whose heads are gated and turned in part.

use serde_json::{Value, json};

use super::{Defaults, LayerNorms, Parts, Shape, Synthetic, Traits, Windows};

pub(super) const TRAITS: Traits = Traits {
    name: "qwen35",
    architectures: &["Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM"],
    model_types: &["qwen3_5", "qwen3_5_text"],
    defaults: Defaults {
        heads: Some(16),
        kv_heads: Some(4),
        head_dim: Some(256),
        vocab_size: Some(248_320),
        max_position_embeddings: 32_768,
        tied: false,
        theta: 1e4,
        activation: ("hidden_act", "silu"),
        sliding_window: None,
    },
    attention_scalar: None,
    windows: Windows::Never,
    attends_each: Some(4),
    gates_heads: true,
    turned_share: 0.25,
    says_ropes: false,
    local_theta: None,
    unturned_interval: None,
    queries_grow: false,
    scales_embeddings: false,
    // But for the norms of delta layers.
    norm_offset: 1.0,
    norms_heads: true,
    layer_norms: LayerNorms {
        attention: None,
        feed_forward_input: "post_attention_layernorm",
        feed_forward: None,
    },
    parts: Parts::PLAIN,
    synthetic: Synthetic {
        prefix: "model.language_model.",
        vocab_size: 248_320,
        falls_back_to_bytes: false,
        control_tokens: "<|endoftext|> <|im_start|> <|im_end|> <think> </think>",
        bos: None,
        eos: "<|im_end|>",
        ends: &["<|im_end|>", "<|endoftext|>"],
        template: include_str!("qwen35.jinja"),
        config,
        generation: |ends| json!({"do_sample": true, "eos_token_id": ends, "temperature": 1.0, "top_k": 20, "top_p": 0.95}),
    },
};

fn config(shape: Shape, vocab_size: usize, ends: &[u32]) -> Option<Value> {
    let [hidden, intermediate, layers, heads, kv_heads, head_dim, positions] = match shape {
        // The last of these layers is one of the delta rule.
        Shape::Tiny => [64, 96, 5, 4, 2, 32, 16_384],
        Shape::Full => [2560, 9216, 32, 16, 4, 256, 262_144],
        Shape::Qwen3Small => return None,
    };
    let [key_heads, value_heads, key_dim, value_dim] = match shape {
        Shape::Tiny => [2, 4, 16, 32],
        _ => [16, 32, 128, 128],
    };
    let text = json!({
        "attention_bias": false, "attn_output_gate": true, "eos_token_id": ends.last(),
        "full_attention_interval": 4, "head_dim": head_dim, "hidden_act": "silu",
        "hidden_size": hidden, "intermediate_size": intermediate, "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": key_dim, "linear_num_key_heads": key_heads,
        "linear_num_value_heads": value_heads, "linear_value_head_dim": value_dim,
        "mamba_ssm_dtype": "float32", "max_position_embeddings": positions,
        "model_type": "qwen3_5_text", "num_attention_heads": heads, "num_hidden_layers": layers,
        "num_key_value_heads": kv_heads, "rms_norm_eps": 1e-6,
        "rope_parameters": {
            "mrope_interleaved": true, "mrope_section": [11, 11, 10], "partial_rotary_factor": 0.25,
            "rope_theta": 10_000_000, "rope_type": "default",
        },
        "tie_word_embeddings": true, "vocab_size": vocab_size,
    });
    Some(json!({
        "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
        "text_config": text, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    }))
}
