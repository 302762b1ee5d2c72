#!/usr/bin/env python3
"""wardround beside llama.cpp on families of 2026: the same random weights in q8_0, one thread, the engines in turn, medians and their ratio.

Models of 12 to 16 layers, 0.19 to 0.25 billion parameters, in the shapes of SmolLM3, Qwen 3.5 and Gemma 4 E2B. Either engine reads a prompt of
256 tokens and writes 32 for one sequence. llama.cpp is a wheel of its server, so its figures hold its sampler too, over 960 tokens.

    python3 -m venv peers && peers/bin/pip install xllamacpp gguf numpy torch safetensors
    cargo build --release
    peers/bin/python benches/peers_families.py target/release/wardround --models /tmp/peers
"""

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

PROMPT, WRITTEN, VOCABULARY, HIDDEN, STORED = 256, 32, 960, 1024, "Q8_0"
LLAMA_NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "linear_attn.in_proj_qkv": "attn_qkv",
    "linear_attn.in_proj_z": "attn_gate", "linear_attn.in_proj_b": "ssm_beta", "linear_attn.in_proj_a": "ssm_alpha",
    "linear_attn.out_proj": "ssm_out", "linear_attn.conv1d": "ssm_conv1d", "linear_attn.A_log": "ssm_a",
    "linear_attn.dt_bias": "ssm_dt.bias", "linear_attn.norm": "ssm_norm", "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm", "layer_scalar": "layer_output_scale.weight", "per_layer_input_gate": "inp_gate",
    "per_layer_projection": "proj", "post_per_layer_input_norm": "post_norm", "embed_tokens": "token_embd", "norm": "output_norm",
    "embed_tokens_per_layer": "per_layer_token_embd", "per_layer_model_projection": "per_layer_model_proj",
    "per_layer_projection_norm": "per_layer_proj_norm",
}  # fmt: skip
COMMON = {"hidden_size": HIDDEN, "vocab_size": VOCABULARY}
KINDS = ["sliding_attention"] * 4 + ["full_attention"]
SHAPES = {
    "smollm3": COMMON | {
        "intermediate_size": 3072, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64,
    },
    "qwen35": COMMON | {
        "intermediate_size": 3584, "num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256,
        "linear_num_key_heads": 16, "linear_num_value_heads": 16, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    },
    "gemma4": COMMON | {
        "intermediate_size": 2048, "num_hidden_layers": 15, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
        "global_head_dim": 512, "layer_types": 3 * KINDS, "num_kv_shared_layers": 5, "hidden_size_per_layer_input": 256,
        "vocab_size_per_layer_input": VOCABULARY,
    },
}  # fmt: skip


