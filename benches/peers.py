#!/usr/bin/env python3
"""wardround beside llama.cpp and OpenVINO GenAI: the same random weights, the same tests, one run, a ratio.

The model has Qwen3-0.6B's shape. `wardround models synth` makes it, this script writes the same numbers as GGUF files in q8_0
and bf16, and both engines then do what llama-bench does: one prompt of 512 tokens (the last row's logits), and tokens generated
for 1, 3 and 12 sequences side by side (every row's logits), without tokenising or sampling. llama.cpp is driven through its own
batch interface with its own defaults: a step of twelve sequences is one batch of twelve rows, each of another sequence. The engines
take turns, each alone on the machine, for several rounds, and each figure is a median: a virtual machine's speed changes by the minute.

    python3 -m venv peers && peers/bin/pip install llama-cpp-python gguf
    cargo build --release
    peers/bin/python benches/peers.py target/release/wardround --models /tmp/peers

With `--depth 0,4096,16384` one sequence's tokens are also generated behind so many others, where keys and values are read as much as
weights; both engines keep these in two bytes a number.

`--openvino PYTHON EXPORT` measures OpenVINO GenAI too, in the interpreter that has it, by benches/peers_openvino.py, which says how an
export of the same checkpoint is made: its 8-bit weights stand beside `--quant int8`. `--types ''` leaves llama.cpp out.

It prints a table for benches/LOG.md. `--types bf16` measures one kind of weights alone; `q4_k` is there too, which llama.cpp itself
quantises. GCC 12 builds llama.cpp's AMX code so that it ends in an illegal instruction: `--plain-buffers` does without it.
"""

import argparse
import concurrent.futures
import ctypes
import json
import multiprocessing
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np

FLAGS = {"q8_0": ["--quant", "q8_0"], "bf16": ["--dtype", "bf16"], "q4_k": ["--quant", "q4_k"]}
OPENVINO_FLAGS = ["--quant", "int8"]
TYPES = {"q8_0": gguf.GGMLQuantizationType.Q8_0, "bf16": gguf.GGMLQuantizationType.BF16}
FILE_TYPES = {"q8_0": gguf.LlamaFileType.MOSTLY_Q8_0, "bf16": gguf.LlamaFileType.MOSTLY_BF16}
NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def main() -> None:
    arguments = parse_arguments()
    arguments.models.mkdir(parents=True, exist_ok=True)
    checkpoint = arguments.models / "qwen3-0.6b"
    if not checkpoint.exists():
        run([arguments.wardround, "models", "synth", "qwen3", checkpoint, "--shape", "qwen3-0.6b"])
    peers = []
    for name in arguments.types:
        file = gguf_file(checkpoint, name, arguments)
        measure = lambda file=file: in_own_process(measure_llama, file, arguments)
        peers.append(("llama.cpp", name, FLAGS[name], measure))
    if arguments.openvino:
        peers.append(("OpenVINO", "int8", OPENVINO_FLAGS, lambda: measure_openvino(arguments)))
    rows, versions = [], {}
    for peer, name, flags, measure in peers:
        theirs, ours, shares = defaultdict(list), defaultdict(list), {}
        for number in range(1, arguments.rounds + 1):
            note(f"{name}, round {number}: {peer}")
            rates, versions[peer] = measure()
            extend(theirs, rates)
            note(f"{name}, round {number}: wardround")
            measured, report = measure_wardround(checkpoint, flags, arguments)
            extend(ours, {test: rates for test, (rates, _) in measured.items()})
            shares = {test: share for test, (_, share) in measured.items()}
        for test, batch in theirs:
            rows.append((peer, name, test, batch, shares[test, batch], theirs[test, batch], ours[test, batch]))
    print_table(rows, " and ".join(versions.values()), report["environment"])


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wardround", type=Path, help="the binary, built with --release")
    parser.add_argument("--models", type=Path, default=Path("peers-models"), metavar="DIR")
    parser.add_argument("--types", type=lambda text: text.split(",") if text else [], default=["q8_0", "bf16"])
    parser.add_argument("--openvino", nargs=2, type=Path, metavar=("PYTHON", "EXPORT"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt-tokens", type=int, default=512)
    parser.add_argument("--generate-tokens", type=int, default=24)
    parser.add_argument("--batch", type=numbers, default=[1, 3, 12])
    parser.add_argument("--depth", type=numbers, default=[], help="generate for one sequence behind so many tokens, too")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=2, help="of each test in a round")
    parser.add_argument("--plain-buffers", action="store_true", help="llama.cpp without weights repacked for the CPU")
    arguments = parser.parse_args()
    unknown = set(arguments.types) - set(FLAGS)
    if unknown:
        parser.error(f"no such type: {', '.join(sorted(unknown))}; known: {', '.join(FLAGS)}")
    if not arguments.types and not arguments.openvino:
        parser.error("nothing to measure beside: give --types or --openvino")
    return arguments


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def run(command: list) -> bytes:
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE).stdout


