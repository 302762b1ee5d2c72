#!/usr/bin/env python3
"""wardround's weight formats beside llama.cpp's: the same weights, the same windows of the same text, each against f32 of its own engine.

A GGUF file in f32 is written from the model's directory, and llama.cpp itself makes q8_0 and Q4_K_M of it. Both engines read the text in
windows, with keys and values in f32, but for wardround's `kv-bf16`, which is f32 beside keys and values in bf16. The figures: the
Kullback-Leibler divergence of the next token's distribution from f32's (mean and worst, in nats), how often the likeliest token is the
same, and the perplexity. That both begin from the same model shows in f32's two perplexities.

    python3 -m venv peers && peers/bin/pip install llama-cpp-py-sync gguf tokenizers
    cargo build --release
    peers/bin/python benches/peers_quality.py target/release/wardround MODEL_DIRECTORY

Weights that were published in four bits and widened flatter the format most like their source. `--jitter` judges on weights without such a
grid: before either engine reads them, every matrix gets uniform noise of half a four-bit step of its block of 32, from a fixed seed.

llama-cpp-py-sync has llama.cpp's own interface, compiled; it needs glibc 2.38 or later. Llama and Gemma 3 are the families known here.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
from llama_cpp_py_sync import __llama_cpp_tag__ as tag
from llama_cpp_py_sync._cffi_bindings import ffi, get_lib
from peers import NAMES, note, read_safetensors, run
from tokenizers import Tokenizer

GEMMA_NAMES = NAMES | {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
FORMATS = {"Q8_0": "LLAMA_FTYPE_MOSTLY_Q8_0", "Q4_K_M": "LLAMA_FTYPE_MOSTLY_Q4_K_M"}
OUR_FORMATS = {
    "bf16": ["--dtype", "bf16", "--kv-dtype", "f32"],
    "q8_0": ["--quant", "q8_0", "--kv-dtype", "f32"],
    "int8": ["--quant", "int8", "--kv-dtype", "f32"],
    "q4_k": ["--quant", "q4_k", "--kv-dtype", "f32"],
    "kv-bf16": ["--dtype", "f32", "--kv-dtype", "bf16"],
}
# Of a step.
ROWS = 64


def main() -> None:
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(dir=arguments.work) as work:
        if arguments.jitter:
            arguments.model = jittered(arguments.model, Path(work))
        measure(arguments, Path(work))


def measure(arguments: argparse.Namespace, work: Path) -> None:
    windows = read_windows(arguments)
    ours = measure_wardround(arguments, windows)
    theirs = measure_llama(arguments, windows, work)
    print_table(arguments, windows, ours, theirs)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wardround", type=Path, help="the binary, built with --release")
    parser.add_argument("model", type=Path, help="a directory in Hugging Face's layout")
    parser.add_argument("--text", type=Path, default=Path(__file__).with_name("quality.txt"))
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--windows", type=int, help="so many of them, from the start")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, metavar="DIR", help="where the files made lie meanwhile")
    parser.add_argument("--jitter", action="store_true", help="noise on the weights, so that no format finds its own grid")
    return parser.parse_args()


def jittered(model: Path, work: Path) -> Path:
    """A copy of the model whose matrices have lost the grid that they were published on, in bf16."""
    copy = work / f"{model.resolve().name}-jittered"
    copy.mkdir()
    for file in model.iterdir():
        if file.is_file() and file.suffix != ".safetensors":
            shutil.copy(file, copy)
    random = np.random.default_rng(1)
    for file in sorted(model.glob("model*.safetensors")):
        header, chunks, at = {}, [], 0
        for name, halves in read_safetensors(file):
            if halves.ndim > 1:
                blocks = (halves.astype(np.uint32) << 16).view(np.float32).reshape(-1, 32)
                step = (blocks.max(1, keepdims=True) - blocks.min(1, keepdims=True)) / 15
                blocks = blocks + step * (random.random(blocks.shape, np.float32) - 0.5)
                bits = blocks.reshape(halves.shape).view(np.uint32)
                halves = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
            chunks.append(halves.tobytes())
            header[name] = {"dtype": "BF16", "shape": halves.shape, "data_offsets": [at, at + len(chunks[-1])]}
            at += len(chunks[-1])
        head = json.dumps(header).encode()
        head += b" " * (-len(head) % 8)
        with (copy / file.name).open("wb") as out:
            out.write(len(head).to_bytes(8, "little") + head)
            out.writelines(chunks)
    return copy


def read_windows(arguments: argparse.Namespace) -> list[list[int]]:
    """The text's tokens in whole windows, each of which begins as a text does."""
    tokenizer = Tokenizer.from_file(str(arguments.model / "tokenizer.json"))
    before = tokenizer.encode("").ids[:1]
    tokens = tokenizer.encode(arguments.text.read_text(), add_special_tokens=False).ids
    own = arguments.window - len(before)
    windows = [before + tokens[start : start + own] for start in range(0, len(tokens) - own + 1, own)]
    assert windows and len(windows) >= (arguments.windows or 1), f"{len(tokens)} tokens are too few: lower --window or --windows"
    return windows[: arguments.windows]


