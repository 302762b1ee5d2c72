#!/usr/bin/env python3
"""What transformers does on this GPU with one checkpoint, or, without a checkpoint, what the GPU does at most.

    python3 benches/peers_gpu.py --out limits.json
    python3 benches/peers_gpu.py --out qwen3.json --checkpoint DIR [--calls RUN/calls.jsonl] [--new-tokens 128]

FILE is written again after every figure; one that fails leaves its error there, and the next is tried. The figures of a checkpoint:

- `decode, batch B`: prompts of 128 tokens, `generate` of 1 + N tokens less `generate` of 1, so without the prompts, as `wardround
  bench` counts; but with argmax and bookkeeping in Python for each token, which `bench` has not.
- `prefill of 4096`: one forward pass, the last row's logits.
- `continuous batching`: `generate_batch` over prompts of a run's calls of that backbone (`--prompts` of them, evenly spread, 0 for all),
  each completed by exactly N tokens, `--max-batch` at a time, after a small call that makes the cache of keys and values. All
  prompts are given at once: transformers need not wait for a debate's rounds. Without flash attention it is `paged|sdpa`: a
  dense mask over all sequences, and no CUDA graphs; the figure says which it was. Beside it stands what all of the run's calls of
  that backbone came to; `--prompts 0` has both engines do the same calls.

The limits are a copy of 4 GiB inside the GPU (bytes read and written), a bf16 product of 8192³ on random numbers, and what cuBLAS and
sdpa take for Qwen3-4B's products and attention, in microseconds.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is read: what is not there is an error, not a download

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, ContinuousBatchingConfig, GenerationConfig, PreTrainedTokenizerFast

# Outputs and inputs of Qwen3-4B's products: queries with keys and values, what comes of attention, gates with ups, down.
SHAPES = [(6144, 2560), (2560, 4096), (19456, 2560), (2560, 9728)]
PROMPT = 128
PREFILL = 4096


def main() -> None:
    arguments = parse_arguments()
    report = Report(arguments)
    if arguments.checkpoint is None:
        report.take("copy", lambda: copy_rate(arguments.device))
        report.take("bf16 product", lambda: product_rate(arguments.device))
        report.take("linear", lambda: linear_microseconds(arguments.device))
        report.take("attention", lambda: attention_microseconds(arguments.device))
    else:
        models = []
        report.take("load", lambda: models.append(load(arguments)))
        for model in models:
            measure_model(model, report, arguments)
    # A thread of generate_batch that hangs would keep the process.
    os._exit(report.failed)


def measure_model(model, report: "Report", arguments: argparse.Namespace) -> None:
    for size in arguments.batch:
        report.take(f"decode, batch {size}", lambda: decode_rate(model, size, arguments))
    report.take(f"prefill of {PREFILL}", lambda: prefill_rate(model, arguments))
    if arguments.calls:
        report.take("continuous batching", lambda: continuous_rate(model, arguments))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--checkpoint", type=Path, metavar="DIR")
    parser.add_argument("--calls", type=Path, metavar="FILE")
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--max-batch", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--batch", type=lambda text: [int(size) for size in text.split(",")], default=[1, 64])
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--device", default="cuda")
    return parser.parse_args()


def note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Report:
    """What was measured so far; the file always holds all of it."""

    def __init__(self, arguments: argparse.Namespace):
        self.out = arguments.out
        self.failed = False
        device = torch.cuda.get_device_name() if arguments.device == "cuda" else arguments.device
        self.content = {"device": device, "torch": torch.__version__, "transformers": transformers.__version__}
        if arguments.checkpoint:
            self.content["model"] = arguments.checkpoint.name
        self.content["figures"] = {}

    def take(self, name: str, measure: Callable[[], dict | None]) -> None:
        note(name)
        try:
            figure = measure() or {}
        except Exception as error:  # of any kind: the next figure is worth trying
            self.failed = True
            figure = {"error": f"{type(error).__name__}: {error}"[:2000]}
        note(f"{name}: {figure}")
        self.content["figures"][name] = figure
        part = self.out.with_name(self.out.name + ".part")
        part.write_text(json.dumps(self.content, indent=1))
        part.replace(self.out)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - started


def best(work: Callable[[], object], repetitions: int) -> float:
    return min(seconds(work) for _ in range(repetitions))


def copy_rate(device: str) -> dict:
    size = 1 << 32 if device == "cuda" else 1 << 26
    source = torch.randint(0, 256, (size,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    target.copy_(source)
    times = [seconds(lambda: target.copy_(source)) for _ in range(9)]
    return {"bytes_per_second": 2 * size / statistics.median(times)}


def product_rate(device: str) -> dict:
    size, count = (8192, 10) if device == "cuda" else (256, 1)
    a, b = (torch.randn(size, size, device=device).to(torch.bfloat16) for _ in range(2))
    target = a @ b

    def work():
        for _ in range(count):
            torch.matmul(a, b, out=target)

    work()
    times = [seconds(work) for _ in range(5)]
    return {"multiply_adds_per_second": count * size**3 / statistics.median(times)}


def linear_microseconds(device: str) -> dict:
    """By weights that take turns, as layers do: no cache holds them all."""
    shapes, rows = (SHAPES, [1, 8, 16, 64, 128, 256, 512, 1024, 2048]) if device == "cuda" else ([(64, 32)], [1, 8])
    figures = {}
    for outputs, inputs in shapes:
        weights = 4 * [torch.randn(outputs, inputs, device=device).to(torch.bfloat16) for _ in range(8)]
        for count in rows:
            x = torch.randn(count, inputs, device=device).to(torch.bfloat16)
            work = lambda: [torch.nn.functional.linear(x, weight) for weight in weights]
            work()
            figures[f"{count} rows, {inputs} to {outputs}"] = best(work, 5) / len(weights) * 1e6
    return figures


def attention_microseconds(device: str) -> dict:
    """Of a prompt's rows, by 32 heads of 128 numbers over 8 of keys and values."""
    figures = {}
    for length in [512, 2048, 4096] if device == "cuda" else [16]:
        heads = lambda count: torch.randn(1, count, length, 128, device=device).to(torch.bfloat16)
        queries, keys, values = heads(32), heads(8), heads(8)
        attend = torch.nn.functional.scaled_dot_product_attention
        work = lambda: [attend(queries, keys, values, is_causal=True, enable_gqa=True) for _ in range(16)]
        work()
        figures[f"{length} positions"] = best(work, 5) / 16 * 1e6
    return figures