def note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def extend(all_rates: dict, rates: dict) -> None:
    for test, values in rates.items():
        all_rates[test] += values


def in_own_process(function, *arguments):
    """So that no thread of one engine is left beside the other. A crash there is an error here."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def read_safetensors(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Names and bf16 tensors, as u16."""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    length = int(data[:8].view("<u8")[0])
    header = json.loads(bytes(data[8 : 8 + length]))
    header.pop("__metadata__", None)
    for name, tensor in header.items():
        assert tensor["dtype"] == "BF16", f"{name} is {tensor['dtype']}"
        start, end = (8 + length + offset for offset in tensor["data_offsets"])
        yield name, np.array(data[start:end]).view("<u2").reshape(tensor["shape"])


def gguf_name(name: str) -> str:
    """`model.layers.3.mlp.up_proj.weight` is `blk.3.ffn_up.weight` there."""
    name = name.removeprefix("model.").removesuffix(".weight")
    if name.startswith("layers."):
        _, layer, part = name.split(".", 2)
        return f"blk.{layer}.{NAMES[part]}.weight"
    return {"embed_tokens": "token_embd.weight", "norm": "output_norm.weight"}[name]


def gguf_file(checkpoint: Path, name: str, arguments: argparse.Namespace) -> Path:
    file = arguments.models / f"qwen3-0.6b-{name}.gguf"
    if not file.exists():
        note(f"writing {file}")
        if name in TYPES:
            write_gguf(checkpoint, file, name)
        else:
            in_own_process(quantise_by_llama, gguf_file(checkpoint, "bf16", arguments), file)
    return file


def quantise_by_llama(source: Path, file: Path) -> None:
    """Every matrix as q4_k, as llama.cpp itself makes it."""
    import llama_cpp

    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_S
    parameters.pure = True
    code = llama_cpp.llama_model_quantize(str(source).encode(), str(file).encode(), ctypes.byref(parameters))
    assert code == 0, f"llama_model_quantize gives {code}"


def no_vocabulary(writer: gguf.GGUFWriter) -> None:
    """Token ids are all that either engine is given."""
    writer.add_tokenizer_model("no_vocab")


