#!/usr/bin/env python3
"""A GGUF file as `wardround models import` makes a directory of it, beside llama.cpp: token ids of texts, and logits of the same windows.

llama.cpp first widens the file to f32 by itself, so that no rounded activations stand between the two; transformers reads the directory.

    peers/bin/pip install llama-cpp-py-sync gguf tokenizers torch transformers    # as for peers_quality.py
    peers/bin/python benches/peers_gguf.py target/release/wardround FILE.gguf [TEXT...]
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from llama_cpp_py_sync._cffi_bindings import ffi, get_lib
from peers_quality import Llama, compare
from tokenizers import Tokenizer

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wardround", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("texts", type=Path, nargs="*", help="files whose paragraphs are tokenised")
    parser.add_argument("--window", type=int, default=128)
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    library = get_lib()
    silent = ffi.callback("void(enum ggml_log_level, const char *, void *)", lambda level, text, data: None)
    library.llama_log_set(silent, ffi.NULL)
    library.llama_backend_init()
    with tempfile.TemporaryDirectory() as work:
        directory, widened = Path(work, "imported"), Path(work, "f32.gguf")
        subprocess.run([arguments.wardround, "models", "import", arguments.file, directory, "--quiet"], check=True)
        options = ffi.new("llama_model_quantize_params *", library.llama_model_quantize_default_params())
        options.ftype, options.allow_requantize = library.LLAMA_FTYPE_ALL_F32, True
        assert library.llama_model_quantize(str(arguments.file).encode(), str(widened).encode(), options) == 0
        theirs = Llama(library, widened, arguments)
        tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        compare_tokens(library, theirs, tokenizer, arguments.texts or [HERE / "quality.txt"])
        before = tokenizer.encode("").ids[:1]
        tokens = tokenizer.encode((HERE / "quality.txt").read_text(), add_special_tokens=False).ids
        own = arguments.window - len(before)
        windows = [before + tokens[at : at + own] for at in range(0, len(tokens) - own + 1, own)][: arguments.windows]
        figures, perplexity = compare(Imported(directory), [theirs], windows)
        print(f"{len(windows)} windows; perplexity imported {perplexity:.4f}; llama.cpp {figures[0]}")


class Imported:
    """A directory, read by transformers a window at a time."""

    def __init__(self, directory: Path) -> None:
        self.model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
        self.past = None

    @torch.no_grad()
    def read(self, tokens: list[int], start: int) -> np.ndarray:
        past = self.past if start else None
        output = self.model(input_ids=torch.tensor([tokens]), past_key_values=past, use_cache=True)
        self.past = output.past_key_values
        return output.logits[0].numpy()


def compare_tokens(library, theirs: Llama, tokenizer: Tokenizer, files: list[Path]) -> None:
    vocabulary = library.llama_model_get_vocab(library.llama_get_model(theirs.context))
    texts = [part for file in files for part in file.read_text().split("\n\n") if part]
    different = 0
    for text in texts:
        raw = text.encode()
        room = ffi.new("llama_token[]", len(raw) + 16)
        count = library.llama_tokenize(vocabulary, raw, len(raw), room, len(raw) + 16, True, True)
        if list(room[0:count]) != tokenizer.encode(text).ids:
            different += 1
            print(f"other tokens: {text[:60]!r}")
    print(f"{len(texts)} texts, {different} with other tokens")


if __name__ == "__main__":
    main()
