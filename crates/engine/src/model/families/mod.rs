//! The decoder families, a file each: what their published files say and leave out, what their tensors are called, and what a
//! synthetic one is made of. Whatever differs between families is a field of [`Traits`]; nothing but `src/hub/gguf` asks which one it is.

mod gemma3;
mod gemma4;
mod llama;
mod ministral3;
mod qwen3;
mod qwen35;
mod smollm3;

use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Family {
    Gemma3,
    Gemma4,
    Llama,
    Ministral3,
    Qwen3,
    Qwen35,
    #[cfg_attr(feature = "clap", value(name = "smollm3"))]
    SmolLm3,
}

impl Family {
    pub const ALL: [Family; 7] = [
        Family::Gemma3,
        Family::Gemma4,
        Family::Llama,
        Family::Ministral3,
        Family::Qwen3,
        Family::Qwen35,
        Family::SmolLm3,
    ];

    /// What makes it another family than the others.
    pub(crate) fn traits(self) -> &'static Traits {
        match self {
            Family::Gemma3 => &gemma3::TRAITS,
            Family::Gemma4 => &gemma4::TRAITS,
            Family::Llama => &llama::TRAITS,
            Family::Ministral3 => &ministral3::TRAITS,
            Family::Qwen3 => &qwen3::TRAITS,
            Family::Qwen35 => &qwen35::TRAITS,
            Family::SmolLm3 => &smollm3::TRAITS,
        }
    }

    /// As command lines and records write it.
    pub fn name(self) -> &'static str {
        self.traits().name
    }
}

/// What differs between families.
pub(crate) struct Traits {
    pub name: &'static str,
    pub architectures: &'static [&'static str],
    /// `model_type` of a `config.json` that names no architecture.
    pub model_types: &'static [&'static str],
    pub defaults: Defaults,
    /// What `query_pre_attn_scalar` is where it is left out; `None` where it is the width of a head, whatever the file says.
    pub attention_scalar: Option<f64>,
    pub windows: Windows,
    /// One of so many layers attends, and the others are of the gated delta rule, where `full_attention_interval` is left out; `None`: all
    /// attend.
    pub attends_each: Option<usize>,
    /// Whether what the heads of an attending layer give is gated.
    pub gates_heads: bool,
    /// The share of a head that its rope turns, where `partial_rotary_factor` is left out and where it counts; 1 where all is turned.
    pub turned_share: f64,
    /// Whether `rope_parameters` must be there: what stands for them where they are left out is no plain rope.
    pub says_ropes: bool,
    /// The base of the sliding layers' rope where `rope_local_base_freq` is left out; `None` where they have the other layers'.
    pub local_theta: Option<f64>,
    /// Each of so many layers has no rope where `no_rope_layers` and `no_rope_layer_interval` are left out; `None` where all have one.
    pub unturned_interval: Option<usize>,
    /// Whether queries grow with their positions, if `llama_4_scaling_beta` asks for it.
    pub queries_grow: bool,
    /// Whether embeddings are multiplied by the root of their width.
    pub scales_embeddings: bool,
    /// What is added to a norm's weights as they are stored.
    pub norm_offset: f32,
    /// Whether the heads of queries and keys are normed.
    pub norms_heads: bool,
    pub layer_norms: LayerNorms,
    pub parts: Parts,
    pub synthetic: Synthetic,
}

/// What few families have.
pub(crate) struct Parts {
    /// The width of heads of layers that see all positions, where `global_head_dim` is left out; `None` where it is the others'.
    pub full_head_dim: Option<usize>,
    /// Whether the last `num_kv_shared_layers` see keys and values of earlier ones.
    pub shares_keys: bool,
    /// Numbers of a token's embedding for each layer, where `hidden_size_per_layer_input` is left out; `None` where there is none.
    pub layer_input: Option<usize>,
    /// Whether the heads of values are normed, by their size alone.
    pub norms_values: bool,
    /// Whether each layer has a number that the residual is multiplied by.
    pub scales_layers: bool,
    /// Whether `final_logit_softcapping` caps logits.
    pub caps_logits: bool,
}

impl Parts {
    /// None of them.
    const PLAIN: Parts = Parts {
        full_head_dim: None,
        shares_keys: false,
        layer_input: None,
        norms_values: false,
        scales_layers: false,
        caps_logits: false,
    };
}

/// What a family's published files leave out; `None` where they never do, or where it follows from other fields.
pub(crate) struct Defaults {
    pub heads: Option<usize>,
    pub kv_heads: Option<usize>,
    pub head_dim: Option<usize>,
    pub vocab_size: Option<usize>,
    pub max_position_embeddings: usize,
    pub tied: bool,
    pub theta: f64,
    /// The field that names it, and its name.
    pub activation: (&'static str, &'static str),
    pub sliding_window: Option<usize>,
}

/// Which layers see a window alone, where `layer_types` does not say.
pub(crate) enum Windows {
    Never,
    /// All, if there is a `sliding_window`.
    Every,
    /// Those without a rope, if `use_sliding_window` asks for it.
    Unturned,
    /// Those from `max_window_layers` on, if `use_sliding_window` asks for it; from so many on where the first is left out.
    From(usize),
    /// All but each of so many, where `sliding_window_pattern` is left out.
    Pattern(usize),
    /// All but each of so many and the last.
    PatternToFull(usize),
}

/// The norms of a layer besides `input_layernorm`, by their names.
pub(crate) struct LayerNorms {
    /// Of what attention gives.
    pub attention: Option<&'static str>,
    /// Of what the feed-forward layer takes.
    pub feed_forward_input: &'static str,
    /// Of what the feed-forward layer gives.
    pub feed_forward: Option<&'static str>,
}

/// What a checkpoint with random weights has of its family's published ones.
pub(crate) struct Synthetic {
    /// Of its tensors' names.
    pub prefix: &'static str,
    /// Rows of the published embedding table.
    pub vocab_size: usize,
    /// Whether bytes are tokens of their own and spaces `▁`, as SentencePiece has it; else words are of bytes.
    pub falls_back_to_bytes: bool,
    /// In the order of their ids, separated by spaces.
    pub control_tokens: &'static str,
    pub bos: Option<&'static str>,
    pub eos: &'static str,
    /// What ends a turn, as `config.json` lists it.
    pub ends: &'static [&'static str],
    pub template: &'static str,
    /// Of so many rows and these ends; `None` for a shape that the family does not have.
    pub config: fn(Shape, usize, &[u32]) -> Option<Value>,
    /// The published `generation_config.json`, with these ends.
    pub generation: fn(&[u32]) -> Value,
}

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
}
