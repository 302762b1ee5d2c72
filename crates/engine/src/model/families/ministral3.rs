//! Ministral 3: Llama with YaRN, and with queries that grow with their positions.

use serde_json::{Value, json};

use super::{Defaults, LayerNorms, Parts, Shape, Synthetic, Traits, Windows};

pub(super) const TRAITS: Traits = Traits {
    name: "ministral3",
    architectures: &["Mistral3ForConditionalGeneration", "Ministral3ForCausalLM"],
    model_types: &["mistral3", "ministral3"],
    defaults: Defaults {
        heads: Some(32),
        kv_heads: Some(8),
        head_dim: Some(128),
        vocab_size: Some(131_072),
        max_position_embeddings: 262_144,
        tied: false,
        theta: 1e6,
        activation: ("hidden_act", "silu"),
        sliding_window: None,
    },
    attention_scalar: None,
    windows: Windows::Every,
    attends_each: None,
    gates_heads: false,
    turned_share: 1.0,
    says_ropes: true,
    local_theta: None,
    unturned_interval: None,
    queries_grow: true,
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
        prefix: "language_model.model.",
        vocab_size: 131_072,
        falls_back_to_bytes: false,
        control_tokens: "<unk> <s> </s> [INST] [/INST] [SYSTEM_PROMPT] [/SYSTEM_PROMPT]",
        bos: Some("<s>"),
        eos: "</s>",
        ends: &["</s>"],
        template: include_str!("ministral3.jinja"),
        config,
        generation: |ends| json!({"eos_token_id": ends}),
    },
};

fn config(shape: Shape, vocab_size: usize, ends: &[u32]) -> Option<Value> {
    let [hidden, intermediate, layers, heads, kv_heads, head_dim, positions, original] = match shape
    {
        Shape::Tiny => [64, 128, 3, 4, 2, 32, 16_384, 256],
        Shape::Full => [3072, 9216, 26, 32, 8, 128, 262_144, 16_384],
        Shape::Qwen3Small => return None,
    };
    let rope = json!({
        "beta_fast": 32.0, "beta_slow": 1.0, "factor": 16.0, "llama_4_scaling_beta": 0.1, "mscale": 1.0,
        "mscale_all_dim": 1.0, "original_max_position_embeddings": original, "rope_theta": 1000000.0,
        "rope_type": "yarn", "type": "yarn",
    });
    let text = json!({
        "head_dim": head_dim, "hidden_act": "silu", "hidden_size": hidden, "intermediate_size": intermediate,
        "max_position_embeddings": positions, "model_type": "ministral3", "num_attention_heads": heads,
        "num_hidden_layers": layers, "num_key_value_heads": kv_heads, "rms_norm_eps": 1e-5,
        "rope_parameters": rope, "sliding_window": null, "tie_word_embeddings": true, "vocab_size": vocab_size,
    });
    Some(json!({
        "architectures": ["Mistral3ForConditionalGeneration"], "dtype": "bfloat16", "eos_token_id": ends.first(),
        "model_type": "mistral3", "text_config": text, "tie_word_embeddings": true,
    }))
}
