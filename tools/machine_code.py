#!/usr/bin/env python3
"""What the compiler made of the kernels, beside what is written in kernels/machine_code.csv. No GPU is needed.

    eval "$(tools/cuda-toolchain.sh ~/.cache/wardround-cuda)"
    tools/machine_code.py                 # every kernel; fails where one has fallen back
    tools/machine_code.py --only draw     # kernels whose name begins so, printed too
    tools/machine_code.py --write         # what is found becomes what is written

Per kernel and architecture: registers of a thread, bytes it spills, shared memory of fixed size, instructions; and, of
a walk through the instructions from first to last, each loop once: the cycles a warp waits for loads from memory that
come 300 cycles after they are issued, and the most bytes of such loads that a thread has under way. A wait is where an
instruction names the scoreboard that a load was entered in, as its control bits say; nothing is guessed. Then the
instructions of the longest loop, and of those that lie in it, each once, and the cycles waited in it: how often loops are
taken is for gpu_model.py.
"""

import argparse
import collections
import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
WRITTEN = ROOT / "kernels" / "machine_code.csv"
ARCHITECTURES = ["sm_80", "sm_89", "sm_90a"]
FIELDS = ["registers", "spilled_bytes", "shared_bytes", "instructions", "wait_cycles", "bytes_ahead", "loop", "inner_loops",
          "loop_waits"]
# Where more is worse, and how much more is no news: another order of instructions is not a step back.
SLACK = {"registers": 0, "spilled_bytes": 0, "shared_bytes": 0, "instructions": 0.02, "wait_cycles": 0.02}

GLOBAL_CYCLES = 300  # of a load that the second cache answers, H200
OTHER_CYCLES = 30    # of whatever else is entered in a scoreboard: shared memory, shuffles, special functions
BYTES = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}


def tool(name):
    found = shutil.which(name)
    if found is None:
        sys.exit(f"machine_code.py: no {name} in PATH; tools/cuda-toolchain.sh sets one up")
    return found


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        sys.exit(f"machine_code.py: {' '.join(command)}\n{done.stderr}")
    return done


def resources(report):
    """Registers, spills and shared memory by kernel, from `ptxas -v`."""
    kernels = {}
    for line in report.splitlines():
        if entry := re.search(r"Compiling entry function '(\w+)'", line):
            kernel = kernels.setdefault(entry[1], dict.fromkeys(FIELDS, 0))
        elif spills := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            kernel["spilled_bytes"] = max(map(int, spills.groups()))
        elif used := re.search(r"Used (\d+) registers", line):
            kernel["registers"] = int(used[1])
            shared = re.search(r"(\d+) bytes smem", line)
            kernel["shared_bytes"] = int(shared[1]) if shared else 0
    return kernels


# One instruction: its operation, cycles until the next may follow, the scoreboard that its result is entered in (7:
# none) and those it waits for, a bit each; the label it may go to, and those that stand before it.
Instruction = collections.namedtuple("Instruction", "operation stall entered waits is_certain target labels")


def instructions(listing):
    """By kernel, from `nvdisasm -hex`: a line with the low half of an instruction's bits, then one with the high half."""
    kernels, name, operation, labels = {}, None, None, []
    for line in listing.splitlines():
        if section := re.match(r"\s*\.section\s+\.text\.(\w+)", line):
            name = section[1]
            kernels[name] = []
        elif label := re.match(r"\s*(\.L_x_\d+):", line):
            labels.append(label[1])
        elif first := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)", line):
            operation, is_certain, target = first[2], first[1] is None, re.search(r"\.L_x_\d+", line)
        elif operation and (second := re.match(r"\s*/\* 0x([0-9a-f]{16}) \*/", line)):
            control = int(second[1], 16) >> 41
            bits = control & 15, control >> 5 & 7, control >> 11 & 63
            kernels[name].append(Instruction(operation, *bits, is_certain, target and target[0], labels))
            operation, labels = None, []
    return kernels


def loops(steps):
    """Instructions of the longest loop, and of the loops in it, and what a walk through it waits: from where a branch goes
    back to, up to the branch, and no end of the thread between, behind which lie ways that are taken seldom."""
    places = {label: place for place, step in enumerate(steps) for label in step.labels}
    ends = [place for place, step in enumerate(steps) if step.operation == "EXIT" and step.is_certain]
    found = []
    for end, step in enumerate(steps):
        start = places.get(step.target, end) if step.operation.startswith("BRA") else end
        if start < end and not any(start <= place <= end for place in ends):
            found.append((end - start + 1, start, end))
    if not found:
        return {"loop": 0, "inner_loops": 0, "loop_waits": 0}
    longest, first, last = max(found)
    inner = [(start, end) for _, start, end in found if first <= start and end <= last and (start, end) != (first, last)]
    within = lambda a, b: b[0] <= a[0] and a[1] <= b[1] and a != b
    outermost = [each for each in inner if not any(within(each, other) for other in inner)]
    inner_loops = sum(end - start + 1 for start, end in outermost)
    waits = walk(steps[first : last + 1])["wait_cycles"]
    return {"loop": longest, "inner_loops": inner_loops, "loop_waits": waits}


