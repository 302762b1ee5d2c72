//! SmolLM3: Llama with one layer in four that no rope turns.

use serde_json::{Value, json};

use super::{Defaults, LayerNorms, Parts, Shape, Synthetic, Traits, Windows};

pub(super) const TRAITS: Traits = Traits {
    name: "smollm3",
    architectures: &["SmolLM3ForCausalLM"],
    model_types: &["smollm3"],
    defaults: Defaults {
        heads: Some(16),
        kv_heads: Some(4),
        head_dim: None,
        vocab_size: Some(128_256),
        max_position_embeddings: 32_768,
        tied: true,
        theta: 2e6,
        activation: ("hidden_act", "silu"),
        sliding_window: None,
    },
    attention_scalar: None,
    windows: Windows::Unturned,
    attends_each: None,
    gates_heads: false,
    turned_share: 1.0,
    says_ropes: false,
    local_theta: None,
    unturned_interval: Some(4),
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
        control_tokens: "<|begin_of_text|> <|end_of_text|> <|im_start|> <|im_end|> <think> </think>",
        bos: None,
        eos: "<|im_end|>",
        ends: &["<|im_end|>"],
        template: include_str!("smollm3.jinja"),
        config,
        generation: |ends| json!({"do_sample": true, "eos_token_id": ends, "temperature": 0.6, "top_p": 0.95}),
    },
};

fn config(shape: Shape, vocab_size: usize, ends: &[u32]) -> Option<Value> {
    let [hidden, intermediate, layers, heads, kv_heads, positions] = match shape {
        Shape::Tiny => [64, 96, 4, 4, 2, 16_384],
        Shape::Full => [2048, 11_008, 36, 16, 4, 65_536],
        Shape::Qwen3Small => return None,
    };
    Some(json!({
        "architectures": ["SmolLM3ForCausalLM"], "attention_bias": false, "eos_token_id": ends.first(),
        "hidden_act": "silu", "hidden_size": hidden, "intermediate_size": intermediate,
        "max_position_embeddings": positions, "mlp_bias": false, "model_type": "smollm3",
        "no_rope_layer_interval": 4, "num_attention_heads": heads, "num_hidden_layers": layers,
        "num_key_value_heads": kv_heads, "rms_norm_eps": 1e-6, "rope_scaling": null,
        "rope_theta": 5000000.0, "sliding_window": null, "tie_word_embeddings": true,
        "torch_dtype": "bfloat16", "use_sliding_window": false, "vocab_size": vocab_size,
    }))
}