def load(arguments: argparse.Namespace):
    """The text model alone: Gemma's config has a vision tower, which would be made of random weights here."""
    config = AutoConfig.from_pretrained(arguments.checkpoint).get_text_config()
    model, loaded = AutoModelForCausalLM.from_pretrained(
        arguments.checkpoint,
        config=config,
        dtype=torch.bfloat16,
        key_mapping={r"^language_model\.": ""},
        output_loading_info=True,
    )
    if loaded["missing_keys"]:
        raise ValueError(f"not in the checkpoint: {sorted(loaded['missing_keys'])[:3]}")
    return model.to(arguments.device).eval()


def plain(new_tokens: int) -> GenerationConfig:
    """Greedy, and on to the last token, whatever it is."""
    return GenerationConfig(do_sample=False, max_new_tokens=new_tokens, eos_token_id=-1, pad_token_id=0)


def random_tokens(model, rows: int, length: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(42)
    return torch.randint(1, model.config.vocab_size, (rows, length), generator=generator).to(model.device)


def decode_rate(model, batch: int, arguments: argparse.Namespace) -> dict:
    prompts = random_tokens(model, batch, PROMPT)
    mask = torch.ones_like(prompts)

    def generate(count: int) -> None:
        output = model.generate(prompts, attention_mask=mask, generation_config=plain(count))
        if output.shape[1] != PROMPT + count:
            raise ValueError(f"{output.shape[1] - PROMPT} tokens instead of {count}")

    generate(4)
    count, repetitions = arguments.new_tokens, arguments.repetitions
    prompt_seconds = best(lambda: generate(1), repetitions)
    whole_seconds = best(lambda: generate(1 + count), repetitions)
    if whole_seconds <= prompt_seconds:
        raise ValueError(f"{1 + count} tokens in {whole_seconds} s, one in {prompt_seconds} s: too noisy")
    return {
        "tokens_per_second": batch * count / (whole_seconds - prompt_seconds),
        "prompt_and_first_token_seconds": prompt_seconds,
        "whole_seconds": whole_seconds,
        "what": f"generate, {model.config._attn_implementation}, without its prompts of {PROMPT} tokens, with argmax and bookkeeping",
    }


@torch.no_grad()
def prefill_rate(model, arguments: argparse.Namespace, length: int = PREFILL) -> dict:
    prompt = random_tokens(model, 1, length)
    work = lambda: model(prompt, logits_to_keep=1)
    work()
    return {"tokens_per_second": length / best(work, arguments.repetitions), "what": model.config._attn_implementation}


def continuous_rate(model, arguments: argparse.Namespace) -> dict:
    lines = (json.loads(line) for line in arguments.calls.open())
    calls = [call for call in lines if call["backbone"] == arguments.checkpoint.name]
    if not calls:
        raise ValueError(f"no call of {arguments.checkpoint.name} in {arguments.calls}")
    count = min(arguments.prompts or len(calls), len(calls))
    chosen = [calls[index * len(calls) // count] for index in range(count)]
    prompts = render(chosen, arguments.checkpoint)
    as_ours = sum(len(prompt) == call["usage"]["prompt_tokens"] for prompt, call in zip(prompts, chosen))

    # Made by the first call and kept for the second: the cache takes most of the GPU's memory.
    config = ContinuousBatchingConfig(max_requests_per_batch=arguments.max_batch)
    longest = sorted(prompts, key=len)[-2:]
    generate_batch(model, longest, 4, config)
    manager = model._cached_continuous_batching_manager
    manager.switch_to_cb_friendly_attn(model)  # as the call below will: to be told what it is
    attention, settings = model.config._attn_implementation, manager.continuous_batching_config
    elapsed = seconds(lambda: generate_batch(model, prompts, arguments.new_tokens, config))
    model.destroy_cached_continuous_batching_manager()
    prompt_tokens, completion_tokens = sum(map(len, prompts)), count * arguments.new_tokens
    usage = lambda field: sum(call["usage"][field] for call in calls)
    return {
        "what": f"generate_batch, {attention}, CUDA graphs {settings.use_cuda_graph}, up to {arguments.max_batch} sequences at a time",
        "prompts": count,
        "prompts_as_long_as_ours": as_ours,
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "seconds": elapsed,
        "completion_tokens_per_second": completion_tokens / elapsed,
        "all_tokens_per_second": (prompt_tokens + completion_tokens) / elapsed,
        "run": {"calls": len(calls)} | {field: usage(field) for field in ("prompt_tokens", "cached_tokens", "completion_tokens")},
    }


def render(calls: list[dict], checkpoint: Path) -> list[list[int]]:
    """By the files alone: transformers' own classes build Gemma's and Qwen's tokenizers anew, and add a second <bos>."""
    special = json.loads((checkpoint / "tokenizer_config.json").read_text())
    names = {name: special[name] for name in ("bos_token", "eos_token") if special.get(name)}
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(checkpoint / "tokenizer.json"), **names)
    template = checkpoint / "chat_template.jinja"
    tokenizer.chat_template = template.read_text() if template.exists() else special["chat_template"]
    flags = {"add_generation_prompt": True, "enable_thinking": False, "tokenize": False}
    texts = [tokenizer.apply_chat_template(call["messages"], **flags) for call in calls]
    return [tokenizer.encode(text, add_special_tokens=False) for text in texts]


def generate_batch(model, prompts: list[list[int]], new_tokens: int, config: ContinuousBatchingConfig) -> None:
    """It swallows errors, prints to stdout and returns what it has: what came back is counted."""
    with contextlib.redirect_stdout(sys.stderr):
        outputs = model.generate_batch(
            prompts, generation_config=plain(new_tokens), continuous_batching_config=config, persistent_manager=True
        )
    errors = [output.error for output in outputs.values() if output.error]
    lengths = {len(output.generated_tokens) for output in outputs.values()}
    if errors or len(outputs) != len(prompts) or lengths != {new_tokens}:
        raise ValueError(f"{len(outputs)} of {len(prompts)} completions, of {lengths} tokens, {len(errors)} errors: {errors[:1]}")


if __name__ == "__main__":
    main()