def walk(steps):
    """Instructions, cycles waited for loads from memory, and the most bytes of them under way."""
    clock, waited, most = 0, 0, 0
    pending = []  # (scoreboard, cycle it is there, bytes; 0: not from memory)
    for step in steps:
        due = [entry for entry in pending if step.waits >> entry[0] & 1]
        for is_global in (False, True):
            there = max((at for _, at, size in due if (size > 0) == is_global), default=0)
            if there > clock:
                waited += (there - clock) if is_global else 0
                clock = there
        pending = [entry for entry in pending if entry[1] > clock]
        if step.entered != 7:
            is_load = step.operation.startswith(("LDG", "LD.E")) and not step.operation.startswith("LDGSTS")
            size = next((BYTES[part] for part in step.operation.split(".") if part in BYTES), 4) if is_load else 0
            pending.append((step.entered, clock + (GLOBAL_CYCLES if is_load else OTHER_CYCLES), size))
            most = max(most, sum(size for _, _, size in pending))
        clock += max(step.stall, 1)
    return {"instructions": len(steps), "wait_cycles": waited, "bytes_ahead": most}


def measure(source, architecture, folder):
    cubin = folder / f"{source.stem}.{architecture}.cubin"
    options = ["-cubin", "-O3", "-std=c++20", f"-arch={architecture}", "-Xptxas", "-v"]
    kernels = resources(run([tool("nvcc"), *options, "-o", str(cubin), str(source)]).stderr)
    listing = run([tool("nvdisasm"), "-c", "-hex", str(cubin)]).stdout
    for name, steps in instructions(listing).items():
        kernels[name].update(walk(steps), **loops(steps))
    return {(architecture, name): figures for name, figures in kernels.items()}


def fell_back(found, written):
    """In words, what is worse than it was."""
    for field, slack in SLACK.items():
        if found[field] > written[field] * (1 + slack) + (8 if slack else 0):
            yield f"{field} {found[field]}, not {written[field]}"
    if found["bytes_ahead"] < written["bytes_ahead"]:
        yield f"bytes_ahead {found['bytes_ahead']}, not {written['bytes_ahead']}"


def read_written():
    with WRITTEN.open() as file:
        rows = list(csv.DictReader(file))
    return {(row["architecture"], row["kernel"]): {field: int(row[field]) for field in FIELDS} for row in rows}


def write(found):
    with WRITTEN.open("w") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["architecture", "kernel", *FIELDS])
        rows.writerows([*key, *(found[key][field] for field in FIELDS)] for key in sorted(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="PREFIX", help="kernels whose name begins so")
    parser.add_argument("--architecture", action="append", choices=ARCHITECTURES, help="default: all")
    parser.add_argument("--write", action="store_true", help="write what is found to kernels/machine_code.csv")
    arguments = parser.parse_args()
    architectures = arguments.architecture or ARCHITECTURES
    prefix = arguments.only or ""
    if arguments.write and (arguments.only or arguments.architecture):
        parser.error("--write writes every kernel: leave out --only and --architecture")
    sources = sorted((ROOT / "kernels").glob("*.cu"))
    if prefix:
        names = {path: re.findall(r"\b\w+\b", path.read_text()) for path in sources}
        family = re.match(r"[a-z]+", prefix)[0]
        sources = [path for path in sources if any(name.startswith(family) for name in names[path])]
    found = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [(source, name, pathlib.Path(folder)) for source in sources for name in architectures]
        for kernels in pool.map(lambda job: measure(*job), jobs):
            found.update({key: figures for key, figures in kernels.items() if key[1].startswith(prefix)})
    if not found:
        sys.exit(f"machine_code.py: no kernel begins with `{prefix}`; their names stand in kernels/*.cu")
    if arguments.write:
        write(found)
        return
    if prefix:
        print(f"{'architecture':13}{'kernel':38}" + "".join(f"{field:>14}" for field in FIELDS))
        for (architecture, name), figures in sorted(found.items()):
            print(f"{architecture:13}{name:38}" + "".join(f"{figures[field]:14}" for field in FIELDS))
    written = read_written()
    worse = [f"{key[0]} {key[1]}: it is not written" for key in sorted(found) if key not in written]
    for key in sorted(found.keys() & written.keys()):
        worse += [f"{key[0]} {key[1]}: {what}" for what in fell_back(found[key], written[key])]
    if not prefix and not arguments.architecture:
        worse += [f"{key[0]} {key[1]}: it is written, and no kernel" for key in sorted(written.keys() - found.keys())]
    if worse:
        sys.exit("\n".join([*worse, "machine_code.py: mend the kernel, or say why in benches/LOG.md and --write"]))
    print(f"{len(found)} kernels' machine code is no worse than written")


if __name__ == "__main__":
    main()
