"""Regenerates every golden in this folder: `python make.py [KIND]...`, all kinds by default.

Reference: Hugging Face transformers and sentence-transformers on PyTorch, CPU, one thread, eager attention; numpy, scipy and
scikit-learn for metrics; CPython's difflib, NLTK, jieba and the ROUGE packages for text. Kinds, and what each file holds: README.md.
"""

import sys
from pathlib import Path

import torch

import chats
import encoders
import gguf_files
import metrics
import models
import ops
import retrieval
import sampler
import text

HERE = Path(__file__).parent
MAKERS = {
    "models": models.make,
    "chats": chats.make,
    "sampler": sampler.make,
    "ops": ops.make,
    "encoders": encoders.make,
    "retrieval": retrieval.make,
    "metrics": metrics.make,
    "text": text.make,
    "gguf": gguf_files.make,
}


def main(chosen: list[str]) -> None:
    unknown = set(chosen) - set(MAKERS)
    if unknown:
        raise SystemExit(f"no goldens called {', '.join(sorted(unknown))}\n{__doc__.splitlines()[0]}")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name in chosen or MAKERS:
        MAKERS[name](HERE)


if __name__ == "__main__":
    main(sys.argv[1:])
