#!/usr/bin/env python3
"""OpenVINO GenAI's part of benches/peers.py: tokens a second of one export, as JSON.

Prompts are of random tokens and never twice the same, for the pipeline keeps the beginnings that it has seen. A prompt's rate is its
length over the time to the first token; tokens are generated behind one-token prompts, or behind `--depth` others, and timed from the first one on.

    python3 -m venv openvino && openvino/bin/pip install openvino-genai 'optimum-intel[openvino]'
    openvino/bin/optimum-cli export openvino --model CHECKPOINT --task text-generation-with-past --weight-format int8 EXPORT
    openvino/bin/python benches/peers_openvino.py EXPORT --threads 2
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import openvino
import openvino_genai


def main() -> None:
    arguments = parse_arguments()
    pipeline = openvino_genai.LLMPipeline(str(arguments.export), "CPU", INFERENCE_NUM_THREADS=arguments.threads)
    vocabulary = json.loads((arguments.export / "config.json").read_text())["vocab_size"]
    random = np.random.default_rng(42)

    def generate(batch: int, length: int, count: int) -> tuple[float, float]:
        """Seconds to the first token, and from there to the last."""
        tokens = random.integers(0, vocabulary, (batch, length)).astype(np.int64)
        inputs = openvino_genai.TokenizedInputs(openvino.Tensor(tokens), openvino.Tensor(np.ones_like(tokens)))
        config = openvino_genai.GenerationConfig(max_new_tokens=count, ignore_eos=True, do_sample=False)
        started = time.perf_counter()
        result = pipeline.generate(inputs, config)
        whole = time.perf_counter() - started
        assert all(len(tokens) == count for tokens in result.tokens), "a sequence ended early"
        first = result.perf_metrics.get_ttft().mean / 1000
        return first, whole - first

    def measure(batch: int, length: int, count: int, rate) -> list[float]:
        generate(batch, length, count)
        return [rate(*generate(batch, length, count)) for _ in range(arguments.repetitions)]

    count, prompt = arguments.generate_tokens, arguments.prompt_tokens
    results = [[f"pp{prompt}", 1, measure(1, prompt, 1, lambda first, _: prompt / first)]]
    for batch in arguments.batch:
        rates = measure(batch, 1, count + 1, lambda _, rest: batch * count / rest)
        results.append([f"tg{count}", batch, rates])
    for depth in arguments.depth:
        # There is no empty prompt.
        rates = measure(1, max(depth, 1), count + 1, lambda _, rest: count / rest)
        results.append([f"tg{count} behind {depth}", 1, rates])
    json.dump({"version": f"OpenVINO GenAI {openvino_genai.__version__}", "results": results}, sys.stdout)


def parse_arguments() -> argparse.Namespace:
    numbers = lambda text: [int(number) for number in text.split(",") if number]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export", type=Path, help="what optimum-cli wrote")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt-tokens", type=int, default=512)
    parser.add_argument("--generate-tokens", type=int, default=24)
    parser.add_argument("--batch", type=numbers, default=[1, 3, 12])
    parser.add_argument("--depth", type=numbers, default=[])
    parser.add_argument("--repetitions", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
