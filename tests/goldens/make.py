"""Regenerates every golden in this folder: `python make.py [models] [chats] [sampler] [ops]`, all four by default.

Reference: Hugging Face transformers on PyTorch, CPU, one thread, eager attention. What each file holds: README.md.
"""

import sys
from pathlib import Path

import torch

import chats
import models
import ops
import sampler

HERE = Path(__file__).parent
MAKERS = {"models": models.make, "chats": chats.make, "sampler": sampler.make, "ops": ops.make}


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
