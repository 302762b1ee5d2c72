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
# In the order of `Config::tensors`.
DELTA = "in_proj_qkv in_proj_z in_proj_b in_proj_a conv1d A_log dt_bias norm out_proj".split()
REST = "mlp.gate_proj mlp.up_proj mlp.down_proj input_layernorm post_attention_layernorm".split()
QWEN35_NAMES = [
    "embed_tokens",
    *(f"layers.0.linear_attn.{part}" for part in DELTA),
    *(f"layers.0.{part}" for part in REST),
    *(f"layers.1.self_attn.{part}_proj" for part in "qkvo"),
    *(f"layers.1.{part}" for part in REST),
    "layers.1.self_attn.q_norm",
    "layers.1.self_attn.k_norm",
    "norm",
]
CASES = {"qwen35-4b": (QWEN35, QWEN35_NAMES)}


def mix(number: numpy.ndarray) -> numpy.ndarray:
    """SplitMix64's finisher, as `crates/engine/src/random.rs` has it."""
    with numpy.errstate(over="ignore"):
        number = number + numpy.uint64(0x9E3779B97F4A7C15)
        number = (number ^ (number >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        number = (number ^ (number >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return number ^ (number >> numpy.uint64(31))


def drawn(index: int, name: str, shape: tuple[int, ...]) -> torch.Tensor:
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
        centres = {"A_log": -2.0, "linear_attn.norm": 1.0}
        centre = next((centre for end, centre in centres.items() if name.endswith(end)), 0.0)
        values = numpy.float32(centre) + numpy.float32(0.1) * normal
    return torch.from_numpy(values.reshape(shape)).bfloat16().float()


@torch.no_grad()
def make(folder: Path) -> None:
    records = []
    for case, (config, names) in CASES.items():
        model = getattr(transformers, config["architectures"][0])
        model = model(transformers.AutoConfig.for_model(**json.loads(json.dumps(config)))).eval()
        state = model.state_dict()
        for index, name in enumerate(names):
            is_bare = name.endswith(("A_log", "dt_bias"))
            tensor = state.pop(f"model.{name}" + ("" if is_bare else ".weight"))
            tensor.copy_(drawn(index, name, tuple(tensor.shape)))
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
