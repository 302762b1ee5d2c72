"""The tiny checkpoints: each case's config.json as published, its layout on disk, and the mistakes it must expose."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Mistake:
    """A known way to get a family wrong: the true config edited, or the loaded model edited.

    `trap` is its number in README.md's table. `config` maps dotted paths to values; None there is JSON's null.
    """

    trap: int
    what: str
    config: dict = field(default_factory=dict)
    edit: Callable[[nn.Module], None] | None = None


@dataclass
class Case:
    name: str
    family: str
    description: str
    config: dict
    generation_config: dict
    mistakes: list[Mistake]
    stored: torch.dtype = torch.float32
    prompt_tokens: int = 40
    window: int = 8  # the sliding window, where there is one; else only spaces the checked positions
    prefixes: dict[str, str] = field(default_factory=dict)  # transformers' tensor prefix -> the prefix on disk
    shards: int = 1


# Gemma's vision half is there because published files carry it; a text engine has to step over it.
VISION = {
    "hidden_size": 4, "image_size": 4, "intermediate_size": 4, "model_type": "siglip_vision_model",
    "num_attention_heads": 1, "num_hidden_layers": 1, "patch_size": 2, "vision_use_head": False,
}  # fmt: skip
QWEN35_VISION = {
    "depth": 1, "hidden_size": 8, "in_channels": 1, "intermediate_size": 8, "model_type": "qwen3_5", "num_heads": 1,
    "num_position_embeddings": 4, "out_hidden_size": 32, "patch_size": 2, "spatial_merge_size": 1, "temporal_patch_size": 1,
}  # fmt: skip
OLD_PREFIXES = {
    "model.language_model.": "language_model.model.",
    "model.vision_tower.": "vision_tower.vision_model.",
    "model.multi_modal_projector.": "multi_modal_projector.",
}
GEMMA_GENERATION = {
    "bos_token_id": 2, "do_sample": True, "eos_token_id": [1, 106], "pad_token_id": 0, "top_k": 64, "top_p": 0.95,
}  # fmt: skip
LLAMA_GENERATION = {
    "bos_token_id": 70, "do_sample": True, "eos_token_id": [71, 78, 79], "temperature": 0.6, "top_p": 0.9,
}  # fmt: skip
QWEN_GENERATION = {
    "bos_token_id": 93, "do_sample": True, "eos_token_id": [95, 93], "pad_token_id": 93,
    "temperature": 0.6, "top_k": 20, "top_p": 0.95,
}  # fmt: skip


def gemma3_nested(text_config: dict, torch_dtype: str) -> dict:
    """As the published gemma-3-4b-it config.json: whatever it leaves out is left out."""
    return {
        "architectures": ["Gemma3ForConditionalGeneration"],
        "boi_token_index": 255999,
        "eoi_token_index": 256000,
        "eos_token_id": [1, 106],
        "image_token_index": 262144,
        "initializer_range": 0.02,
        "mm_tokens_per_image": 1,
        "model_type": "gemma3",
        "text_config": text_config,
        "torch_dtype": torch_dtype,
        "vision_config": VISION,
    }


def subtract_one_from_norms(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if "norm" in name and "vision" not in name:
            parameter.sub_(1.0)


def skip_head_norms(model: nn.Module) -> None:
    for module in model.modules():
        if hasattr(module, "q_norm"):
            module.q_norm = nn.Identity()
        if hasattr(module, "k_norm"):
            module.k_norm = nn.Identity()


def scale_embeddings_exactly(model: nn.Module) -> None:
    for embedding in model.modules():
        if hasattr(embedding, "embed_scale"):
            embedding.embed_scale.fill_(embedding.scalar_embed_scale)


def scale_output_table(model: nn.Module) -> None:
    model.lm_head.weight = nn.Parameter(model.lm_head.weight * model.get_input_embeddings().embed_scale)


def tie_table(model: nn.Module) -> None:
    model.lm_head.weight = model.get_input_embeddings().weight


def reverse_taps(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if name.endswith("conv1d.weight"):
            parameter.copy_(parameter.flip(-1))


def add_one_to_delta_norms(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if name.endswith("linear_attn.norm.weight"):
            parameter.add_(1.0)


def gates_behind_all_queries(model: nn.Module) -> None:
    """As if q_proj had all heads' queries and then all their gates, not the two of each head in turn."""
    for module in model.modules():
        if hasattr(module, "q_proj"):
            weight, size = module.q_proj.weight, module.head_dim
            halves = weight.reshape(2, -1, size, weight.shape[-1]).transpose(0, 1)
            weight.copy_(halves.reshape(weight.shape).clone())


