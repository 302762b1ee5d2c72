//! Llama 3, and what has its architecture: full layers, heads without norms.

use serde_json::{Value, json};

use super::{Defaults, LayerNorms, Parts, Shape, Synthetic, Traits, Windows};

pub(super) const TRAITS: Traits = Traits {
    name: "llama",
    architectures: &["LlamaForCausalLM"],
    model_types: &["llama"],
    defaults: Defaults {
        heads: None,
        kv_heads: None,
        head_dim: None,
        vocab_size: None,
        max_position_embeddings: 2048,
        tied: false,
        theta: 1e4,
        activation: ("hidden_act", "silu"),
        sliding_window: None,
    },
    attention_scalar: None,
    windows: Windows::Never,
    attends_each: None,
    gates_heads: false,
    turned_share: 1.0,
    says_ropes: false,
    local_theta: None,
    unturned_interval: None,
    queries_grow: false,
    scales_embeddings: false,
    norm_offset: 0.0,
    norms_heads: false,
    layer_norms: LayerNorms {
        attention: None,
        feed_forward_input: "post_attention_layernorm",
        feed_forward: None,
    },
    parts: Parts::PLAIN,
    synthetic: Synthetic {
        prefix: "model.",
        vocab_size: 128_256,
        falls_back_to_bytes: false,
        control_tokens: "<|begin_of_text|> <|end_of_text|> <|start_header_id|> <|end_header_id|> <|eom_id|> <|eot_id|>",
        bos: Some("<|begin_of_text|>"),
        eos: "<|eot_id|>",
        ends: &["<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"],
        template: include_str!("llama.jinja"),
        config,
        generation: |ends| json!({"do_sample": true, "eos_token_id": ends, "temperature": 0.6, "top_p": 0.9}),
    },
};

fn config(shape: Shape, vocab_size: usize, ends: &[u32]) -> Option<Value> {
    let [hidden, intermediate, layers, heads, kv_heads, head_dim, positions] = match shape {
        Shape::Tiny => [64, 128, 3, 6, 2, 16, 16_384],
        Shape::Full => [3072, 8192, 28, 24, 8, 128, 131_072],
        Shape::Qwen3Small => return None,
    };
    Some(json!({
        "architectures": ["LlamaForCausalLM"], "attention_bias": false, "eos_token_id": ends,
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
    }))
}
