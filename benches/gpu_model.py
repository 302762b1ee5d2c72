#!/usr/bin/env python3
"""What a step should take on a GPU, kernel by kernel, before there is one: to be wrong in a way that can be read off.

    cargo build --release --features cuda-emulated
    benches/gpu_model.py target/release/wardround                       # three families, batch 1, 8, 16, 64, prefill 512, 4096
    benches/gpu_model.py target/release/wardround --family qwen3 --kernels   # a line a kernel
    benches/gpu_model.py target/release/wardround --device a100

The emulated program is run at full size on checkpoints that are holes in a file, and lists its launches instead of running them
(`WARDROUND_CUDA_LAUNCHES`). From a launch's grid and arguments follow its bytes and products; from kernels/machine_code.csv registers,
the cycles a warp waits in one walk through the kernel, what a thread has under way, and what of the instructions is a loop. A kernel's
time is the longest of memory, second cache and tensor cores, each round of CTAs by itself; plus one walk by a warp that finds nothing
there yet, plus the boundary to the next kernel. Of warpgroups' products and of prompts' attention a CTA is followed: tile by tile and chunk
by chunk, then what it does once. What overlaps across boundaries is not modelled. Every constant has its source beside it; none was
measured by this project but the H100's. Shares are of what the data sheet says; `bench` measures the rate that wgmma keeps, some three quarters of it."""

import argparse
import csv
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclass
class Device:
    name: str
    architecture: str
    multiprocessors: int
    ghz: float              # boost
    bytes_per_us: float     # by copy
    flops_per_us: float     # bf16 tensor cores, dense
    l2_bytes_per_clock: float   # to one multiprocessor
    memory_clocks: int      # of a load that memory answers
    l2_clocks: int          # of one that the second cache answers
    shared_bytes: int       # of a multiprocessor
    boundary_us: float      # between two kernels of a graph
    wgmma: bool


# H200: copy of 4.3 TB/s is 0.9 of the data sheet's 4.8; 989 TFLOP/s by the data sheet; latencies and bytes a clock from published
# micro-benchmarks of Hopper (L2 hit 260–300 clocks, memory 600–800). Of the second cache a PCIe H100 was measured to give 5.5–5.7 TB/s
# to 114 SMs while its clock fell below 1.4 GHz (Chips and Cheese), 35 bytes or more; and kernel 6 of pranjalssh/fast.cu, 777 TFLOP/s by
# tiles of 192 × 192 × 64 without multicast, reads 48 KB for each 4.7 MFLOP, 8.1 TB/s: 35 bytes of 1.755 GHz, too. Its multicast brings 3 %.
# A programmatic-launch boundary of 0.8 µs is NVIDIA's figure for kernels whose preambles overlap.
# H100 SXM: copy, wgmma from registers and a programmatic launch in a graph as measured by `bench` and benches/gpu_probe.cu; else as the H200.
# A100, L4, 4090: data sheets, copy at 0.9; L2 5120 and 2048 bytes a clock by the whitepapers over all SMs; 1.3 µs between nodes of a
# graph without programmatic launches (NVIDIA's blog on constant-time graph launches).
DEVICES = {
    "h200": Device("H200", "sm_90a", 132, 1.755, 4.3e6, 989e6, 35, 700, 300, 227 << 10, 0.8, True),
    "h100": Device("H100 SXM", "sm_90a", 132, 1.755, 3.02e6, 961e6, 35, 700, 300, 227 << 10, 0.72, True),
    "a100": Device("A100 80 GB", "sm_80", 108, 1.41, 1.83e6, 312e6, 47, 600, 250, 163 << 10, 1.3, False),
    "l4": Device("L4", "sm_89", 58, 2.04, 0.27e6, 121e6, 35, 700, 300, 99 << 10, 1.3, False),
    "4090": Device("RTX 4090", "sm_89", 128, 2.52, 0.9e6, 165e6, 20, 700, 300, 99 << 10, 1.3, False),
}
# Share of the tensor cores' rate that a kernel's instructions reach when fed: mma.sync on Hopper is at most 0.62 of wgmma's (published);
# wgmma itself keeps 0.75 at the clock that its power allows (published runs of 650–750 TFLOP/s).
WGMMA_SHARE, MMA_SHARE, MMA_SHARE_BEFORE_HOPPER = 0.75, 0.5, 0.8
REGISTERS, THREADS, CTAS = 65536, 2048, 32  # of a multiprocessor
NEIGHBOUR_BYTES = 11                        # a clock, from the shared memory of a cluster's other CTAs, by four (arXiv 2402.13499)
CLUSTERS_OF_FOUR = 30                       # that an H100 runs at once where a CTA fills a multiprocessor (gpu_probe.cu)
SHARED_BYTES = 128                          # a clock, of a multiprocessor's shared memory
COMPARED = 384                              # instructions of a chunk in `mask` (attention_chunk.cuh) for keys that not all queries see
L2_BYTES = 25 << 20                         # of the second cache that a pass over logits finds again: half of H200's 50 MiB
WARP_ISSUE = 4                              # instructions of all warps that a multiprocessor issues in a clock