def value_heads_in_turn(model: nn.Module) -> None:
    """As if value heads took key heads in turn, not as many one after another as there are for each."""
    for module in model.modules():
        if hasattr(module, "in_proj_qkv"):
            group = module.num_v_heads // module.num_k_heads
            order = torch.arange(module.num_v_heads).reshape(-1, group).T.flatten()
            start, size = 2 * module.key_dim, module.head_v_dim
            rows = (order[:, None] * size + torch.arange(size)).flatten()
            for layer, first in ((module.in_proj_qkv, start), (module.in_proj_z, 0), (module.conv1d, start)):
                layer.weight[first:] = layer.weight[first:][rows].clone()
            for layer in (module.in_proj_a, module.in_proj_b):
                layer.weight.copy_(layer.weight[order].clone())
            module.A_log.copy_(module.A_log[order].clone())
            module.dt_bias.copy_(module.dt_bias[order].clone())
            module.out_proj.weight.copy_(module.out_proj.weight[:, rows].clone())


def round_frequencies_to_bf16(model: nn.Module) -> None:
    for name, buffer in model.named_buffers():
        if name.endswith("inv_freq"):
            buffer.copy_(buffer.bfloat16())


def gemma4_text(own: dict) -> dict:
    return {
        "attention_k_eq_v": False,
        "enable_moe_block": False,
        "final_logit_softcapping": 30.0,
        "global_head_dim": 32,
        "head_dim": 16,
        "hidden_activation": "gelu_pytorch_tanh",
        "intermediate_size": 32,
        "max_position_embeddings": 4096,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "rms_norm_eps": 1e-06,
        "rope_parameters": {
            "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
            "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
        },
        "sliding_window": 8,
        "vocab_size": 128,
        "vocab_size_per_layer_input": 128,
        **own,
    }


def gemma4_nested(own: dict, dtype: str) -> dict:
    return {
        "architectures": ["Gemma4ForConditionalGeneration"],
        "audio_config": None,
        "dtype": dtype,
        "eos_token_id": [1, 106],
        "model_type": "gemma4",
        "text_config": {"model_type": "gemma4_text", **gemma4_text(own)},
        "tie_word_embeddings": True,
        "vision_config": None,
    }


def skip_value_norms(model: nn.Module) -> None:
    for module in model.modules():
        if hasattr(module, "v_norm"):
            module.v_norm = nn.Identity()


def skip_layer_scales(model: nn.Module) -> None:
    for name, buffer in model.named_buffers():
        if name.endswith("layer_scalar"):
            buffer.fill_(1.0)