def measure_wardround(arguments: argparse.Namespace, windows: list[list[int]]) -> tuple[list[dict], float]:
    exact, rounded, found = Wardround(arguments, ["--dtype", "f32", "--kv-dtype", "f32"]), [], []
    for name, flags in OUR_FORMATS.items():
        rounded.append(Wardround(arguments, flags))
        model = rounded[-1].described()["model"]
        found.append({"format": name, "bytes_per_weight": model["weights_bytes"] / model["parameters"]})
    note("wardround")
    figures, perplexity = compare(exact, rounded, windows)
    return [one | other for one, other in zip(found, figures)], perplexity


class Wardround:
    """A model in a format, which a process of its own reads each window with."""

    def __init__(self, arguments: argparse.Namespace, flags: list[str]) -> None:
        self.program = arguments.wardround
        self.flags = ["--model", arguments.model, "--threads", arguments.threads, *flags]

    def described(self) -> dict:
        """The report of a short benchmark, which says what it measured."""
        command = [self.program, "bench", *self.flags, "-p", 1, "-n", 0, "--repetitions", 1, "--format", "json", "--quiet"]
        return json.loads(run(command))

    def read(self, window: list[int]) -> Iterator[np.ndarray]:
        """The logits after each token but the last."""
        tokens = ",".join(str(token) for token in window[:-1])
        command = [self.program, "generate", "--logits", *self.flags, "--tokens", tokens, "--rows", ROWS]
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE) as process:
            # All lists of numbers in a JSON text that may be larger than the memory; the first has the tokens.
            left, is_first = b"", True
            while piece := process.stdout.read(1 << 20):
                *lists, left = (left + piece).split(b"]")
                for numbers in lists:
                    numbers = numbers.rpartition(b"[")[2]
                    if numbers and not is_first:
                        yield np.fromstring(numbers, np.float32, sep=",")
                    is_first = False
        assert process.returncode == 0, f"wardround ends with {process.returncode}"


def measure_llama(arguments: argparse.Namespace, windows: list[list[int]], work: Path) -> tuple[list[dict], float]:
    library = get_lib()
    silent = ffi.callback("void(enum ggml_log_level, const char *, void *)", lambda level, text, data: None)
    library.llama_log_set(silent, ffi.NULL)
    library.llama_backend_init()
    source = work / "f32.gguf"
    note("writing f32 as GGUF")
    parameters = write_gguf(arguments.model, source)
    exact, rounded, found = Llama(library, source, arguments), [], []
    for name, kind in FORMATS.items():
        note(f"llama.cpp quantises {name}")
        file = work / f"{name}.gguf"
        options = ffi.new("llama_model_quantize_params *", library.llama_model_quantize_default_params())
        options.ftype, options.nthread = getattr(library, kind), arguments.threads
        code = library.llama_model_quantize(str(source).encode(), str(file).encode(), options)
        assert code == 0, f"llama_model_quantize gives {code}"
        rounded.append(Llama(library, file, arguments))
        tensors = gguf.GGUFReader(file).tensors
        matrices = sum(int(tensor.n_bytes) for tensor in tensors if len(tensor.shape) > 1)
        found.append({"format": name, "bytes_per_weight": matrices / parameters})
    note("llama.cpp")
    figures, perplexity = compare(exact, rounded, windows)
    return [one | other for one, other in zip(found, figures)], perplexity


class Llama:
    """A model that reads windows, a chunk of rows at a time."""

    def __init__(self, library, file: Path, arguments: argparse.Namespace) -> None:
        self.library = library
        model = library.llama_model_load_from_file(str(file).encode(), library.llama_model_default_params())
        options = library.llama_context_default_params()
        options.n_ctx, options.n_batch, options.n_ubatch = arguments.window, ROWS, ROWS
        options.n_threads = options.n_threads_batch = arguments.threads
        options.type_k = options.type_v = library.GGML_TYPE_F32
        options.flash_attn_type = library.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self.context = library.llama_init_from_model(model, options)
        assert model and self.context, f"llama.cpp cannot load {file}"
        self.width = library.llama_vocab_n_tokens(library.llama_model_get_vocab(model))

    def read(self, window: list[int]) -> Iterator[np.ndarray]:
        """The logits after each token but the last."""
        self.library.llama_memory_clear(self.library.llama_get_memory(self.context), True)
        for start in range(0, len(window) - 1, ROWS):
            yield from self.read_chunk(window[:-1][start : start + ROWS], start)

    def read_chunk(self, tokens: list[int], start: int) -> np.ndarray:
        library = self.library
        batch = library.llama_batch_init(ROWS, 0, 1)
        batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens):
            batch.token[index], batch.pos[index], batch.logits[index] = token, start + index, 1
            batch.n_seq_id[index], batch.seq_id[index][0] = 1, 0
        code = library.llama_decode(self.context, batch)
        assert code == 0, f"llama_decode gives {code}"
        size = len(tokens) * self.width
        logits = np.frombuffer(ffi.buffer(library.llama_get_logits(self.context), 4 * size), np.float32)
        logits = logits.reshape(len(tokens), self.width).copy()
        library.llama_batch_free(batch)
        return logits


