"""Writes full_layers.json: logits by transformers of a few layers in published widths, whose weights are drawn as `models synth` draws them.

Two gigabytes of memory and two minutes a case; the weights themselves are nowhere kept.
"""

import json
from pathlib import Path

import numpy
import torch
import transformers

from files import write_records

SEED = 11
TOKENS = 24
CHECKED = [0, 1, 5, 23]

QWEN35 = {
    "architectures": ["Qwen3_5ForCausalLM"], "attn_output_gate": True, "full_attention_interval": 2, "head_dim": 256,
    "hidden_act": "silu", "hidden_size": 2560, "intermediate_size": 9216, "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128,
    "max_position_embeddings": 262144, "model_type": "qwen3_5_text", "num_attention_heads": 16, "num_hidden_layers": 2,
    "num_key_value_heads": 4, "rms_norm_eps": 1e-6, "tie_word_embeddings": True, "vocab_size": 64,
    "rope_parameters": {
        "mrope_interleaved": True, "mrope_section": [11, 11, 10], "partial_rotary_factor": 0.25, "rope_theta": 10000000,
        "rope_type": "default",
    },
}  # fmt: skip
DELTA = "in_proj_qkv in_proj_z in_proj_b in_proj_a conv1d A_log dt_bias norm out_proj".split()
SMOLLM3 = {
    "architectures": ["SmolLM3ForCausalLM"], "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 11008,
    "max_position_embeddings": 65536, "model_type": "smollm3", "no_rope_layer_interval": 2, "num_attention_heads": 16,
    "num_hidden_layers": 2, "num_key_value_heads": 4, "pad_token_id": 0, "rms_norm_eps": 1e-6, "rope_theta": 5000000.0,
    "tie_word_embeddings": True, "use_sliding_window": False, "vocab_size": 64,
}  # fmt: skip
MINISTRAL3 = {
    "architectures": ["Ministral3ForCausalLM"], "head_dim": 128, "hidden_act": "silu", "hidden_size": 3072,
    "intermediate_size": 9216, "max_position_embeddings": 262144, "model_type": "ministral3", "num_attention_heads": 32,
    "num_hidden_layers": 1, "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "vocab_size": 64,
    "rope_parameters": {
        "beta_fast": 32.0, "beta_slow": 1.0, "factor": 16.0, "llama_4_scaling_beta": 0.1, "mscale": 1.0, "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 16384, "rope_theta": 1000000.0, "rope_type": "yarn", "type": "yarn",
    },
}  # fmt: skip
GEMMA4 = {
    "architectures": ["Gemma4ForCausalLM"], "attention_k_eq_v": False, "enable_moe_block": False,
    "final_logit_softcapping": 30.0, "global_head_dim": 512, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size_per_layer_input": 256, "max_position_embeddings": 131072, "model_type": "gemma4_text",
    "num_attention_heads": 8, "rms_norm_eps": 1e-6, "sliding_window": 512, "tie_word_embeddings": True, "vocab_size": 64,
    "vocab_size_per_layer_input": 64,
    "rope_parameters": {
        "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
        "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
    },
}  # fmt: skip
# A layer of each kind, the last of which has another's keys and values.
E2B = GEMMA4 | {
    "hidden_size": 1536, "intermediate_size": 6144, "num_hidden_layers": 3, "num_key_value_heads": 1,
    "layer_types": ["sliding_attention", "full_attention", "full_attention"], "num_kv_shared_layers": 1,
    "use_double_wide_mlp": True,
}  # fmt: skip
E4B = GEMMA4 | {
    "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 1, "num_key_value_heads": 2,
    "layer_types": ["full_attention"], "num_kv_shared_layers": 0, "use_double_wide_mlp": False,
}  # fmt: skip
CASES = {"qwen35-4b": QWEN35, "smollm3-3b": SMOLLM3, "ministral3-3b": MINISTRAL3, "gemma4-e2b": E2B, "gemma4-e4b": E4B}


