#!/usr/bin/env python3
"""wardround's server beside llama.cpp's: the same random weights in bf16, the same requests over HTTP, one run, a ratio.

llama.cpp's server comes from the package xllamacpp, which brings it built for AVX2.

    python3 -m venv peers && peers/bin/pip install xllamacpp gguf
    cargo build --release
    peers/bin/python benches/peers_server.py target/release/wardround --models /tmp/peers --depth 16,4096,16384

Of each depth: one client asks `--requests` times for `--tokens` greedy tokens behind one and the same prompt of about so many tokens, which
both servers find in their caches from the second request on. The rate is that of the tokens after the first. Then `--concurrency` clients at once
with prompts of their own, whose rate is tokens per second over the whole load. wardround runs once with each `--kv-dtype`. The engines take turns for
`--rounds`, each alone on the machine, and each figure is a median.
"""

import argparse
import concurrent.futures
import json
import multiprocessing
import random
import statistics
import subprocess
import time
import urllib.request
from pathlib import Path

import peers

# Of prompts: a token each in Qwen's vocabulary, with few exceptions.
WORDS = (
    "the patient was given after pain history blood pressure normal left right with without fever daily dose chest heart lung acute days "
    "three two showed test reports year old woman man treated"
).split()
CONTEXT_SLACK = 1024
REQUESTS_PER_CLIENT = 8


def main() -> None:
    arguments = parse_arguments()
    arguments.models.mkdir(parents=True, exist_ok=True)
    checkpoint = arguments.models / f"qwen3-0.6b-{arguments.layers}"
    if not checkpoint.exists():
        command = [arguments.wardround, "models", "synth", "qwen3", checkpoint, "--shape", "qwen3-0.6b"]
        peers.run([*command, "--tokenizer", arguments.tokenizer])
        keep_layers(checkpoint / "config.json", arguments.layers)
    file = arguments.models / f"qwen3-0.6b-{arguments.layers}.gguf"
    if not file.exists():
        peers.note(f"writing {file}")
        write_gguf(checkpoint, file)
    engines = ["llama.cpp", *(f"wardround {kv}" for kv in arguments.kv_dtype)]
    tests = [f"depth {depth}" for depth in arguments.depth] + [f"{n} at once" for n in arguments.concurrency]
    rates = {test: {engine: [] for engine in engines} for test in tests}
    for number in range(1, arguments.rounds + 1):
        for engine in engines:
            peers.note(f"round {number}: {engine}")
            with started(engine, checkpoint, file, arguments) as url:
                for test, rate in measure(url, arguments).items():
                    rates[test][engine].append(rate)
    heads = [engines[0], *(f"{engine} | ratio" for engine in engines[1:])]
    print(f"| tokens/s | {' | '.join(heads)} |")
    print("| --- |" + " ---: |" * (2 * len(engines) - 1))
    for test, of_engines in rates.items():
        theirs, *ours = (statistics.median(of_engines[engine]) for engine in engines)
        print(f"| {test} | {theirs:.1f} |" + "".join(f" {rate:.1f} | {rate / theirs:.2f} |" for rate in ours))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wardround", type=Path, help="the binary, built with --release")
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder of Qwen3's tokenizer")
    parser.add_argument("--models", type=Path, default=Path("peers-models"), metavar="DIR")
    parser.add_argument("--layers", type=int, default=28, help="fewer take less time, with the same work in each")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kv-dtype", type=lambda text: text.split(","), default=["bf16"], help="of wardround; llama.cpp has f16")
    parser.add_argument("--depth", type=peers.numbers, default=[16, 4096, 16384])
    parser.add_argument("--concurrency", type=peers.numbers, default=[])
    parser.add_argument("--words", type=int, default=200, help="of the prompts of --concurrency")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--requests", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def keep_layers(path: Path, layers: int) -> None:
    config = json.loads(path.read_text())
    config["num_hidden_layers"] = config["max_window_layers"] = layers
    path.write_text(json.dumps(config, indent=2) + "\n")


