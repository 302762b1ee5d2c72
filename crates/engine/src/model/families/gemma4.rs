//! Gemma 4: Gemma 3 with heads of two widths, last layers that share keys and values, embeddings for each layer and a cap of logits.

use serde_json::{Value, json};

use super::{Defaults, LayerNorms, Parts, Shape, Synthetic, Traits, Windows};

pub(super) const TRAITS: Traits = Traits {
    name: "gemma4",
    architectures: &["Gemma4ForConditionalGeneration", "Gemma4ForCausalLM"],
    model_types: &["gemma4", "gemma4_text"],
    defaults: Defaults {
        heads: Some(8),
        kv_heads: Some(4),
        head_dim: Some(256),
        vocab_size: Some(262_144),
        max_position_embeddings: 131_072,
        tied: true,
        theta: 1e6,
        activation: ("hidden_activation", "gelu_pytorch_tanh"),
        sliding_window: Some(512),
    },
    // Heads are normed: their scores are taken as they are.
    attention_scalar: Some(1.0),
    windows: Windows::PatternToFull(6),
    attends_each: None,
    gates_heads: false,
    turned_share: 1.0,
    says_ropes: true,
    local_theta: Some(1e4),
    unturned_interval: None,
    queries_grow: false,
    scales_embeddings: true,
    norm_offset: 0.0,
    norms_heads: true,
    layer_norms: LayerNorms {
        attention: Some("post_attention_layernorm"),
        feed_forward_input: "pre_feedforward_layernorm",
        feed_forward: Some("post_feedforward_layernorm"),
    },
    parts: Parts {
        full_head_dim: Some(512),
        shares_keys: true,
        layer_input: Some(256),
        norms_values: true,
        scales_layers: true,
        caps_logits: true,
    },
    synthetic: Synthetic {
        prefix: "model.language_model.",
        vocab_size: 262_144,
        falls_back_to_bytes: true,
        control_tokens: "<pad> <eos> <bos> <unk> <|turn> <turn|> <|think|> <|channel> <channel|>",
        bos: Some("<bos>"),
        eos: "<eos>",
        ends: &["<eos>", "<turn|>"],
        template: include_str!("gemma4.jinja"),
        config,
        generation: |ends| json!({"do_sample": true, "eos_token_id": ends, "temperature": 1.0, "top_k": 64, "top_p": 0.95}),
    },
};

/// Sizes of the full one are E2B's.
fn config(shape: Shape, vocab_size: usize, ends: &[u32]) -> Option<Value> {
    let [hidden, inner, heads, head_dim, full_head_dim, own, positions] = match shape {
        Shape::Tiny => [64, 96, 4, 16, 32, 16, 16_384],
        Shape::Full => [1536, 6144, 8, 256, 512, 256, 131_072],
        Shape::Qwen3Small => return None,
    };
    let [layers, sharing, period] = if shape == Shape::Tiny { [6, 2, 3] } else { [35, 20, 5] };
    let kind = |layer: usize| {
        if layer.is_multiple_of(period) { "full_attention" } else { "sliding_attention" }
    };
    let text = json!({
        "attention_k_eq_v": false, "enable_moe_block": false, "final_logit_softcapping": 30.0,
        "global_head_dim": full_head_dim, "head_dim": head_dim, "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": hidden, "hidden_size_per_layer_input": own, "intermediate_size": inner,
        "layer_types": (1..=layers).map(kind).collect::<Vec<_>>(), "max_position_embeddings": positions,
        "model_type": "gemma4_text", "num_attention_heads": heads, "num_hidden_layers": layers,
        "num_key_value_heads": 1, "num_kv_shared_layers": sharing, "rms_norm_eps": 1e-6,
        "rope_parameters": {
            "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
            "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
        },
        "sliding_window": 512, "tie_word_embeddings": true, "use_double_wide_mlp": true,
        "vocab_size": vocab_size, "vocab_size_per_layer_input": vocab_size,
    });
    Some(json!({
        "architectures": ["Gemma4ForConditionalGeneration"], "dtype": "bfloat16", "eos_token_id": ends,
        "model_type": "gemma4", "text_config": text, "tie_word_embeddings": true,
    }))
}
