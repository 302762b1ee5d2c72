#!/usr/bin/env python3
"""wardround's `/v1/embeddings` beside sentence-transformers: the same encoder in f32, the same texts, one run, a ratio.

    python3 -m venv peers && peers/bin/pip install sentence-transformers
    cargo build --release
    peers/bin/python benches/peers_encoder.py target/release/wardround MINILM

MINILM is the directory of an encoder with its encoder.toml, such as all-MiniLM-L6-v2. Of each length in words, `--texts` texts of random length up to it, cut at the model's limit, are one request of
the server (base64, HTTP and JSON included), and one call of `encode` with its own batches sorted by length. The engines take turns for `--rounds`, each alone
on the machine with `--threads`, and each figure is a median. The largest difference of a number is printed, too.
"""

import argparse
import base64
import json
import random
import statistics
import subprocess
import time
import urllib.request
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

WORDS = "the patient has a fever and was given aspirin for pain in chest after two days of cough and dyspnoea without oedema".split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wardround", type=Path, help="the binary, built with --release")
    parser.add_argument("encoder", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--words", type=lambda text: [int(part) for part in text.split(",")], default=[16, 64, 160])
    parser.add_argument("--texts", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = SentenceTransformer(str(arguments.encoder), device="cpu")
    random.seed(1)
    command = [arguments.wardround, "serve", f"model={arguments.encoder}", "--port", "0", "--offline", "--threads", str(arguments.threads)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().split(" on ")[-1].strip()
        while not is_well(url):
            time.sleep(0.1)
        print("| words at most | sentence-transformers, texts/s | wardround | ratio | furthest number |")
        print("| ---: | ---: | ---: | ---: | ---: |")
        for words in arguments.words:
            texts = [" ".join(random.choices(WORDS, k=random.randint(words // 4 + 1, words))) for _ in range(arguments.texts)]
            theirs, ours = [], []
            for _ in range(arguments.rounds):
                seconds, expected = timed(lambda: model.encode(texts, show_progress_bar=False))
                theirs.append(len(texts) / seconds)
                seconds, found = timed(lambda: embedded(url, texts))
                ours.append(len(texts) / seconds)
            apart = np.abs(expected - found).max()
            one, other = statistics.median(theirs), statistics.median(ours)
            print(f"| {words} | {one:.1f} | {other:.1f} | {other / one:.2f} | {apart:.1e} |", flush=True)
    finally:
        server.terminate()
        server.wait()


def timed(work):
    began = time.monotonic()
    result = work()
    return time.monotonic() - began, result


def embedded(url: str, texts: list[str]) -> np.ndarray:
    body = json.dumps({"input": texts, "encoding_format": "base64", "truncate": True}).encode()
    request = urllib.request.Request(f"{url}/v1/embeddings", body, {"content-type": "application/json"})
    data = json.load(urllib.request.urlopen(request))["data"]
    return np.array([np.frombuffer(base64.b64decode(entry["embedding"]), "<f4") for entry in data])


def is_well(url: str) -> bool:
    try:
        return urllib.request.urlopen(f"{url}/health", timeout=2).status == 200
    except OSError:
        return False


if __name__ == "__main__":
    main()