def write_gguf(checkpoint: Path, file: Path) -> None:
    """The numbers as they are, and the tokenizer in GGUF's terms, by the tokenizer.json's own lists."""
    import gguf

    tokenizer = json.loads((checkpoint / "tokenizer.json").read_text())
    config = json.loads((checkpoint / "config.json").read_text())
    pieces = [f"[unused{number}]" for number in range(config["vocab_size"])]
    kinds = [gguf.TokenType.UNUSED] * len(pieces)
    for piece, number in tokenizer["model"]["vocab"].items():
        pieces[number], kinds[number] = piece, gguf.TokenType.NORMAL
    for added in tokenizer["added_tokens"]:
        pieces[added["id"]] = added["content"]
        kinds[added["id"]] = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
    template = json.loads((checkpoint / "tokenizer_config.json").read_text()).get("chat_template")
    template = template or (checkpoint / "chat_template.jinja").read_text()
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]

    def add_tokenizer(writer: gguf.GGUFWriter) -> None:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("qwen2")
        writer.add_token_list(pieces)
        writer.add_token_types(kinds)
        writer.add_token_merges(merges)
        writer.add_eos_token_id(config["eos_token_id"])
        writer.add_add_bos_token(False)
        writer.add_chat_template(template)

    peers.write_gguf(checkpoint, file, "bf16", add_tokenizer)


class started:
    """A server's URL while the block runs."""

    def __init__(self, engine: str, checkpoint: Path, file: Path, arguments: argparse.Namespace) -> None:
        # A word may be two tokens.
        context = 2 * max(arguments.depth, default=0) + CONTEXT_SLACK
        sequences = max(arguments.concurrency, default=1)
        each = max(context, 2 * arguments.words + CONTEXT_SLACK)
        self.arguments, self.file, self.context, self.sequences = arguments, file, each * sequences, sequences
        self.command = [arguments.wardround, "serve", f"model={checkpoint}", "--threads", arguments.threads, "--port", "0"]
        self.engine, _, kv = engine.partition(" ")
        self.command += ["--kv-dtype", kv, "--context", each]

    def __enter__(self) -> str:
        if self.engine == "wardround":
            self.process = subprocess.Popen([str(word) for word in self.command], stdout=subprocess.PIPE, text=True)
            url = self.process.stdout.readline().removeprefix("listening on ").strip()
        else:
            context = multiprocessing.get_context("spawn")
            here, there = context.Pipe()
            target = (self.file, self.context, self.sequences, self.arguments.threads, there)
            self.process = context.Process(target=serve_llama, args=target)
            self.process.start()
            url = here.recv()
        while not is_well(url):
            time.sleep(0.1)
        return f"{url}/v1"

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.wait() if self.engine == "wardround" else self.process.join()


def serve_llama(file: Path, context: int, sequences: int, threads: int, pipe) -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(file)
    parameters.model_alias = ["model"]
    parameters.n_ctx, parameters.n_parallel, parameters.port = context, sequences, 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(parameters)
    pipe.send(server.listening_address)
    while True:
        time.sleep(3600)


def is_well(url: str) -> bool:
    try:
        return urllib.request.urlopen(f"{url}/health", timeout=2).status == 200
    except OSError:
        return False


def measure(url: str, arguments: argparse.Namespace) -> dict[str, float]:
    rates = {}
    for depth in arguments.depth:
        prompt = words(depth, seed=depth)
        complete(url, prompt, arguments.tokens)
        seen = [complete(url, prompt, arguments.tokens) for _ in range(arguments.requests)]
        first, last = (statistics.median(one[at] for one in seen) for at in (0, 1))
        rates[f"depth {depth}"] = (arguments.tokens - 1) / (last - first)
    for clients in arguments.concurrency:
        prompts = [words(arguments.words, seed=number) for number in range(REQUESTS_PER_CLIENT * clients)]
        began = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            counts = [one[2] for one in pool.map(lambda prompt: complete(url, prompt, arguments.tokens), prompts)]
        rates[f"{clients} at once"] = sum(counts) / (time.perf_counter() - began)
    return rates


def words(count: int, seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=count))


def complete(url: str, prompt: str, tokens: int) -> tuple[float, float, int]:
    """Seconds to the first event of a greedy streamed completion and to its end, and its tokens. What fails ends the script."""
    ask = {"model": "model", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True}
    ask |= {"stream": True, "stream_options": {"include_usage": True}}
    request = urllib.request.Request(f"{url}/completions", json.dumps(ask).encode(), {"Content-Type": "application/json"})
    began, first, counted = time.perf_counter(), None, None
    with urllib.request.urlopen(request, timeout=600) as answer:
        for line in answer:
            event = line.removeprefix(b"data: ").strip()
            if not line.startswith(b"data: ") or event == b"[DONE]":
                continue
            event = json.loads(event)
            if first is None and event["choices"]:
                first = time.perf_counter() - began
            counted = (event.get("usage") or {}).get("completion_tokens", counted)
    return first, time.perf_counter() - began, counted


if __name__ == "__main__":
    main()