def tensors(family: str, shape: dict) -> dict[str, tuple[int, ...]]:
    """Every tensor of a layer and around it, by its published name without the prefix."""
    hidden, layers, small = shape["hidden_size"], shape["num_hidden_layers"], shape.get("hidden_size_per_layer_input", 0)
    is_qwen, is_gemma, found = family == "qwen35", family == "gemma4", {"embed_tokens": (VOCABULARY, hidden)}
    if is_gemma:
        found |= {"embed_tokens_per_layer": (VOCABULARY, layers * small), "per_layer_projection_norm": (small,)}
        found |= {"per_layer_model_projection": (layers * small, hidden)}
    for layer in range(layers):
        is_sharing = layer >= layers - shape.get("num_kv_shared_layers", 0)
        is_full = is_gemma and shape["layer_types"][layer] == "full_attention"
        head = shape["global_head_dim" if is_full else "head_dim"]
        inner = shape["intermediate_size"] * (2 if is_sharing else 1)
        queries, keys = shape["num_attention_heads"] * head, shape["num_key_value_heads"] * head
        parts = {"mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden), "mlp.down_proj": (hidden, inner)}
        parts |= {"input_layernorm": (hidden,), "post_attention_layernorm": (hidden,)}
        if is_qwen and (layer + 1) % 4:
            heads, values = 16, 16 * 128
            parts |= {"linear_attn.in_proj_qkv": (3 * values, hidden), "linear_attn.in_proj_z": (values, hidden)}
            parts |= {"linear_attn.in_proj_b": (heads, hidden), "linear_attn.in_proj_a": (heads, hidden)}
            parts |= {"linear_attn.conv1d": (3 * values, 1, 4), "linear_attn.out_proj": (hidden, values)}
            parts |= {"linear_attn.A_log": (heads,), "linear_attn.dt_bias": (heads,), "linear_attn.norm": (128,)}
        else:
            parts |= {"self_attn.q_proj": ((2 if is_qwen else 1) * queries, hidden), "self_attn.o_proj": (hidden, queries)}
            parts |= {"self_attn.q_norm": (head,)} if is_qwen or is_gemma else {}
            if not is_sharing:
                parts |= {"self_attn.k_proj": (keys, hidden), "self_attn.v_proj": (keys, hidden)}
                parts |= {"self_attn.k_norm": (head,)} if is_qwen or is_gemma else {}
        if is_gemma:
            parts |= {"pre_feedforward_layernorm": (hidden,), "post_feedforward_layernorm": (hidden,), "layer_scalar": (1,)}
            parts |= {"per_layer_input_gate": (small, hidden), "per_layer_projection": (hidden, small)}
            parts |= {"post_per_layer_input_norm": (hidden,)}
        found |= {f"layers.{layer}.{part}": size for part, size in parts.items()}
    return found | {"norm": (hidden,)}


def make(family: str, program: Path, models: Path) -> tuple[Path, Path]:
    """A checkpoint, and the same numbers as a GGUF file. Those of norms are as llama.cpp has them, less one where the family says so."""
    import gguf
    import numpy
    import torch
    from safetensors.torch import save_file

    tiny, checkpoint, file = models / f"{family}-tiny", models / family, models / f"{family}.gguf"
    if file.exists():
        return checkpoint, file
    subprocess.run([program, "models", "synth", family, tiny], check=True, capture_output=True)
    shutil.copytree(tiny, checkpoint, ignore=shutil.ignore_patterns("model.safetensors"), dirs_exist_ok=True)
    shape, is_qwen, is_gemma = SHAPES[family], family == "qwen35", family == "gemma4"
    layers, inner = shape["num_hidden_layers"], shape["intermediate_size"]
    config = json.loads((tiny / "config.json").read_text())
    config.get("text_config", config).update(shape)
    (checkpoint / "config.json").write_text(json.dumps(config))
    generator, stored = numpy.random.default_rng(1), {}
    writer = gguf.GGUFWriter(file, family)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    for add, value in [
        (writer.add_context_length, 16384), (writer.add_embedding_length, HIDDEN), (writer.add_layer_norm_rms_eps, 1e-6),
        (writer.add_block_count, layers), (writer.add_feed_forward_length, [inner] * 10 + [2 * inner] * 5 if is_gemma else inner),
        (writer.add_head_count, shape["num_attention_heads"]), (writer.add_head_count_kv, shape["num_key_value_heads"]),
        (writer.add_vocab_size, VOCABULARY), (writer.add_rope_freq_base, {"smollm3": 5e6, "qwen35": 1e7, "gemma4": 1e6}[family]),
        (writer.add_rope_dimension_count, 512 if is_gemma else 64),
    ]:  # fmt: skip
        add(value)
    if is_gemma:
        for add, value in [
            (writer.add_key_length, 512), (writer.add_value_length, 512), (writer.add_key_length_swa, 256),
            (writer.add_value_length_swa, 256), (writer.add_rope_dimension_count_swa, 256), (writer.add_rope_freq_base_swa, 1e4),
            (writer.add_sliding_window, 512), (writer.add_sliding_window_pattern, [kind != KINDS[-1] for kind in shape["layer_types"]]),
            (writer.add_shared_kv_layers, shape["num_kv_shared_layers"]), (writer.add_final_logit_softcapping, 30.0),
            (writer.add_embedding_length_per_layer_input, shape["hidden_size_per_layer_input"]),
        ]:  # fmt: skip
            add(value)
        # Layers that see everything turn a quarter of their pairs: what divides the frequencies of the others leaves nothing of them.
        writer.add_tensor("rope_freqs.weight", numpy.array([1.0] * 64 + [1e30] * 192, numpy.float32))
    if is_qwen:
        writer.add_key_length(256)
        writer.add_value_length(256)
        writer.add_rope_dimension_sections([11, 11, 10, 0])
        writer.add_ssm_conv_kernel(4)
        writer.add_ssm_state_size(128)
        writer.add_ssm_group_count(16)
        writer.add_ssm_time_step_rank(16)
        writer.add_ssm_inner_size(2048)
        writer.add_uint32("qwen35.full_attention_interval", 4)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(["a", "b", "ab", *(f"token{number}" for number in range(3, VOCABULARY))])
    writer.add_token_types([1] * VOCABULARY)
    writer.add_token_merges(["a b"])
    for name, size in tensors(family, shape).items():
        part = name.removeprefix("layers.").partition(".")[2] if name.startswith("layers.") else name
        normal = generator.standard_normal(size, dtype=numpy.float32)
        less = 1.0 if is_qwen and part.endswith("norm") and not part.startswith("linear") else 0.0
        centre = {"linear_attn.A_log": -2.0, "linear_attn.dt_bias": 0.0}.get(part, 1.0 - less)
        if is_gemma and part == "self_attn.q_norm":
            # Nothing else scales its scores: a row would see one key, and any rounding might choose another.
            centre = 1 / 16
        values = normal / numpy.sqrt(size[-1]) if len(size) > 1 else centre + 0.1 * normal
        tensor = torch.from_numpy(values.astype(numpy.float32)).bfloat16()
        is_bare = part.endswith(("A_log", "dt_bias", "layer_scalar"))
        prefix = "model.language_model." if is_qwen or is_gemma else "model."
        stored[f"{prefix}{name}{'' if is_bare else '.weight'}"] = tensor
        values = tensor.float().numpy() + (less if len(size) == 1 else 0.0)
        after = "post_attention_norm" if is_qwen or is_gemma else "ffn_norm"
        known = LLAMA_NAMES | {"post_attention_layernorm": after}
        theirs = known[part] if part == name else f"blk.{name.split('.')[1]}.{known[part]}"
        theirs += "" if is_bare else ".weight"
        if part.endswith("A_log"):
            values = -numpy.exp(values)
        if len(size) == 2:
            kind = gguf.GGMLQuantizationType[STORED]
            writer.add_tensor(theirs, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(theirs, values.reshape(size[0], -1) if len(size) > 1 else values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    save_file(stored, checkpoint / "model.safetensors")
    return checkpoint, file


def of_llama(file: str) -> None:
    """Prints tokens a second of prompts and of what is written, in a process of its own."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = file
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.n_ctx, parameters.n_parallel, parameters.n_batch = 1024, 1, 512
    server, found = xllamacpp.Server(parameters), []
    for _ in range(3):
        prompt = [random.randrange(20, 900) for _ in range(PROMPT)]
        asked = {"prompt": prompt, "n_predict": WRITTEN, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
        timings = server.handle_completions(asked)["timings"]
        found.append([timings["prompt_per_second"], timings["predicted_per_second"]])
    print(json.dumps(found[1:]))


def of_wardround(program: Path, checkpoint: Path) -> list[list[float]]:
    flags = f"-p {PROMPT} -n {WRITTEN} --threads 1 --quant q8_0 -r 2 --format json".split()
    told = subprocess.run([program, "bench", "--model", checkpoint, *flags], check=True, capture_output=True).stdout
    prompts, written = json.loads(told)["results"]
    return [[PROMPT / prompt, WRITTEN / write] for prompt, write in zip(prompts["seconds"], written["seconds"])]


def main() -> None:
    if sys.argv[1] == "--llama":
        return of_llama(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wardround", type=Path)
    parser.add_argument("--models", type=Path, default=Path("peers-models"))
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    for family in SHAPES:
        checkpoint, file = make(family, arguments.wardround, arguments.models)
        theirs, ours = [], []
        for _ in range(arguments.rounds):
            told = subprocess.run([sys.executable, __file__, "--llama", file], check=True, capture_output=True).stdout
            theirs += json.loads(told.splitlines()[-1])
            ours += of_wardround(arguments.wardround, checkpoint)
        for place, what in enumerate(["prompt", "written"]):
            own, other = (statistics.median(rates[place] for rates in side) for side in (ours, theirs))
            print(f"{family:8} {what:8} wardround {own:6.1f} llama.cpp {other:6.1f} tokens/s, ratio {own / other:.2f}", flush=True)


if __name__ == "__main__":
    main()