def write_gguf(checkpoint: Path, file: Path, name: str, add_tokenizer=no_vocabulary) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    writer = gguf.GGUFWriter(file, "qwen3")
    writer.add_file_type(FILE_TYPES[name])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    add_tokenizer(writer)
    writer.add_vocab_size(config["vocab_size"])
    for tensor_name, halves in read_safetensors(checkpoint / "model.safetensors"):
        if tensor_name.startswith("model.layers.") and int(tensor_name.split(".")[2]) >= config["num_hidden_layers"]:
            continue
        values = (halves.astype(np.uint32) << 16).view(np.float32)
        if values.ndim == 1:
            writer.add_tensor(gguf_name(tensor_name), values)
        else:
            quantised = gguf.quants.quantize(values, TYPES[name])
            writer.add_tensor(gguf_name(tensor_name), quantised, raw_dtype=TYPES[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def measure_llama(file: Path, arguments: argparse.Namespace) -> tuple[dict, str]:
    """Tokens a second of each repetition, by test and batch; and what llama.cpp says of itself."""
    import llama_cpp

    silent = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(silent, None)
    llama_cpp.llama_backend_init()
    model_parameters = llama_cpp.llama_model_default_params()
    model_parameters.use_extra_bufts = not arguments.plain_buffers
    model = llama_cpp.llama_model_load_from_file(str(file).encode(), model_parameters)
    sequences = max(arguments.batch)
    parameters = llama_cpp.llama_context_default_params()
    longest = max(arguments.prompt_tokens, arguments.generate_tokens + max(arguments.depth, default=0))
    parameters.n_ctx = max(longest, sequences * max(arguments.prompt_tokens, arguments.generate_tokens))
    parameters.n_batch = max(arguments.prompt_tokens, sequences)
    parameters.n_seq_max = sequences
    # Else each sequence has its own share of the context.
    parameters.kv_unified = True
    parameters.n_threads = parameters.n_threads_batch = arguments.threads
    context = llama_cpp.llama_init_from_model(model, parameters)
    assert model and context, f"llama.cpp cannot load {file}"
    vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    tokens = np.random.default_rng(42).integers(0, vocabulary, (sequences, longest))
    batch = llama_cpp.llama_batch_init(parameters.n_batch, 0, 1)

    def step(rows):
        """Each row is a sequence, a position, and whether it gives logits."""
        batch.n_tokens = len(rows)
        for index, (sequence, position, gives_logits) in enumerate(rows):
            batch.token[index] = int(tokens[sequence, position])
            batch.pos[index] = position
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = sequence
            batch.logits[index] = gives_logits
        code = llama_cpp.llama_decode(context, batch)
        assert code == 0, f"llama_decode gives {code}"
        llama_cpp.llama_synchronize(context)

    def measure(steps, depth=0):
        memory = llama_cpp.llama_get_memory(context)
        forget = lambda: llama_cpp.llama_memory_seq_rm(memory, -1, depth, -1)
        llama_cpp.llama_memory_clear(memory, False)
        for start in range(0, depth, parameters.n_batch):
            step([(0, position, False) for position in range(start, min(depth, start + parameters.n_batch))])
        step(steps[0])
        rates = []
        for _ in range(arguments.repetitions):
            forget()
            started = time.perf_counter()
            for rows in steps:
                step(rows)
            rates.append(sum(map(len, steps)) / (time.perf_counter() - started))
        return rates

    length, count = arguments.prompt_tokens, arguments.generate_tokens
    prompt = [(0, position, position == length - 1) for position in range(length)]
    results = {(f"pp{length}", 1): measure([prompt])}
    for size in arguments.batch:
        steps = [[(sequence, position, True) for sequence in range(size)] for position in range(count)]
        results[f"tg{count}", size] = measure(steps)
    for depth in arguments.depth:
        steps = [[(0, position, True)] for position in range(depth, depth + count)]
        results[f"tg{count} behind {depth}", 1] = measure(steps, depth)
    information = llama_cpp.llama_print_system_info().decode().strip(" |")
    return results, f"llama-cpp-python {llama_cpp.__version__} ({information})"


def measure_openvino(arguments: argparse.Namespace) -> tuple[dict, str]:
    """As `measure_llama`, by the interpreter that has OpenVINO."""
    python, export = arguments.openvino
    command = [python, Path(__file__).with_name("peers_openvino.py"), export, "--threads", arguments.threads]
    command += ["--prompt-tokens", arguments.prompt_tokens, "--generate-tokens", arguments.generate_tokens]
    for option in ["batch", "depth"]:
        command += [f"--{option}", ",".join(map(str, getattr(arguments, option)))]
    report = json.loads(run([*command, "--repetitions", arguments.repetitions]))
    return {(test, batch): rates for test, batch, rates in report["results"]}, report["version"]


def measure_wardround(checkpoint: Path, flags: list[str], arguments: argparse.Namespace) -> tuple[dict, dict]:
    """As `measure_llama`, each test's rates with their share of the bandwidth; and the report that holds the machine."""
    lists = ["--batch", ",".join(map(str, sorted({1, *arguments.batch})))]
    command = [arguments.wardround, "bench", "--model", checkpoint, "--threads", arguments.threads]
    command += ["--repetitions", arguments.repetitions, "--format", "json", *flags]
    prefill = json.loads(run([*command, "-p", arguments.prompt_tokens, "-n", 0, "--batch", 1]))
    decode = json.loads(run([*command, "-p", 0, "-n", arguments.generate_tokens, *lists]))
    results = {(result["test"], result["batch"]): rates_and_share(result) for result in prefill["results"] + decode["results"]}
    if arguments.depth:
        depths = ["--batch", 1, "--depth", ",".join(map(str, arguments.depth))]
        behind = json.loads(run([*command, "-p", 0, "-n", arguments.generate_tokens, *depths]))["results"]
        results |= {(f"{result['test']} behind {result['depth']}", 1): rates_and_share(result) for result in behind}
    return results, decode


def rates_and_share(result: dict) -> tuple[list[float], str]:
    return [result["tokens"] / seconds for seconds in result["seconds"]], f"{100 * result['share_of_bandwidth']:.0f} %"


def print_table(rows: list[tuple], version: str, environment: dict) -> None:
    print(f"{environment['hardware']['cpu']}, {environment['threads']} threads, {environment['device_kind']};")
    print(f"{environment['bytes_per_second'] / 1e9:.1f} GB/s read.")
    print(f"wardround {environment['build']['version']} ({environment['build']['profile']}) beside {version}\n")
    print("Medians, lowest and highest in brackets.\n")
    print("| beside | weights | test | batch | theirs, tokens/s | wardround, tokens/s | ratio | of the bandwidth |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | --- |")
    for peer, name, test, batch, share, *both in rows:
        figures = " | ".join(f"{statistics.median(rates):.1f} ({min(rates):.1f}–{max(rates):.1f})" for rates in both)
        theirs, ours = map(statistics.median, both)
        print(f"| {peer} | {name} | {test} | {batch} | {figures} | {ours / theirs:.2f} | {share} |")


if __name__ == "__main__":
    main()
