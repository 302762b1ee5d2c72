//! Gemma 3: windows with a full layer in six, a norm on either side of attention and feed-forward layers, norms that are stored less one.

use serde_json::{Value, json};

use super::{Defaults, LayerNorms, Parts, Shape, Synthetic, Traits, Windows};

pub(super) const TRAITS: Traits = Traits {
    name: "gemma3",
    architectures: &["Gemma3ForConditionalGeneration", "Gemma3ForCausalLM"],
    model_types: &["gemma3", "gemma3_text"],
    defaults: Defaults {
        heads: Some(8),
        kv_heads: Some(4),
        head_dim: Some(256),
        vocab_size: Some(262_208),
        max_position_embeddings: 131_072,
        tied: true,
        theta: 1e6,
        activation: ("hidden_activation", "gelu_pytorch_tanh"),
        sliding_window: Some(4096),
    },
    attention_scalar: Some(256.0),
    windows: Windows::Pattern(6),
    attends_each: None,
    gates_heads: false,
    turned_share: 1.0,
    says_ropes: false,
    local_theta: Some(1e4),
    unturned_interval: None,
    queries_grow: false,
    scales_embeddings: true,
    // Added in f32.
    norm_offset: 1.0,
    norms_heads: true,
    // What the other families call the norm after attention stands before the feed-forward layer.
    layer_norms: LayerNorms {
        attention: Some("post_attention_layernorm"),
        feed_forward_input: "pre_feedforward_layernorm",
        feed_forward: Some("post_feedforward_layernorm"),
    },
    parts: Parts::PLAIN,
    synthetic: Synthetic {
        prefix: "language_model.model.",
        vocab_size: 262_208,
        falls_back_to_bytes: true,
        control_tokens: "<pad> <eos> <bos> <unk> <start_of_turn> <end_of_turn>",
        bos: Some("<bos>"),
        eos: "<eos>",
        ends: &["<eos>", "<end_of_turn>"],
        template: include_str!("gemma3.jinja"),
        config,
        generation: |ends| json!({"do_sample": true, "eos_token_id": ends, "top_k": 64, "top_p": 0.95}),
    },
};

fn config(shape: Shape, vocab_size: usize, ends: &[u32]) -> Option<Value> {
    let text = match shape {
        Shape::Tiny => json!({
            "head_dim": 16, "hidden_size": 64, "intermediate_size": 96, "model_type": "gemma3_text",
            "num_attention_heads": 4, "num_hidden_layers": 6, "num_key_value_heads": 2,
            "query_pre_attn_scalar": 16, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 512, "vocab_size": vocab_size, "max_position_embeddings": 16384,
        }),
        Shape::Full => json!({
            "hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
            "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024,
        }),
        Shape::Qwen3Small => return None,
    };
    Some(json!({
        "architectures": ["Gemma3ForConditionalGeneration"], "eos_token_id": ends, "model_type": "gemma3",
        "text_config": text, "torch_dtype": "bfloat16",
    }))
}