# Published sizes, as `models synth --shape full` has them.
FAMILIES = {
    "qwen3": dict(hidden_size=2560, intermediate_size=9728, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8,
                  head_dim=128, vocab_size=151936, max_position_embeddings=40960),
    "gemma3": dict(hidden_size=2560, intermediate_size=10240, num_hidden_layers=34, num_attention_heads=8, num_key_value_heads=4,
                   head_dim=256, vocab_size=262208, max_position_embeddings=131072, sliding_window=1024, query_pre_attn_scalar=256),
    "llama": dict(hidden_size=3072, intermediate_size=8192, num_hidden_layers=28, num_attention_heads=24, num_key_value_heads=8,
                  head_dim=128, vocab_size=128256, max_position_embeddings=131072),
}
WEIGHT_BYTES = {"bf16": (1024, 0, 0), "q8_0": (512, 32, 0), "q4_k": (256, 32, 64)}  # of a tile of 16 × 32, as crates/ops/src/cuda/pack.rs


def make_holes(wardround, family, folder):
    """A checkpoint of full size whose weights are a hole: the tiny one's files, with the sizes exchanged."""
    tiny, full = folder / f"{family}-tiny", folder / family
    subprocess.run([wardround, "models", "synth", family, str(tiny)], check=True, capture_output=True)
    shutil.copytree(tiny, full)
    config = json.loads((tiny / "config.json").read_text())
    sizes = FAMILIES[family]
    inner = config.get("text_config", config)
    inner.update(sizes)
    (full / "config.json").write_text(json.dumps(config))
    with (tiny / "model.safetensors").open("rb") as file:
        names = [name for name in json.loads(file.read(struct.unpack("<Q", file.read(8))[0])) if name != "__metadata__"]
    hidden, inside, heads = sizes["hidden_size"], sizes["intermediate_size"], sizes["num_attention_heads"] * sizes["head_dim"]
    shared = sizes["num_key_value_heads"] * sizes["head_dim"]
    shapes = {"embed_tokens": [sizes["vocab_size"], hidden], "q_proj": [heads, hidden], "k_proj": [shared, hidden], "v_proj": [shared, hidden],
              "o_proj": [hidden, heads], "gate_proj": [inside, hidden], "up_proj": [inside, hidden], "down_proj": [hidden, inside],
              "q_norm": [sizes["head_dim"]], "k_norm": [sizes["head_dim"]]}
    header, at = {}, 0
    for name in names:
        layers = [0] if ".layers." not in name else range(sizes["num_hidden_layers"]) if ".layers.0." in name else []
        for layer in layers:
            shape = shapes.get(name.split(".")[-2], [hidden])
            end = at + 2 * math.prod(shape)
            header[name.replace(".layers.0.", f".layers.{layer}.")] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, end]}
            at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with (full / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)
    return full


def list_steps(command, launches, environment):
    """The launches of each step: from an embedding of rows to the next. Those that measure the GPU's limits are none."""
    done = subprocess.run(command, env={**os.environ, **environment, "WARDROUND_CUDA_LAUNCHES": str(launches)}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"gpu_model.py: {' '.join(command)}\n{done.stderr[-2000:]}")
    steps = []
    with launches.open() as file:
        for line in file:
            entry = json.loads(line)
            if "kernel" not in entry or entry["kernel"].startswith("multiply_"):
                continue
            if entry["kernel"].startswith("embed_"):
                steps.append([])
            if steps:
                steps[-1].append(entry)
    return steps


def format_of(matmul):
    return re.search("bf16|q8_0|q4_k", matmul)[0]