def names(config: dict) -> list[str]:
    """In the order of `Config::tensors`."""
    family, found = config["model_type"], ["embed_tokens"]
    if family == "gemma4_text":
        found += ["embed_tokens_per_layer", "per_layer_model_projection", "per_layer_projection_norm"]
    for layer in range(config["num_hidden_layers"]):
        is_delta = family == "qwen3_5_text" and (layer + 1) % config["full_attention_interval"] != 0
        is_sharing = layer >= config["num_hidden_layers"] - config.get("num_kv_shared_layers", 0)
        if is_delta:
            parts = [f"linear_attn.{part}" for part in DELTA]
        else:
            parts = [f"self_attn.{part}_proj" for part in ("qo" if is_sharing else "qkvo")]
        parts += "mlp.gate_proj mlp.up_proj mlp.down_proj input_layernorm post_attention_layernorm".split()
        if family == "gemma4_text":
            parts += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
        if family in ("gemma4_text", "qwen3_5_text") and not is_delta:
            parts += ["self_attn.q_norm"] if is_sharing else ["self_attn.q_norm", "self_attn.k_norm"]
        if family == "gemma4_text":
            parts += "layer_scalar per_layer_input_gate per_layer_projection post_per_layer_input_norm".split()
        found += [f"layers.{layer}.{part}" for part in parts]
    return found + ["norm"]


def mix(number: numpy.ndarray) -> numpy.ndarray:
    """SplitMix64's finisher, as `crates/engine/src/random.rs` has it."""
    with numpy.errstate(over="ignore"):
        number = number + numpy.uint64(0x9E3779B97F4A7C15)
        number = (number ^ (number >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        number = (number ^ (number >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return number ^ (number >> numpy.uint64(31))


def drawn(index: int, name: str, shape: tuple[int, ...], family: str) -> torch.Tensor:
    """As `crates/engine/src/synth/weights.rs`: nearly normal numbers, rounded to bf16."""
    seed = mix(numpy.uint64(SEED) ^ mix(numpy.uint64(index)))
    with numpy.errstate(over="ignore"):
        bits = mix(seed + numpy.arange(numpy.prod(shape), dtype=numpy.uint64))
    parts = sum((bits >> numpy.uint64(16 * part)) & numpy.uint64(0xFFFF) for part in range(4))
    normal = (parts.astype(numpy.float32) - numpy.float32(131070.0)) * numpy.float32(1.7320508 / 65536.0)
    if len(shape) > 1:
        deviation = numpy.float32(2.0 if name == "embed_tokens" else 1.0) / numpy.sqrt(numpy.float32(shape[-1]))
        values = deviation * normal
    else:
        centres = {"A_log": -2.0, "dt_bias": 0.0, "linear_attn.norm": 1.0}
        # Qwen 3.5 keeps its other norms less one.
        other = 0.0 if family == "qwen3_5_text" else 1.0
        centre = next((centre for end, centre in centres.items() if name.endswith(end)), other)
        values = numpy.float32(centre) + numpy.float32(0.1) * normal
    return torch.from_numpy(values.reshape(shape)).bfloat16().float()


@torch.no_grad()
def make(folder: Path) -> None:
    records = []
    for case, config in CASES.items():
        model = getattr(transformers, config["architectures"][0])
        model = model(transformers.AutoConfig.for_model(**json.loads(json.dumps(config)))).eval()
        state = model.state_dict()
        for index, name in enumerate(names(config)):
            is_bare = name.endswith(("A_log", "dt_bias", "layer_scalar"))
            tensor = state.pop(f"model.{name}" + ("" if is_bare else ".weight"))
            tensor.copy_(drawn(index, name, tuple(tensor.shape), config["model_type"]))
        for module in model.modules():
            # Of what is stored in bf16.
            if hasattr(module, "embed_scale"):
                module.embed_scale.copy_(module.embed_scale.bfloat16())
        if set(state) - {"lm_head.weight"}:
            raise SystemExit(f"{case}: not drawn: {sorted(state)}")
        tokens = [(7 * index * index + 3) % config["vocab_size"] for index in range(TOKENS)]
        logits = model(input_ids=torch.tensor([tokens])).logits[0]
        rows = [[round(value, 6) for value in logits[position].tolist()] for position in CHECKED]
        largest = logits.abs().max().item()
        records.append({"name": case, "seed": SEED, "config": config, "tokens": tokens, "positions": CHECKED,
                        "tolerance": 2e-5 * largest, "logits": rows})  # fmt: skip
        print(f"full layers: {case}, largest logit {largest:.3g}")
    write_records(folder / "full_layers.json", {}, "cases", records)


if __name__ == "__main__":
    make(Path(__file__).parent)
