#!/usr/bin/env python3
"""Whether the compiler keeps the kernels in registers and shared memory. No GPU is needed.

    eval "$(tools/cuda-toolchain.sh ~/.cache/wardround-cuda)"
    tools/machine_code.py          # fails where a kernel spills, or takes more than is written here
    tools/machine_code.py draw     # kernels whose name begins so, with what they take
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The most registers of a thread and bytes of shared memory of fixed size, by the beginning of a kernel's name; the longest counts.
# More, and fewer CTAs than planned have room on a multiprocessor.
MOST = {
    "": (48, 256), "add_norm": (80, 256), "attend_chunks": (255, 17_408), "attend_chunks_512": (208, 25_600), "attend_f32": (48, 2192),
    "attend_rows": (248, 34_816), "attend_warpgroup": (255, 0), "delta_convolve": (80, 0), "delta_rule": (128, 9280), "draw": (64, 0), "matmul_f32": (48, 8704),
    "matmul_large": (240, 0), "matmul_medium": (168, 1024), "matmul_small": (128, 0),
    "matmul_units": (128, 0), "matmul_wave": (184, 0), "multiply_": (168, 0), "rotate": (48, 8448), "rotate_and_store_512": (80, 4224), "score": (64, 0),
}


def compiled(job):
    """(kernel, registers, bytes of shared memory, bytes spilled) of each kernel, from `ptxas -v`."""
    source, architecture = job
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        command = ["nvcc", "-cubin", "-O3", "-std=c++20", f"-arch={architecture}", "-Xptxas", "-v", "-o", cubin.name, str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"machine_code.py: {' '.join(command)}\n{done.stderr}")
    for report in done.stderr.split("Compiling entry function ")[1:]:
        numbers = [re.search(rf"(\d+) {what}", report) for what in ("registers", "bytes smem", "bytes stack frame", "bytes spill")]
        registers, shared, *spilled = (int(number[1]) if number else 0 for number in numbers)
        yield f"{architecture} {report.split(chr(39))[1]}", registers, shared, max(spilled)


def main(prefix=""):
    jobs = [(source, name) for source in sorted((ROOT / "kernels").glob("*.cu")) for name in ("sm_80", "sm_89", "sm_90a", "sm_100", "sm_120")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [kernel for kernels in pool.map(lambda job: list(compiled(job)), jobs) for kernel in kernels]
    worse = [] if found else ["machine_code.py: nvcc made no kernel"]
    for name, registers, shared, spilled in found:
        kernel = name.split()[1]
        most = MOST[max((key for key in MOST if kernel.startswith(key)), key=len)]
        if prefix and kernel.startswith(prefix):
            print(f"{name:45} {registers:3} registers, {shared:6} bytes shared, {spilled} spilled")
        if spilled or registers > most[0] or shared > most[1]:
            worse.append(f"{name}: {registers} registers, {shared} bytes shared, {spilled} spilled; at most {most[0]}, {most[1]}, 0")
    sys.exit("\n".join(worse) if worse else None)


if __name__ == "__main__":
    main(*sys.argv[1:2])
