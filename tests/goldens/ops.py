"""Writes ops.safetensors and ops.json: small inputs and outputs of the decoder's own operations.

The f32 and bf16 outputs come from transformers' modules; `*.output_f64` is the same formula on the same inputs in f64.
"""

from pathlib import Path
from types import SimpleNamespace

import torch
from torch.nn import functional
from transformers import LlamaConfig
from transformers.activations import ACT2FN
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.llama.modeling_llama import (
    LlamaRMSNorm,
    LlamaRotaryEmbedding,
    apply_rotary_pos_emb,
    eager_attention_forward,
)

from files import write_records, write_tensors


class Goldens:
    """Collects tensors named `<case>.<tensor>` and one record a case."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.tensors: dict[str, torch.Tensor] = {}
        self.records: list[dict] = []

    def random(self, *shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
        return (scale * torch.randn(shape, generator=self.generator)).to(dtype)

    def add(
        self, op: str, case: str, parameters: dict, absolute: float, relative: float, **tensors: torch.Tensor
    ) -> None:
        """An output `y` may differ from its golden `g` by absolute + relative * |g|, element by element."""
        tolerance = {"absolute_tolerance": absolute, "relative_tolerance": relative}
        self.records.append({"op": op, "case": case, **parameters, **tolerance, "tensors": list(tensors)})
        self.tensors |= {f"{case}.{name}": tensor for name, tensor in tensors.items()}


def make(folder: Path) -> None:
    goldens = Goldens(seed=7)
    with torch.no_grad():
        add_norms(goldens)
        add_gated(goldens)
        add_rotary(goldens)
        add_frequencies(goldens)
        add_attention(goldens)
    write_tensors(folder / "ops.safetensors", goldens.tensors)
    write_records(folder / "ops.json", {}, "cases", goldens.records)
    print(f"ops: {len(goldens.records)}")


def add_norms(goldens: Goldens) -> None:
    for name, module_class, centre, plus_one in (("llama", LlamaRMSNorm, 1.0, 0.0), ("gemma", Gemma3RMSNorm, 0.0, 1.0)):
        for rows, width, epsilon, scale, dtype in (
            (5, 40, 1e-6, 1.0, torch.float32),
            (3, 256, 1e-5, 30.0, torch.float32),
            (3, 64, 1e-5, 1e-3, torch.float32),  # epsilon outweighs the squares
            (4, 64, 1e-6, 4.0, torch.bfloat16),  # llama rounds before the weight, gemma after
        ):
            input = goldens.random(rows, width, dtype=dtype, scale=scale)
            weight = (centre + goldens.random(width, scale=0.3)).to(dtype)
            module = module_class(width, eps=epsilon).to(dtype)
            module.weight.copy_(weight)
            x = input.double()
            normed = x * (x.pow(2).mean(-1, keepdim=True) + epsilon).rsqrt()
            output, exact = module(input), normed * (weight.double() + plus_one)
            if dtype == torch.bfloat16:
                check_order(output, normed, weight, plus_one)
            goldens.add(
                f"rms_norm_{name}",
                f"rms_norm_{name}_{rows}x{width}_{short(dtype)}",
                {"epsilon": epsilon},
                *((0.0, 0.0) if dtype == torch.bfloat16 else (1e-6, 1e-6)),
                input=input,
                weight=weight,
                output=output,
                output_f64=exact,
            )


def check_order(output: torch.Tensor, normed: torch.Tensor, weight: torch.Tensor, plus_one: float) -> None:
    """bf16 is compared bit for bit: rounding before and after the weight must differ, and f32 errors not matter."""

    def rounded(x: torch.Tensor, before: bool) -> torch.Tensor:
        return ((x.bfloat16().double() if before else x) * (weight.double() + plus_one)).bfloat16()

    before = plus_one == 0.0
    steady = all(torch.equal(output, rounded(normed * (1.0 + error), before)) for error in (-1e-6, 0.0, 1e-6))
    if not steady or torch.equal(output, rounded(normed, not before)):
        raise SystemExit("ops: the bf16 norms need another seed")


def add_gated(goldens: Goldens) -> None:
    """The whole range matters: past ±10 a naive exp overflows or a tanh saturates."""
    gate = torch.cat([goldens.random(4, 32, scale=2.0), torch.linspace(-100.0, 100.0, 32)[None]])
    up = goldens.random(5, 32)
    exact = {
        "silu": lambda x: x / (1 + torch.exp(-x)),
        "gelu_pytorch_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    }
    for activation, function in exact.items():
        goldens.add(
            f"{activation}_mul",
            f"{activation}_mul",
            {},
            1e-6,
            1e-6,
            gate=gate,
            up=up,
            output=ACT2FN[activation](gate) * up,
            output_f64=function(gate.double()) * up.double(),
        )


def add_rotary(goldens: Goldens) -> None:
    for head_dim, theta, positions in ((16, 1e4, [0, 1, 2, 7, 63]), (64, 5e5, [0, 255, 257, 8191, 131071])):
        heads, tokens = 3, len(positions)
        position = torch.tensor(positions)
        frequencies = 1.0 / theta ** (torch.arange(0, head_dim, 2).float() / head_dim)
        input = goldens.random(tokens, heads, head_dim)
        angles = position[:, None].float() * frequencies
        goldens.add(
            "rotary",
            f"rotary_{head_dim}",
            {"theta": theta},
            1e-6,
            1e-6,
            input=input,
            positions=position,
            inv_freq=frequencies,
            angles=angles,
            output=rotate(input, angles),
            # The f32 angle is part of the definition: only what follows it is exact.
            output_f64=rotate(input.double(), angles.double()),
        )


def rotate(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """x [tokens, heads, head_dim], angles [tokens, head_dim / 2]."""
    angles = torch.cat([angles, angles], -1)[None]
    heads_first = x.transpose(0, 1)[None]
    rotated, _ = apply_rotary_pos_emb(heads_first, heads_first, angles.cos(), angles.sin())
    return rotated[0].transpose(0, 1)


def add_frequencies(goldens: Goldens) -> None:
    """Inverse frequencies under each scaling, at the published sizes."""
    llama3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    for case, head_dim, parameters in (
        ("llama3_3b", 128, {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, **llama3}),
        ("llama3_1b", 64, {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, **llama3}),
        ("llama3_8b", 128, {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, **llama3}),
        ("linear_gemma3", 256, {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0}),
        ("default_gemma3_local", 256, {"rope_type": "default", "rope_theta": 10000.0}),
        ("default_qwen3", 128, {"rope_type": "default", "rope_theta": 1000000.0}),
    ):
        config = LlamaConfig(head_dim=head_dim, max_position_embeddings=131072, rope_parameters=dict(parameters))
        rotary = LlamaRotaryEmbedding(config)
        goldens.add(
            "inv_freq", f"inv_freq_{case}", {"head_dim": head_dim, **parameters}, 0.0, 1e-6, output=rotary.inv_freq
        )


def add_attention(goldens: Goldens) -> None:
    """Queries stand at the last of the keys' positions and see distances of 0 to window-1, or any without a window."""
    for case, queries, keys, heads, kv_heads, head_dim, window in (
        ("prefill", 13, 13, 4, 2, 16, None),
        ("prefill_one_kv_head", 9, 9, 4, 1, 8, None),
        ("prefill_no_groups", 6, 6, 3, 3, 16, None),
        ("prefill_window", 21, 21, 4, 2, 16, 5),
        ("prefill_window_of_one", 5, 5, 2, 1, 8, 1),
        ("chunk", 7, 29, 6, 2, 16, None),
        ("chunk_window", 7, 29, 6, 2, 16, 4),
        ("decode", 1, 33, 8, 4, 32, None),
        ("decode_window", 1, 33, 8, 4, 32, 8),
        ("decode_window_not_full", 1, 6, 4, 2, 16, 8),
    ):
        q, k, v = (
            goldens.random(queries, heads, head_dim, scale=2.0),
            goldens.random(keys, kv_heads, head_dim, scale=2.0),
            goldens.random(keys, kv_heads, head_dim),
        )
        scale = head_dim**-0.5
        distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
        seen = (distance >= 0) & (distance < (window or keys))
        goldens.add(
            "attention",
            f"attention_{case}",
            {"scale": scale, "window": window},
            1e-5,
            0.0,
            q=q,
            k=k,
            v=v,
            output=eager_attention(q, k, v, seen, scale),
            output_f64=exact_attention(q, k, v, seen, scale),
        )


def eager_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor, scale: float
) -> torch.Tensor:
    mask = torch.zeros(seen.shape).masked_fill(~seen, float("-inf"))[None, None]
    module = SimpleNamespace(num_key_value_groups=q.shape[1] // k.shape[1], training=False)
    heads_first = [tensor.transpose(0, 1)[None] for tensor in (q, k, v)]
    output, _ = eager_attention_forward(module, *heads_first, mask, scaling=scale)
    return output[0]


def exact_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor, scale: float
) -> torch.Tensor:
    """eager_attention_forward takes its softmax in f32 whatever it is given, so f64 is written out here."""
    output = torch.zeros(q.shape, dtype=torch.float64)
    group = q.shape[1] // k.shape[1]
    for head in range(q.shape[1]):
        keys, values = k[:, head // group].double(), v[:, head // group].double()
        scores = (q[:, head].double() @ keys.T * scale).masked_fill(~seen, float("-inf"))
        output[:, head] = scores.softmax(-1) @ values
    return output


def short(dtype: torch.dtype) -> str:
    return {torch.float32: "f32", torch.bfloat16: "bf16"}[dtype]
