//! Qwen3: normed heads, windows where they are asked for.

use serde_json::{Value, json};

use super::{Defaults, LayerNorms, Parts, Shape, Synthetic, Traits, Windows};

pub(super) const TRAITS: Traits = Traits {
    name: "qwen3",
    architectures: &["Qwen3ForCausalLM"],
    model_types: &["qwen3"],
    defaults: Defaults {
        heads: None,
        kv_heads: None,
        head_dim: Some(128),
        vocab_size: None,
        max_position_embeddings: 32_768,
        tied: false,
        theta: 1e4,
        activation: ("hidden_act", "silu"),
        sliding_window: None,
    },
    attention_scalar: None,
    windows: Windows::From(28),
    attends_each: None,
    gates_heads: false,
    turned_share: 1.0,
    says_ropes: false,
    local_theta: None,
    unturned_interval: None,
    queries_grow: false,
    scales_embeddings: false,
    norm_offset: 0.0,
    norms_heads: true,
    layer_norms: LayerNorms {
        attention: None,
        feed_forward_input: "post_attention_layernorm",
        feed_forward: None,
    },
    parts: Parts::PLAIN,
    synthetic: Synthetic {
        prefix: "model.",
        vocab_size: 151_936,
        falls_back_to_bytes: false,
        control_tokens: "<|endoftext|> <|im_start|> <|im_end|> <think> </think>",
        bos: None,
        eos: "<|im_end|>",
        ends: &["<|im_end|>", "<|endoftext|>"],
        template: include_str!("qwen3.jinja"),
        config,
        generation: |ends| json!({"do_sample": true, "eos_token_id": ends, "temperature": 0.6, "top_k": 20, "top_p": 0.95}),
    },
};

fn config(shape: Shape, vocab_size: usize, ends: &[u32]) -> Option<Value> {
    let [hidden, intermediate, layers, heads, kv_heads, head_dim, positions] = match shape {
        Shape::Tiny => [64, 96, 3, 4, 2, 32, 16_384],
        Shape::Full => [2560, 9728, 36, 32, 8, 128, 40_960],
        Shape::Qwen3Small => [1024, 3072, 28, 16, 8, 128, 40_960],
    };
    Some(json!({
        "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "eos_token_id": ends.first(),
        "head_dim": head_dim, "hidden_act": "silu", "hidden_size": hidden,
        "intermediate_size": intermediate, "max_position_embeddings": positions,
        "max_window_layers": layers, "model_type": "qwen3", "num_attention_heads": heads,
        "num_hidden_layers": layers, "num_key_value_heads": kv_heads, "rms_norm_eps": 1e-6,
        "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
        "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_sliding_window": false,
        "vocab_size": vocab_size,
    }))
}
