#!/usr/bin/env python3
"""A page for whoever has to decide, from what `benches/gpu.sh` left: `gpu_verdict.py WORK`.

Whether it works, what to leave out, the share of the limit that binds each case beside what is aimed at, and what to mend first: tests
that fail, then bits that differ, then the cases that are furthest from their aim.
"""

import re
import sys
from pathlib import Path

from gpu_table import read

# Shares aimed at: of the copy bandwidth when decoding, of the matrix rate over a prompt.
AIMS = {("tg", 1): 0.8, ("tg", 8): 0.75, ("tg", 64): 0.7, ("pp", 1): 0.6}


def main() -> None:
    work = Path(sys.argv[1])
    ended = {}
    summary = work / "summary.txt"
    for line in summary.read_text().splitlines() if summary.exists() else []:
        if step := re.match(r"(\S+)\s+exit (\d+), \d+ s", line):
            ended[step[1]] = int(step[2])
    print("works:      ", verdict(work))
    without = work / "without"
    print("leave out:  ", (without.read_text() or "nothing") if without.exists() else "unknown: the gate has not come so far")
    for kind, what in (("test.", "tests"), ("bits.", "equal bits"), ("logits.compare.", "logits"), ("memcheck.", "memcheck")):
        steps = [name for name in ended if name.startswith(kind) and (kind != "bits." or ".compare." in name)]
        if steps:
            print(f"{what + ':':13}{sum(ended[name] == 0 for name in steps)} of {len(steps)}")
    shares = read_shares(work / "logs")
    if shares:
        print("\nshare of the limit (aim)")
    for (model, test, batch, depth), (share, aim) in sorted(shares.items()):
        after = f" after {depth}" if depth else ""
        print(f"  {model + ' ' + test + ', batch ' + str(batch) + after:44}{100 * share:4.0f} %" + (f"  ({100 * aim:.0f} %)" if aim else ""))
    print("\nmend first:")
    broken = [f"{name}: exit {code}" for name, code in ended.items() if code and name.startswith(("gate.", "test.", "bits.", "logits.", "memcheck."))]
    behind = [(share / aim, f"{model} {test}, batch {batch}: {100 * share:.0f} % of {100 * aim:.0f}")
              for (model, test, batch, depth), (share, aim) in shares.items() if aim and share < aim]
    others = [f"{name}: exit {code}" for name, code in ended.items() if code and f"{name}: exit {code}" not in broken]
    for line in (broken + [line for _, line in sorted(behind)] + others)[:3] or ["nothing"]:
        print(f"  {line}")


def verdict(work: Path) -> str:
    if (work / "fails").exists():
        return "NO"
    return "yes" if (work / "without").exists() else "unknown"


def read_shares(logs: Path) -> dict:
    """By model, test, batch and depth: the share of the limit that binds, of bf16, and what is aimed at."""
    shares = {}
    for path in sorted(logs.glob("bench.bf16.*.out")):
        for result in read(path).get("results", []):
            kind = result["test"][:2]
            share = result["share_of_matrix_rate" if kind == "pp" else "share_of_bandwidth"]
            key = (path.name.split(".")[-2], result["test"], result["batch"], result["depth"])
            shares[key] = (share, AIMS.get((kind, result["batch"])) if not result["depth"] else None)
    return shares


if __name__ == "__main__":
    main()