def skip_layer_inputs(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if name.endswith("per_layer_projection.weight"):
            parameter.zero_()


LOCAL_2 = ["sliding_attention"] * 2 + ["full_attention"]
LOCAL_6 = ["sliding_attention"] * 5 + ["full_attention"]
SCALED_BOTH = {
    "full_attention": {"factor": 8.0, "rope_theta": 1000000.0, "rope_type": "linear"},
    "sliding_attention": {"factor": 8.0, "rope_theta": 10000.0, "rope_type": "linear"},
}

CASES = [
    Case(
        name="gemma3-nested-old-prefix",
        family="gemma3",
        description="the published 4B layout: text_config with the published omissions (heads 8, kv heads 4, "
        "query_pre_attn_scalar 256, pattern 6, both thetas, eps, activation and tying come from the defaults), linear "
        "rope scaling 8, weights under language_model.model., vision tensors to ignore",
        config=gemma3_nested(
            {
                "head_dim": 8,
                "hidden_size": 16,
                "intermediate_size": 32,
                "model_type": "gemma3_text",
                "num_hidden_layers": 8,
                "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
                "sliding_window": 8,
                "vocab_size": 128,
            },
            "float32",
        ),
        generation_config=GEMMA_GENERATION,
        prefixes=OLD_PREFIXES,
        mistakes=[
            Mistake(1, "global attention every fifth layer", {"text_config.sliding_window_pattern": 5}),
            Mistake(1, "window off", {"text_config.sliding_window": 4096}),
            Mistake(1, "window reaches back W tokens, not W-1", {"text_config.sliding_window": 9}),
            Mistake(2, "linear scaling ignored", {"text_config.rope_scaling": None}),
            Mistake(2, "linear scaling on local layers too", {"text_config.rope_parameters": SCALED_BOTH}),
            Mistake(2, "global theta on local layers", {"text_config.rope_local_base_freq": 1e6}),
            Mistake(2, "local theta on global layers", {"text_config.rope_theta": 1e4}),
            Mistake(4, "tied output table scaled as the input is", edit=scale_output_table),
            Mistake(5, "norm weight w for 1+w", edit=subtract_one_from_norms),
            Mistake(5, "q_norm and k_norm skipped", edit=skip_head_norms),
            Mistake(6, "erf gelu", {"text_config.hidden_activation": "gelu"}),
            Mistake(6, "scores scaled by head_dim", {"text_config.query_pre_attn_scalar": 8}),
        ],
    ),
    Case(
        name="gemma3-nested-new-prefix",
        family="gemma3",
        description="the newest layout: weights under model.language_model., rope_parameters per layer type, irregular "
        "layer_types, query_pre_attn_scalar other than head_dim",
        config={
            "architectures": ["Gemma3ForConditionalGeneration"],
            "boi_token_index": 255999,
            "dtype": "float32",
            "eoi_token_index": 256000,
            "eos_token_id": [1, 106],
            "image_token_index": 262144,
            "initializer_range": 0.02,
            "mm_tokens_per_image": 1,
            "model_type": "gemma3",
            "text_config": {
                "_sliding_window_pattern": 6,
                "attention_bias": False,
                "attention_dropout": 0.0,
                "attn_logit_softcapping": None,
                "dtype": "float32",
                "final_logit_softcapping": None,
                "head_dim": 16,
                "hidden_activation": "gelu_pytorch_tanh",
                "hidden_size": 36,
                "initializer_range": 0.02,
                "intermediate_size": 48,
                "layer_types": [
                    "sliding_attention",
                    "full_attention",
                    "sliding_attention",
                    "sliding_attention",
                    "full_attention",
                ],
                "max_position_embeddings": 131072,
                "model_type": "gemma3_text",
                "num_attention_heads": 4,
                "num_hidden_layers": 5,
                "num_key_value_heads": 2,
                "query_pre_attn_scalar": 42,
                "rms_norm_eps": 1e-06,
                "rope_parameters": {
                    "full_attention": {"factor": 8.0, "rope_theta": 1000000.0, "rope_type": "linear"},
                    "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
                },
                "sliding_window": 6,
                "use_bidirectional_attention": False,
                "use_cache": True,
                "vocab_size": 112,
            },
            "tie_word_embeddings": True,
            "transformers_version": "5.23.0",
            "vision_config": VISION,
        },
        generation_config=GEMMA_GENERATION,
        window=6,
        mistakes=[
            Mistake(1, "layer_types ignored, pattern 6 assumed", {"text_config.layer_types": LOCAL_6[:5]}),
            Mistake(1, "window reaches back W tokens, not W-1", {"text_config.sliding_window": 7}),
            Mistake(2, "linear scaling on local layers too", {"text_config.rope_parameters": SCALED_BOTH}),
            Mistake(
                2,
                "rope_parameters ignored",
                {"text_config.rope_parameters": {"full_attention": None, "sliding_attention": None}},
            ),
            Mistake(6, "scores scaled by head_dim", {"text_config.query_pre_attn_scalar": 16}),
        ],
    ),
    Case(
        name="gemma3-text",
        family="gemma3",
        description="text only, as 1B: Gemma3ForCausalLM, flat config, sliding_window_pattern 3, one kv head, both "
        "thetas given and unusual, untied lm_head; sqrt(40) is not exact in bf16 and stays f32, as stored",
        config={
            "architectures": ["Gemma3ForCausalLM"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "attn_logit_softcapping": None,
            "bos_token_id": 2,
            "cache_implementation": "hybrid",
            "eos_token_id": [1, 106],
            "final_logit_softcapping": None,
            "head_dim": 16,
            "hidden_activation": "gelu_pytorch_tanh",
            "hidden_size": 40,
            "initializer_range": 0.02,
            "intermediate_size": 48,
            "max_position_embeddings": 32768,
            "model_type": "gemma3_text",
            "num_attention_heads": 4,
            "num_hidden_layers": 4,
            "num_key_value_heads": 1,
            "pad_token_id": 0,
            "query_pre_attn_scalar": 16,
            "rms_norm_eps": 1e-06,
            "rope_local_base_freq": 3000,
            "rope_scaling": None,
            "rope_theta": 200000,
            "sliding_window": 5,
            "sliding_window_pattern": 3,
            "tie_word_embeddings": False,
            "torch_dtype": "float32",
            "transformers_version": "4.50.0.dev0",
            "use_cache": True,
            "vocab_size": 112,
        },
        generation_config=GEMMA_GENERATION,
        window=5,
        mistakes=[
            Mistake(1, "sliding_window_pattern ignored", {"sliding_window_pattern": 6}),
            Mistake(1, "window reaches back W tokens, not W-1", {"sliding_window": 6}),
            Mistake(2, "default theta on global layers", {"rope_theta": 1000000.0}),
            Mistake(2, "default theta on local layers", {"rope_local_base_freq": 10000.0}),
            Mistake(4, "lm_head.weight ignored, table tied", edit=tie_table),
        ],
    ),
    Case(
        name="gemma3-bf16",
        family="gemma3",
        description="stored in bf16, computed in f32 with the embedding scale sqrt(24) = 4.898979 rounded to bf16 "
        "(4.90625), as every bf16 run of the published model has it",
        config=gemma3_nested(
            {
                "head_dim": 8,
                "hidden_size": 24,
                "intermediate_size": 32,
                "model_type": "gemma3_text",
                "num_hidden_layers": 7,
                "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
                "sliding_window": 8,
                "vocab_size": 128,
            },
            "bfloat16",
        ),
        generation_config=GEMMA_GENERATION,
        stored=torch.bfloat16,
        prefixes=OLD_PREFIXES,
        mistakes=[
            Mistake(1, "window reaches back W tokens, not W-1", {"text_config.sliding_window": 9}),
            Mistake(2, "linear scaling ignored", {"text_config.rope_scaling": None}),
            Mistake(4, "embedding scale not rounded to bf16", edit=scale_embeddings_exactly),
        ],
    ),
    Case(
        name="gemma3-default-heads",
        family="gemma3",
        description="num_attention_heads, num_key_value_heads, head_dim (256) and query_pre_attn_scalar all left out, "
        "as the published 4B leaves them; bf16",
        config=gemma3_nested(
            {
                "hidden_size": 8,
                "intermediate_size": 16,
                "model_type": "gemma3_text",
                "num_hidden_layers": 2,
                "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
                "sliding_window": 8,
                "sliding_window_pattern": 2,
                "vocab_size": 112,
            },
            "bfloat16",
        ),
        generation_config=GEMMA_GENERATION,
        stored=torch.bfloat16,
        prefixes=OLD_PREFIXES,
        mistakes=[
            Mistake(1, "window reaches back W tokens, not W-1", {"text_config.sliding_window": 9}),
            Mistake(6, "scores scaled by hidden/heads", {"text_config.query_pre_attn_scalar": 1}),
        ],
    ),
    Case(
        name="llama3-scaled",
        family="llama",
        description="as Llama-3.2: llama3 rope scaling with a prompt well past the original length, so that one "
        "frequency is kept, one blended and the rest divided; head_dim other than hidden/heads, 3 query heads a kv "
        "head, tied, bf16",
        config={
            "architectures": ["LlamaForCausalLM"],
            "attention_bias": False,
            "bos_token_id": 70,
            "eos_token_id": [71, 78, 79],
            "head_dim": 16,
            "hidden_act": "silu",
            "hidden_size": 48,
            "intermediate_size": 64,
            "max_position_embeddings": 131072,
            "mlp_bias": False,
            "model_type": "llama",
            "num_attention_heads": 6,
            "num_hidden_layers": 3,
            "num_key_value_heads": 2,
            "rms_norm_eps": 1e-05,
            "rope_scaling": {
                "factor": 32.0,
                "high_freq_factor": 4.0,
                "low_freq_factor": 1.0,
                "original_max_position_embeddings": 40,
                "rope_type": "llama3",
            },
            "rope_theta": 500000.0,
            "tie_word_embeddings": True,
            "torch_dtype": "bfloat16",
            "vocab_size": 96,
        },
        generation_config=LLAMA_GENERATION,
        stored=torch.bfloat16,
        prompt_tokens=96,
        mistakes=[
            Mistake(15, "scaling ignored", {"rope_scaling": None}),
            Mistake(15, "scaled linearly", {"rope_scaling": {"factor": 32.0, "rope_type": "linear"}}),
            Mistake(15, "frequencies in bf16", edit=round_frequencies_to_bf16),
            Mistake(16, "theta left at its default", {"rope_theta": 10000.0}),
        ],
    ),
    Case(
        name="llama-plain-untied",
        family="llama",
        description="as Llama-3: rope_scaling null, head_dim left out, 4 query heads a kv head, untied lm_head, "
        "a single eos id",
        config={
            "architectures": ["LlamaForCausalLM"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": 70,
            "eos_token_id": 71,
            "hidden_act": "silu",
            "hidden_size": 64,
            "initializer_range": 0.02,
            "intermediate_size": 48,
            "max_position_embeddings": 8192,
            "model_type": "llama",
            "num_attention_heads": 8,
            "num_hidden_layers": 2,
            "num_key_value_heads": 2,
            "pretraining_tp": 1,
            "rms_norm_eps": 1e-05,
            "rope_scaling": None,
            "rope_theta": 500000.0,
            "tie_word_embeddings": False,
            "torch_dtype": "float32",
            "transformers_version": "4.40.0.dev0",
            "use_cache": True,
            "vocab_size": 80,
        },
        generation_config={"bos_token_id": 70, "do_sample": True, "eos_token_id": 71, "temperature": 0.6, "top_p": 0.9},
        mistakes=[
            Mistake(16, "lm_head.weight ignored, table tied", edit=tie_table),
            Mistake(16, "theta left at its default", {"rope_theta": 10000.0}),
            Mistake(16, "rms_norm_eps a hundred times too large", {"rms_norm_eps": 1e-3}),
        ],
    ),
    Case(
        name="llama-rope-parameters",
        family="llama",
        description="the newest spelling: rope_parameters holds theta and llama3 scaling, dtype for torch_dtype; f16",
        config={
            "architectures": ["LlamaForCausalLM"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": 70,
            "dtype": "float16",
            "eos_token_id": [71, 78, 79],
            "head_dim": 16,
            "hidden_act": "silu",
            "hidden_size": 32,
            "initializer_range": 0.02,
            "intermediate_size": 64,
            "max_position_embeddings": 131072,
            "mlp_bias": False,
            "model_type": "llama",
            "num_attention_heads": 4,
            "num_hidden_layers": 3,
            "num_key_value_heads": 2,
            "pad_token_id": None,
            "pretraining_tp": 1,
            "rms_norm_eps": 1e-05,
            "rope_parameters": {
                "factor": 8.0,
                "high_freq_factor": 4.0,
                "low_freq_factor": 1.0,
                "original_max_position_embeddings": 16,
                "rope_theta": 20000.0,
                "rope_type": "llama3",
            },
            "tie_word_embeddings": True,
            "transformers_version": "5.23.0",
            "use_cache": True,
            "vocab_size": 96,
        },
        generation_config=LLAMA_GENERATION,
        stored=torch.float16,
        prompt_tokens=64,
        mistakes=[
            Mistake(15, "rope_parameters ignored", {"rope_parameters": {"rope_theta": 10000.0}}),
            Mistake(15, "scaling ignored", {"rope_parameters": {"rope_theta": 20000.0}}),
            Mistake(15, "theta left at its default", {"rope_parameters.rope_theta": 10000.0}),
        ],
    ),
    Case(
        name="qwen3",
        family="qwen3",
        description="as Qwen3-4B: q_norm and k_norm over head_dim before rotary, head_dim other than hidden/heads, "
        "theta 1e6, tied, bf16",
        config={
            "architectures": ["Qwen3ForCausalLM"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": 93,
            "eos_token_id": 95,
            "head_dim": 16,
            "hidden_act": "silu",
            "hidden_size": 40,
            "initializer_range": 0.02,
            "intermediate_size": 64,
            "max_position_embeddings": 40960,
            "max_window_layers": 36,
            "model_type": "qwen3",
            "num_attention_heads": 4,
            "num_hidden_layers": 3,
            "num_key_value_heads": 2,
            "rms_norm_eps": 1e-06,
            "rope_scaling": None,
            "rope_theta": 1000000,
            "sliding_window": None,
            "tie_word_embeddings": True,
            "torch_dtype": "bfloat16",
            "transformers_version": "4.51.0",
            "use_cache": True,
            "use_sliding_window": False,
            "vocab_size": 96,
        },
        generation_config=QWEN_GENERATION,
        stored=torch.bfloat16,
        mistakes=[
            Mistake(11, "q_norm and k_norm skipped", edit=skip_head_norms),
            Mistake(11, "theta left at its default", {"rope_theta": 10000}),
        ],
    ),
    Case(
        name="qwen3-sharded",
        family="qwen3",
        description="three shards and model.safetensors.index.json, untied lm_head; a sliding_window that "
        "use_sliding_window false switches off",
        config={
            "architectures": ["Qwen3ForCausalLM"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": 93,
            "eos_token_id": 95,
            "head_dim": 16,
            "hidden_act": "silu",
            "hidden_size": 32,
            "initializer_range": 0.02,
            "intermediate_size": 64,
            "max_position_embeddings": 40960,
            "max_window_layers": 1,
            "model_type": "qwen3",
            "num_attention_heads": 4,
            "num_hidden_layers": 3,
            "num_key_value_heads": 1,
            "rms_norm_eps": 1e-06,
            "rope_scaling": None,
            "rope_theta": 1000000,
            "sliding_window": 6,
            "tie_word_embeddings": False,
            "torch_dtype": "float32",
            "transformers_version": "4.51.0",
            "use_cache": True,
            "use_sliding_window": False,
            "vocab_size": 96,
        },
        generation_config=QWEN_GENERATION,
        shards=3,
        mistakes=[
            Mistake(11, "lm_head.weight ignored, table tied", edit=tie_table),
            Mistake(1, "use_sliding_window false ignored", {"use_sliding_window": True}),
        ],
    ),
    Case(
        name="qwen3-sliding",
        family="qwen3",
        description="use_sliding_window true: layers from max_window_layers (2) on see a window of 6, those before it "
        "everything",
        config={
            "architectures": ["Qwen3ForCausalLM"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": 93,
            "eos_token_id": 95,
            "head_dim": 16,
            "hidden_act": "silu",
            "hidden_size": 32,
            "initializer_range": 0.02,
            "intermediate_size": 48,
            "max_position_embeddings": 40960,
            "max_window_layers": 2,
            "model_type": "qwen3",
            "num_attention_heads": 4,
            "num_hidden_layers": 4,
            "num_key_value_heads": 2,
            "rms_norm_eps": 1e-06,
            "rope_scaling": None,
            "rope_theta": 1000000,
            "sliding_window": 6,
            "tie_word_embeddings": True,
            "torch_dtype": "float32",
            "transformers_version": "4.51.0",
            "use_cache": True,
            "use_sliding_window": True,
            "vocab_size": 96,
        },
        generation_config=QWEN_GENERATION,
        window=6,
        mistakes=[
            Mistake(1, "window off", {"use_sliding_window": False}),
            Mistake(1, "window on the layers before max_window_layers too", {"max_window_layers": 0}),
            Mistake(1, "window reaches back W tokens, not W-1", {"sliding_window": 7}),
        ],
    ),
    Case(
        name="qwen3-yarn",
        family="qwen3",
        description="rope_scaling yarn with a factor of 4 alone: original positions of max_position_embeddings, the betas 32 "
        "and 1, turned heads enlarged by 0.1 ln 4 + 1",
        config={
            "architectures": ["Qwen3ForCausalLM"],
            "attention_bias": False,
            "eos_token_id": 95,
            "head_dim": 32,
            "hidden_act": "silu",
            "hidden_size": 32,
            "intermediate_size": 48,
            "max_position_embeddings": 64,
            "model_type": "qwen3",
            "num_attention_heads": 4,
            "num_hidden_layers": 2,
            "num_key_value_heads": 2,
            "rms_norm_eps": 1e-06,
            "rope_scaling": {"factor": 4.0, "rope_type": "yarn"},
            "rope_theta": 10000.0,
            "tie_word_embeddings": True,
            "torch_dtype": "float32",
            "use_sliding_window": False,
            "vocab_size": 96,
        },
        generation_config=QWEN_GENERATION,
        mistakes=[
            Mistake(15, "scaling ignored", {"rope_scaling": None}),
            Mistake(15, "scaled linearly", {"rope_scaling": {"factor": 4.0, "rope_type": "linear"}}),
            Mistake(15, "turned heads not enlarged", {"rope_scaling.attention_factor": 1.0}),
        ],
    ),
    Case(
        name="smollm3",
        family="smollm3",
        description="as SmolLM3-3B: Llama with no rope in each fourth layer, which no_rope_layers says, head_dim left out, tied",
        config={
            "architectures": ["SmolLM3ForCausalLM"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": None,
            "eos_token_id": 95,
            "hidden_act": "silu",
            "hidden_size": 64,
            "initializer_range": 0.02,
            "intermediate_size": 48,
            "layer_types": ["full_attention"] * 4,
            "max_position_embeddings": 65536,
            "max_window_layers": 28,
            "mlp_bias": False,
            "model_type": "smollm3",
            "no_rope_layer_interval": 4,
            "no_rope_layers": [1, 1, 1, 0],
            "num_attention_heads": 4,
            "num_hidden_layers": 4,
            "num_key_value_heads": 2,
            "pad_token_id": 94,
            "rms_norm_eps": 1e-06,
            "rope_scaling": None,
            "rope_theta": 5000000.0,
            "sliding_window": None,
            "tie_word_embeddings": True,
            "torch_dtype": "bfloat16",
            "use_cache": False,
            "use_sliding_window": False,
            "vocab_size": 96,
        },
        generation_config={"do_sample": True, "eos_token_id": 95, "temperature": 0.6, "top_p": 0.95},
        stored=torch.bfloat16,
        mistakes=[
            Mistake(17, "all layers turned", {"no_rope_layers": [1, 1, 1, 1]}),
            Mistake(17, "the first of four layers not turned", {"no_rope_layers": [0, 1, 1, 1]}),
            Mistake(16, "theta left at its default", {"rope_theta": 2000000.0}),
        ],
    ),
    Case(
        name="smollm3-sliding",
        family="smollm3",
        description="no_rope_layers left out, each second layer has no rope; use_sliding_window: those see a window of 6",
        config={
            "architectures": ["SmolLM3ForCausalLM"],
            "eos_token_id": 95,
            "hidden_act": "silu",
            "hidden_size": 32,
            "intermediate_size": 48,
            "max_position_embeddings": 4096,
            "model_type": "smollm3",
            "no_rope_layer_interval": 2,
            "num_attention_heads": 4,
            "num_hidden_layers": 4,
            "num_key_value_heads": 1,
            "pad_token_id": 94,
            "rms_norm_eps": 1e-06,
            "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"},
            "sliding_window": 6,
            "tie_word_embeddings": False,
            "use_sliding_window": True,
            "vocab_size": 96,
        },
        generation_config={"do_sample": True, "eos_token_id": 95, "temperature": 0.6, "top_p": 0.95},
        window=6,
        mistakes=[
            Mistake(17, "each fourth layer not turned", {"no_rope_layer_interval": 4}),
            Mistake(1, "window off", {"use_sliding_window": False}),
            Mistake(1, "window reaches back W tokens, not W-1", {"sliding_window": 7}),
        ],
    ),
    Case(
        name="ministral3",
        family="ministral3",
        description="as Ministral-3-3B in bf16: text_config in a Mistral3ForConditionalGeneration, YaRN whose two mscales cancel, "
        "queries that grow each 40 positions, vision tensors to ignore",
        config={
            "architectures": ["Mistral3ForConditionalGeneration"],
            "dtype": "bfloat16",
            "image_token_index": 10,
            "model_type": "mistral3",
            "multimodal_projector_bias": False,
            "projector_hidden_act": "gelu",
            "spatial_merge_size": 2,
            "text_config": {
                "attention_dropout": 0.0,
                "bos_token_id": 1,
                "eos_token_id": 2,
                "head_dim": 32,
                "hidden_act": "silu",
                "hidden_size": 48,
                "initializer_range": 0.02,
                "intermediate_size": 64,
                "max_position_embeddings": 640,
                "model_type": "ministral3",
                "num_attention_heads": 4,
                "num_hidden_layers": 3,
                "num_key_value_heads": 2,
                "rms_norm_eps": 1e-05,
                "rope_parameters": {
                    "beta_fast": 4.0,
                    "beta_slow": 1.0,
                    "factor": 16.0,
                    "llama_4_scaling_beta": 0.1,
                    "mscale": 1.0,
                    "mscale_all_dim": 1.0,
                    "original_max_position_embeddings": 40,
                    "rope_theta": 1000.0,
                    "rope_type": "yarn",
                    "type": "yarn",
                },
                "sliding_window": None,
                "tie_word_embeddings": True,
                "use_cache": True,
                "vocab_size": 96,
            },
            "tie_word_embeddings": True,
            "vision_config": {
                "attention_dropout": 0.0, "head_dim": 4, "hidden_act": "silu", "hidden_size": 4, "image_size": 4,
                "intermediate_size": 4, "model_type": "pixtral", "num_attention_heads": 1, "num_channels": 3,
                "num_hidden_layers": 1, "patch_size": 2,
                "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
            },
            "vision_feature_layer": -1,
        },
        generation_config={"bos_token_id": 1, "eos_token_id": 2, "max_length": 640, "pad_token_id": 11},
        stored=torch.bfloat16,
        prompt_tokens=96,
        prefixes={
            "model.language_model.": "language_model.model.",
            "model.vision_tower.": "vision_tower.",
            "model.multi_modal_projector.": "multi_modal_projector.",
        },
        mistakes=[
            Mistake(15, "scaled linearly", {"text_config.rope_parameters.rope_type": "linear"}),
            Mistake(15, "turned heads enlarged", {"text_config.rope_parameters.mscale_all_dim": 0.0}),
            Mistake(18, "queries do not grow", {"text_config.rope_parameters.llama_4_scaling_beta": 0.0}),
        ],
    ),
    Case(
        name="qwen35-nested",
        family="qwen35",
        description="the published layout of Qwen 3.5: text_config, weights under model.language_model., a vision tower to "
        "ignore, every fourth layer attends and the last does not, two value heads a key head, a quarter of each head turned",
        config={
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "image_token_id": 120,
            "model_type": "qwen3_5",
            "text_config": {
                "attention_bias": False,
                "attention_dropout": 0.0,
                "attn_output_gate": True,
                "dtype": "float32",
                "eos_token_id": 95,
                "full_attention_interval": 4,
                "head_dim": 32,
                "hidden_act": "silu",
                "hidden_size": 32,
                "initializer_range": 0.02,
                "intermediate_size": 48,
                "linear_conv_kernel_dim": 4,
                "linear_key_head_dim": 16,
                "linear_num_key_heads": 2,
                "linear_num_value_heads": 4,
                "linear_value_head_dim": 32,
                "mamba_ssm_dtype": "float32",
                "max_position_embeddings": 262144,
                "mlp_only_layers": [],
                "model_type": "qwen3_5_text",
                "mtp_num_hidden_layers": 1,
                "num_attention_heads": 4,
                "num_hidden_layers": 5,
                "num_key_value_heads": 2,
                "rms_norm_eps": 1e-06,
                "rope_parameters": {
                    "mrope_interleaved": True,
                    "mrope_section": [2, 1, 1],
                    "partial_rotary_factor": 0.25,
                    "rope_theta": 10000000,
                    "rope_type": "default",
                },
                "tie_word_embeddings": True,
                "use_cache": True,
                "vocab_size": 128,
            },
            "tie_word_embeddings": True,
            "transformers_version": "4.57.0.dev0",
            "video_token_id": 121,
            "vision_config": QWEN35_VISION,
            "vision_end_token_id": 123,
            "vision_start_token_id": 122,
        },
        generation_config=QWEN_GENERATION,
        prompt_tokens=70,
        mistakes=[
            Mistake(21, "whole heads turned", {"text_config.rope_parameters.partial_rotary_factor": 1.0}),
            Mistake(21, "the gates of all heads taken behind all queries", edit=gates_behind_all_queries),
            Mistake(21, "norm weight w for 1+w", edit=subtract_one_from_norms),
            Mistake(21, "q_norm and k_norm skipped", edit=skip_head_norms),
            Mistake(22, "1+w for w in a delta layer's norm", edit=add_one_to_delta_norms),
            Mistake(22, "the convolution's taps reversed", edit=reverse_taps),
            Mistake(22, "value heads take key heads in turn", edit=value_heads_in_turn),
        ],
    ),
    Case(
        name="qwen35-text",
        family="qwen35",
        description="text only: Qwen3_5ForCausalLM, flat, bf16, irregular layer_types, sizes, factor and theta other than "
        "the published ones, untied lm_head",
        config={
            "architectures": ["Qwen3_5ForCausalLM"],
            "attention_bias": False,
            "attn_output_gate": True,
            "eos_token_id": 95,
            "head_dim": 16,
            "hidden_act": "silu",
            "hidden_size": 48,
            "intermediate_size": 32,
            "layer_types": [
                "full_attention",
                "linear_attention",
                "linear_attention",
                "full_attention",
            ],
            "linear_conv_kernel_dim": 3,
            "linear_key_head_dim": 32,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 2,
            "linear_value_head_dim": 16,
            "model_type": "qwen3_5_text",
            "num_attention_heads": 2,
            "num_hidden_layers": 4,
            "num_key_value_heads": 1,
            "rms_norm_eps": 1e-05,
            "rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 50000, "rope_type": "default"},
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
            "vocab_size": 96,
        },
        generation_config=QWEN_GENERATION,
        stored=torch.bfloat16,
        mistakes=[
            Mistake(21, "default theta", {"rope_parameters.rope_theta": 10000}),
            Mistake(21, "a quarter turned as published", {"rope_parameters.partial_rotary_factor": 0.25}),
            Mistake(21, "lm_head.weight ignored, table tied", edit=tie_table),
        ],
    ),
    Case(
        name="gemma4",
        family="gemma4",
        description="as Gemma 4 E2B: text_config in a Gemma4ForConditionalGeneration, heads of two widths, the last layers share keys and "
        "have wide feed-forward layers, embeddings for each layer, a cap of logits",
        config=gemma4_nested(
            {
                "hidden_size": 36,
                "hidden_size_per_layer_input": 12,
                "layer_types": LOCAL_2 * 2,
                "num_hidden_layers": 6,
                "num_kv_shared_layers": 3,
                "use_double_wide_mlp": True,
            },
            "bfloat16",
        ),
        generation_config=GEMMA_GENERATION,
        stored=torch.bfloat16,
        mistakes=[
            Mistake(1, "window reaches back W tokens, not W-1", {"text_config.sliding_window": 9}),
            Mistake(2, "all pairs of global layers turned", {"text_config.rope_parameters.full_attention.partial_rotary_factor": 1.0}),
            Mistake(4, "embedding scales in f32", edit=scale_embeddings_exactly),
            Mistake(5, "q_norm and k_norm skipped", edit=skip_head_norms),
            Mistake(19, "logits not capped", {"text_config.final_logit_softcapping": None}),
            Mistake(19, "values not normed", edit=skip_value_norms),
            Mistake(19, "layers not scaled", edit=skip_layer_scales),
            Mistake(19, "inputs of layers left out", edit=skip_layer_inputs),
        ],
    ),
    Case(
        name="gemma4-text",
        family="gemma4",
        description="text only, flat: Gemma4ForCausalLM, layer_types left out, the last layer full all the same, no sharing, two kv heads, "
        "no inputs of layers, untied lm_head, f32",
        config={
            "architectures": ["Gemma4ForCausalLM"],
            "model_type": "gemma4_text",
            "tie_word_embeddings": False,
            **gemma4_text({
                "hidden_size": 40,
                "hidden_size_per_layer_input": 0,
                "num_hidden_layers": 7,
                "num_key_value_heads": 2,
            }),
        },
        generation_config=GEMMA_GENERATION,
        mistakes=[
            Mistake(1, "window off", {"sliding_window": 4096}),
            Mistake(2, "global theta on local layers", {"rope_parameters.sliding_attention.rope_theta": 1e6}),
            Mistake(19, "layers not scaled", edit=skip_layer_scales),
        ],
    ),
]