def compare(exact, rounded: list, windows: list[list[int]]) -> tuple[list[dict], float]:
    """Of each model its figures beside the exact one's; and the exact one's perplexity."""
    divergences, same, surprises = ([[] for _ in rounded] for _ in range(3))
    exact_surprises = []
    for window in windows:
        rows = list(exact.read(window))
        assert len(rows) == len(window) - 1, f"{len(rows)} rows of a window of {len(window)}"
        exact_surprises += [-float(logprobs(p)[token]) for p, token in zip(rows, window[1:])]
        for number, model in enumerate(rounded):
            for p, q, token in zip(rows, model.read(window), window[1:], strict=True):
                same[number].append(int(p.argmax() == q.argmax()))
                p, q = logprobs(p), logprobs(q)
                divergences[number].append(float(np.sum(np.exp(p) * (p - q))))
                surprises[number].append(-float(q[token]))
    figures = [
        {
            "mean_divergence": float(np.mean(divergences[number])),
            "worst_divergence": max(divergences[number]),
            "same_first": float(np.mean(same[number])),
            "perplexity": float(np.exp(np.mean(surprises[number]))),
        }
        for number in range(len(rounded))
    ]
    return figures, float(np.exp(np.mean(exact_surprises)))


def logprobs(logits: np.ndarray) -> np.ndarray:
    logits = logits.astype(np.float64) - logits.max()
    return logits - np.log(np.sum(np.exp(logits)))


def write_gguf(model: Path, file: Path) -> int:
    """In f32, without a vocabulary: token ids are all that it is given. Gives the numbers in its matrices."""
    config = json.loads((model / "config.json").read_text())
    is_gemma = config["model_type"] == "gemma3_text"
    assert is_gemma or config["model_type"] == "llama", config["model_type"]
    assert not config.get("rope_scaling"), "a scaled rope is not known here"
    writer = gguf.GGUFWriter(file, "gemma3" if is_gemma else "llama")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    if is_gemma:
        writer.add_sliding_window(config["sliding_window"])
    else:
        writer.add_rope_dimension_count(head_dim)
    writer.add_tokenizer_model("no_vocab")
    writer.add_vocab_size(config["vocab_size"])
    parameters = 0
    for name, values in tensors(model, GEMMA_NAMES if is_gemma else NAMES):
        if is_gemma and name.endswith("norm.weight"):
            values = values + 1
        elif not is_gemma and ".attn_q." in name:
            values = permute(values, heads)
        elif not is_gemma and ".attn_k." in name:
            values = permute(values, kv_heads)
        parameters += values.size if values.ndim > 1 else 0
        writer.add_tensor(name, np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return parameters


def tensors(model: Path, names: dict[str, str]) -> Iterator[tuple[str, np.ndarray]]:
    """By llama.cpp's names, in f32."""
    for file in sorted(model.glob("model*.safetensors")):
        for name, halves in read_safetensors(file):
            values = (halves.astype(np.uint32) << 16).view(np.float32)
            name = name.removeprefix("model.").removesuffix(".weight")
            if name.startswith("layers."):
                _, layer, part = name.split(".", 2)
                yield f"blk.{layer}.{names[part]}.weight", values
            else:
                tables = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}
                yield f"{tables[name]}.weight", values


def permute(values: np.ndarray, heads: int) -> np.ndarray:
    """The rows of q and k as llama.cpp's rotary embedding pairs them."""
    rows, columns = values.shape
    return values.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def print_table(arguments: argparse.Namespace, windows: list[list[int]], ours: tuple, theirs: tuple) -> None:
    report = Wardround(arguments, []).described()
    model, environment = report["model"], report["environment"]
    positions = sum(len(window) - 1 for window in windows)
    print(f"{model['name']} ({model['family']}), {positions} positions in {len(windows)} windows of {arguments.window} tokens;")
    print(f"wardround {environment['build']['version']} on {environment['device_kind']}, llama.cpp {tag}")
    print(f"perplexity in f32: {ours[1]:.4f} and {theirs[1]:.4f}\n")
    print("| engine | format | bytes per weight | mean KL | worst KL | same first token | perplexity |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for engine, (rows, _) in [("wardround", ours), ("llama.cpp", theirs)]:
        for row in rows:
            print(
                f"| {engine} | {row['format']} | {row['bytes_per_weight']:.3f} | {row['mean_divergence']:.5f} | {row['worst_divergence']:.4f} "
                f"| {100 * row['same_first']:.2f} % | {row['perplexity']:.4f} |"
            )


if __name__ == "__main__":
    main()
