//! What a family's published files leave out.

use crate::model::config::Family;

/// `None` where they never do, or where it follows from other fields.
#[derive(Default)]
pub struct Defaults {
    pub heads: Option<usize>,
    pub kv_heads: Option<usize>,
    pub head_dim: Option<usize>,
    pub vocab_size: Option<usize>,
    pub max_position_embeddings: usize,
    pub tied: bool,
    pub theta: f64,
    pub activation: &'static str,
    pub sliding_window: Option<usize>,
}

impl Family {
    /// Of this family.
    pub fn defaults(self) -> Defaults {
        match self {
            Family::Gemma3 => Defaults {
                heads: Some(8),
                kv_heads: Some(4),
                head_dim: Some(256),
                vocab_size: Some(262_208),
                max_position_embeddings: 131_072,
                tied: true,
                theta: 1e6,
                activation: "gelu_pytorch_tanh",
                sliding_window: Some(4096),
            },
            Family::Llama => Defaults {
                max_position_embeddings: 2048,
                theta: 1e4,
                activation: "silu",
                ..Defaults::default()
            },
            Family::Qwen3 => Defaults {
                head_dim: Some(128),
                max_position_embeddings: 32_768,
                theta: 1e4,
                activation: "silu",
                ..Defaults::default()
            },
        }
    }
}