class Model:
    def __init__(self, device, family, machine_code):
        self.device, self.sizes, self.code = device, FAMILIES[family], machine_code

    def work(self, launch, first, rows):
        """(bytes of memory, bytes of the second cache, multiply-adds of tensor cores, CTAs with work) of a launch in a step of `rows`
        rows, the first at position `first` of its sequence: of decoding each of its own, of prefill one after another."""
        kernel, grid, words, sizes = launch["kernel"], launch["grid"], launch["arguments"], self.sizes
        ctas = math.prod(grid)
        is_prefill = rows > 128
        mean = first + rows / 2 if is_prefill else first + 1
        if kernel.startswith("matmul"):
            m, n, tiles = words[5], words[6], words[7]
            values, scales, units = WEIGHT_BYTES[format_of(kernel)]
            weights = math.ceil(n / 16) * (tiles * (values + scales) + math.ceil(tiles / 8) * units)
            inputs, out = m * tiles * 64, m * n * 4
            blocks = grid[0] if kernel.startswith("matmul_small") else grid[1]
            readers = 1 if kernel.startswith(("matmul_small", "matmul_wave")) else grid[0] // launch.get("cluster", 1)
            split = 2 * 4 * m * n * 4 if grid[2] > 1 else 0
            # A wave multiplies all rows that it has room for.
            multiplied = int(kernel.split("_")[-1]) if kernel.startswith("matmul_wave") else m
            return weights + inputs + out, weights * readers + inputs * blocks + out + split, ctas and multiplied * n * tiles * 32, ctas
        if kernel.startswith("attend"):
            heads, kv_heads, window = words[7], words[8], words[10]
            dim = sizes["head_dim"]
            seen = min(mean, window) if window else mean
            products = 2 * rows * heads * seen * dim
            position = seen * kv_heads * dim * 4
            if "chunks" in kernel:
                ctas = min(ctas, rows * kv_heads * math.ceil(seen / 256))
                # What a row's chunks leave for the last of them, and what that reads, with more than one.
                chunks = math.ceil(seen / 256)
                part = 2 * rows * chunks * heads * dim * 4 if chunks > 1 else 0
                return rows * position, rows * position + part, products * 16 // max(heads // kv_heads, 1), ctas
            return (first + rows) * kv_heads * dim * 4, grid[0] * position, products, ctas
        if kernel == "draw":
            return 0, rows * sizes["vocab_size"] * 4.25, 0, ctas
        if kernel == "score":
            # Two passes over rows of logits, which the second cache holds where they are few.
            logits = ctas // launch["cluster"] * sizes["vocab_size"] * 4
            return (2 * logits if logits > L2_BYTES else 0), 2 * logits * 33 / 32, 0, ctas
        width = {"rotate_and_store": sizes["head_dim"] * (sizes["num_attention_heads"] + 2 * sizes["num_key_value_heads"])}
        moved = grid[0] * width.get(kernel, sizes["hidden_size"]) * (12 if kernel == "add_norm" else 8)
        return (moved if rows > 1024 else 0), moved, 0, ctas

    def follow(self, launch, first, rows):
        """Rounds of CTAs, and the clocks of one, by what may bind them; `besides` is what comes to whichever does."""
        device, kernel, words, threads = self.device, launch["kernel"], launch["arguments"], launch["threads"]
        code, cluster = self.code[device.architecture, kernel], launch.get("cluster", 1)
        ctas, warps = math.prod(launch["grid"]), threads / 32 / WARP_ISSUE
        once = (code["instructions"] - code["loop"]) * warps
        if kernel.startswith("matmul"):
            block, tiles, chunk = int(kernel.split("_")[-1]), words[7], words[8]
            values, scales, units = WEIGHT_BYTES[format_of(kernel)]
            mine, sums = (chunk if cluster > 1 else tiles), 128 * block * 4
            flops = device.flops_per_us * WGMMA_SHARE / device.multiprocessors / (device.ghz * 1e3)
            # Sums of a chunk are put aside and added to; those of a cluster's chunks come from its other CTAs.
            kept = sums / SHARED_BYTES + 0.75 * sums / NEIGHBOUR_BYTES if cluster > 1 else 2 * (math.ceil(tiles / chunk) - 1) * sums / SHARED_BYTES
            at_once = CLUSTERS_OF_FOUR * 4 if cluster > 1 else device.multiprocessors
            return math.ceil(ctas / at_once), {
                "tensor cores": mine * 2 * 128 * block * 32 / flops,
                "second cache": mine * (8 * (values + scales + units / 8) + block * 64) / device.l2_bytes_per_clock,
                "besides": kept + once + device.memory_clocks,
            }
        # Blocks of queries see half of what the last one does. Of the loops within a chunk's, each goes over the dims of a head or as
        # many keys.
        dim, window = self.sizes["head_dim"], words[10]
        seen = min(first + rows / 2, window + 32) if window else first + rows / 2
        chunks = max(1, seen / 256)
        instructions = code["loop"] + code["inner_loops"] * (dim / 32 - 1) - COMPARED
        shared = launch["shared_bytes"] + code["shared_bytes"] + 1024
        resident = max(1, min(REGISTERS // (math.ceil(code["registers"] / 8) * 8 * threads), device.shared_bytes // shared))
        each = min(resident, math.ceil(ctas / device.multiprocessors))
        return math.ceil(ctas / (device.multiprocessors * resident)), {
            "instructions": chunks * (instructions * warps * each + code["loop_waits"] / each),
            "second cache": chunks * each * 256 * dim * 4 / device.l2_bytes_per_clock,
            "besides": once * each + code["wait_cycles"] - code["loop_waits"],
        }

    def time(self, launch, first, rows):
        """Microseconds, and what binds."""
        device, kernel = self.device, launch["kernel"]
        memory, l2, products, ctas = self.work(launch, first, rows)
        if kernel.startswith(("matmul_warpgroup", "attend_rows")):
            rounds, parts = self.follow(launch, first, rows)
            parts = {part: rounds * clocks / (device.ghz * 1e3) for part, clocks in parts.items()}
            besides = parts.pop("besides")
            parts["memory"] = memory / device.bytes_per_us - besides
            return max(parts.values()) + besides + device.boundary_us, max(parts, key=parts.get)
        code = self.code.get((device.architecture, kernel)) or dict(registers=64, shared_bytes=0, wait_cycles=900, bytes_ahead=64, instructions=1000)
        shared = launch["shared_bytes"] + code["shared_bytes"] + 1024
        registers = math.ceil(code["registers"] / 8) * 8 * launch["threads"]
        resident = max(1, min(REGISTERS // registers, device.shared_bytes // shared, THREADS // launch["threads"], CTAS))
        rounds = math.ceil(ctas / (device.multiprocessors * resident))
        each = min(resident, math.ceil(ctas / device.multiprocessors))  # CTAs that share a multiprocessor
        ahead = launch["shared_bytes"] if kernel.startswith(("matmul_small", "matmul_medium", "matmul_wave")) else launch["threads"] * code["bytes_ahead"]
        share = (WGMMA_SHARE if kernel.startswith(("matmul_warpgroup", "matmul_wave")) else MMA_SHARE) if device.wgmma else MMA_SHARE_BEFORE_HOPPER
        clocks = code["wait_cycles"] + code["instructions"] * max(1, each * launch["threads"] / 32 / WARP_ISSUE)
        parts = dict.fromkeys(["memory", "second cache", "tensor cores"], 0.0)
        left = ctas
        while left > 0:
            # What a round takes of memory is bound by what its CTAs have under way; of the rest, by the fullest multiprocessor.
            now = min(left, device.multiprocessors * resident)
            left -= now
            fullest = math.ceil(now / device.multiprocessors)
            parts["memory"] += now * memory / ctas / min(device.bytes_per_us, now * max(ahead, 1) * device.ghz * 1e3 / device.memory_clocks)
            parts["second cache"] += fullest * l2 / ctas / (device.l2_bytes_per_clock * device.ghz * 1e3)
            parts["tensor cores"] += fullest * 2 * products / ctas / (device.flops_per_us * share / device.multiprocessors)
        walk = (clocks if not kernel.startswith("matmul") else device.memory_clocks) / (device.ghz * 1e3)
        if not kernel.startswith("matmul"):
            # One round's waits are filled by the next one's instructions.
            parts["instructions"] = (rounds - 1) * (clocks - code["wait_cycles"]) / (device.ghz * 1e3)
        binds = max(parts, key=parts.get)
        # A walk has each loop once; three of four kinds of draws pass over the row again, and of a score's instructions half are its passes.
        loops = self.sizes["vocab_size"] / (8 * launch["threads"] * launch["cluster"]) * {"draw": 0.25, "score": 0.5}.get(kernel, 0)
        walk *= max(1, loops)
        binds = binds if parts[binds] > walk else "waiting"
        return max(parts.values()) + walk + device.boundary_us, binds


def scenario_steps(steps, rows, prompt):
    """Of a list of steps those of the scenario: the last decoding step of so many rows, or all of a prompt."""
    if prompt == 0:
        return [step for step in steps if step[0]["grid"][0] == rows][-1:]
    found, left = [], prompt
    for step in reversed(steps):
        count = step[0]["grid"][0]
        if count <= left and left > 0:
            found.insert(0, step)
            left -= count
    return found if left == 0 else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wardround", help="built with --features cuda-emulated")
    parser.add_argument("--device", choices=DEVICES, default="h100")
    parser.add_argument("--family", action="append", choices=FAMILIES)
    parser.add_argument("--depth", type=int, default=512, help="keys before a decoding step [512]")
    parser.add_argument("--machine-code", type=pathlib.Path, default=ROOT / "kernels" / "machine_code.csv")
    parser.add_argument("--kernels", action="store_true", help="a line a kernel")
    parser.add_argument("--launches", type=pathlib.Path, help="keep the lists of launches in this folder, or take them from there")
    arguments = parser.parse_args()
    device = DEVICES[arguments.device]
    with arguments.machine_code.open() as file:
        code = {(row["architecture"], row["kernel"]): {key: int(value) for key, value in row.items() if value.isdigit()} for row in csv.DictReader(file)}
    environment = {} if device.wgmma else {"WARDROUND_CUDA_WITHOUT": "wgmma,clusters,launch"}
    prompt = ",".join(["5"] * max(arguments.depth, 1))
    bench, one = ["bench", "--offline", "-r", "1"], ["generate", "--tokens", prompt, "--max-tokens", "5"]
    decode = [*bench, "-p", "0", "-n", "4", "--depth", str(arguments.depth)]
    scenarios = [
        ("batch 1", 1, 0, [*decode, "--batch", "1"]),
        ("batch 1, drawn", 1, 0, [*one, "--temperature", "1", "--top-p", "0.9"]),
        ("batch 8", 8, 0, [*decode, "--batch", "8"]),
        ("batch 16", 16, 0, [*decode, "--batch", "16"]),
        ("batch 64", 64, 0, [*decode, "--batch", "64"]),
        ("prefill 512", 0, 512, [*bench, "-n", "0", "-p", "512"]),
        ("prefill 4096", 0, 4096, [*bench, "-n", "0", "-p", "4096"]),
        ("512 scored", 0, 512, ["logprobs", "--tokens", ",".join(["5"] * 512), "--rows", "256"]),
    ]
    print(f"{device.name}, by kernels/machine_code.csv and the launches of the program; decoding after {arguments.depth} keys\n")
    print("| model | step | launches | µs | tokens/s | of the limit |\n| --- | --- | ---: | ---: | ---: | ---: |")
    lines = []
    for family in arguments.family or FAMILIES:
        cached = arguments.launches and arguments.launches / f"{family}.{arguments.device}.json"
        if cached and cached.exists():
            listed = json.loads(cached.read_text())
        else:
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                model = make_holes(arguments.wardround, family, folder)
                listed = {}
                for name, rows, prompt, options in scenarios:
                    command = [arguments.wardround, *options, "--model", str(model), "--device", "cuda"]
                    steps = list_steps(command, folder / "launches.jsonl", environment)
                    listed[name] = scenario_steps(steps, rows, prompt)
            if cached and all(listed.values()):
                arguments.launches.mkdir(parents=True, exist_ok=True)
                cached.write_text(json.dumps(listed))
        judge = Model(device, family, code)
        for name, rows, prompt, _ in scenarios:
            if not listed[name]:
                sys.exit(f"gpu_model.py: {family} has no step of {name} in its list of launches")
            totals, count, first = defaultdict(lambda: [0, 0.0, defaultdict(float)]), 0, 0
            for step in listed[name]:
                in_step = step[0]["grid"][0]
                for launch in step:
                    took, binds = judge.time(launch, first if prompt else arguments.depth, in_step)
                    entry = totals[launch["kernel"]]
                    entry[0], entry[1] = entry[0] + 1, entry[1] + took
                    entry[2][binds] += took
                    count += 1
                first += in_step
            took = sum(entry[1] for entry in totals.values())
            matmuls = [launch for step in listed[name] for launch in step if launch["kernel"].startswith("matmul")]
            if prompt:
                limit = sum(2 * launch["arguments"][5] * launch["arguments"][6] * launch["arguments"][7] * 32 for launch in matmuls) / device.flops_per_us
            else:
                limit = sum(judge.work(launch, arguments.depth, rows)[0] for step in listed[name] for launch in step) / device.bytes_per_us
            tokens = (prompt or rows) / took * 1e6
            print(f"| {family} | {name} | {count} | {took:,.0f} | {tokens:,.0f} | {100 * limit / took:.0f} % |")
            for kernel, (launches, time, binding) in sorted(totals.items(), key=lambda item: -item[1][1]):
                lines.append(f"| {family} | {name} | {kernel} | {launches} | {time:,.0f} | {max(binding, key=binding.get)} |")
    if arguments.kernels:
        print("\n| model | step | kernel | launches | µs | bound by |\n| --- | --- | --- | ---: | ---: | --- |")
        print("\n".join(lines))


if __name__ == "__main__":
    main()
