#!/usr/bin/env python3
"""What transformers does on this GPU with the same checkpoints and prompts, and what the GPU does at most.

    python3 benches/peers_gpu.py CHECKPOINT... [--calls RUN/calls.jsonl] [--new-tokens 128] > peers.json

For each checkpoint: tokens/s of `generate` at several batch sizes (128 prompt tokens each), of a forward pass over a prompt of 4096,
and, with --calls, of continuous batching (`generate_batch`) over the prompts that a run's calls of that backbone had, each
completion exactly --new-tokens long. All of a backbone's prompts are given at once: transformers need not wait for a debate's rounds.
The limits are a copy inside the GPU (bytes read and written) and a bf16 product of 8192³ on random numbers.
"""

import argparse
import gc
import json
import sys
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig


def main() -> None:
    arguments = parse_arguments()
    report = {"device": device_name(arguments.device), "torch": torch.__version__, "limits": measure_limits(arguments.device)}
    for checkpoint in arguments.checkpoints:
        note(f"{checkpoint.name}: loading")
        model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.bfloat16).to(arguments.device).eval()
        results = {f"generate, batch {size}": generate_rate(model, size, arguments) for size in arguments.batch}
        results["prefill of 4096"] = prefill_rate(model, 4096)
        if arguments.calls:
            results["continuous batching"] = continuous_rate(model, checkpoint, arguments)
        report[checkpoint.name] = results
        del model
        gc.collect()
        if arguments.device == "cuda":
            torch.cuda.empty_cache()
    json.dump(report, sys.stdout, indent=1)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", type=Path, nargs="+")
    parser.add_argument("--calls", type=Path)
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--batch", type=lambda text: [int(size) for size in text.split(",")], default=[1, 8, 64])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--device", default="cuda")
    return parser.parse_args()


def note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else device


def seconds(work, repetitions: int) -> float:
    """The best of several goes, after one that does not count."""
    times = []
    for _ in range(repetitions + 1):
        started = time.perf_counter()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return min(times[1:])


def measure_limits(device: str) -> dict:
    if device != "cuda":
        return {}
    source = torch.empty(1 << 32, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copied = seconds(lambda: target.copy_(source), 5)
    rate = 2 * source.numel() / copied
    del source, target
    a, b = (torch.randn(8192, 8192, dtype=torch.bfloat16, device=device) for _ in range(2))
    multiplied = seconds(lambda: a @ b, 10)
    return {"copied_bytes_per_second": rate, "bf16_multiply_adds_per_second": 8192**3 / multiplied}


def plain(new_tokens: int) -> GenerationConfig:
    """Greedy, and on to the last token, whatever it is."""
    return GenerationConfig(do_sample=False, max_new_tokens=new_tokens, min_new_tokens=new_tokens, eos_token_id=-1, pad_token_id=0)


def random_tokens(model, rows: int, length: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(42)
    return torch.randint(1, model.config.get_text_config().vocab_size, (rows, length), generator=generator).to(model.device)


def generate_rate(model, batch: int, arguments: argparse.Namespace) -> float:
    prompts = random_tokens(model, batch, 128)
    mask = torch.ones_like(prompts)
    config = plain(arguments.new_tokens)
    work = lambda: model.generate(prompts, attention_mask=mask, generation_config=config)
    return batch * arguments.new_tokens / seconds(work, arguments.repetitions)


@torch.no_grad()
def prefill_rate(model, length: int) -> float:
    prompt = random_tokens(model, 1, length)
    return length / seconds(lambda: model(prompt, logits_to_keep=1), 3)


def continuous_rate(model, checkpoint: Path, arguments: argparse.Namespace) -> dict:
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    calls = (json.loads(line) for line in arguments.calls.open())
    messages = [call["messages"] for call in calls if call["backbone"] == checkpoint.name]
    render = lambda chat: tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=True, return_dict=False)
    prompts = [render(chat) for chat in messages]
    if not prompts:
        return {}
    started = time.perf_counter()
    outputs = model.generate_batch(prompts, generation_config=plain(arguments.new_tokens))
    elapsed = time.perf_counter() - started
    generated = sum(len(output.generated_tokens) for output in outputs.values())
    return {"calls": len(prompts), "seconds": elapsed, "generated": generated, "tokens_per_second": generated / elapsed}


if __name__ == "__main__":
    main()
