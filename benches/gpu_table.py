#!/usr/bin/env python3
"""Tables for benches/LOG.md from what `benches/gpu.sh` left: `gpu_table.py LOGS > table.md`.

Reads `bench.HOW.WHAT.MODEL.out` (`wardround bench --format json`), `panel-bench.out` and `peers*.json`; what is not there has no row.
"""

import json
import sys
from pathlib import Path

COLUMNS = [("tg128", 1), ("tg128", 8), ("tg128", 64), ("tg128 --sample", 1), ("tg128 --sample", 64), ("pp512", 1), ("pp512", 8), ("pp4096", 1)]


def main() -> None:
    logs = Path(sys.argv[1])
    benches = [(path.name.split(".")[1], path.name.split(".")[-2], read(path)) for path in sorted(logs.glob("bench.*.out"))]
    benches = [(how, model, report) for how, model, report in benches if report]
    panel = read(logs / "panel-bench.out")
    peers = {report["model"]: report["figures"] for path in sorted(logs.glob("peers.*.json")) if "model" in (report := read(path))}
    print_limits([report["environment"] for _, _, report in benches], read(logs / "peers-limits.json"))
    print_benches(benches, peers)
    print_panel(panel, peers)


def read(path: Path) -> dict:
    """Nothing where a step failed or was not made."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.1f}"


def print_limits(environments: list[dict], peers: dict) -> None:
    for environment in environments[:1]:
        limits = environment["limits"]
        matrix = limits.get("bf16_multiply_adds_per_second") or limits["f32_multiply_adds_per_second"]
        print(f"{environment['device_kind']}, {environment['hardware']['cpu']}; wardround {environment['build']['version']}", end="; ")
        print(f"limits by wardround: {limits['bytes_per_second'] / 1e12:.2f} TB/s, {2 * matrix / 1e12:.0f} TFLOP/s in bf16.")
    figures = peers.get("figures", {})
    if "bytes_per_second" in figures.get("copy", {}) and "multiply_adds_per_second" in figures.get("bf16 product", {}):
        copied, multiplied = figures["copy"]["bytes_per_second"], figures["bf16 product"]["multiply_adds_per_second"]
        print(f"Limits by PyTorch {peers['torch']}: copy {copied / 1e12:.2f} TB/s, 8192³ {2 * multiplied / 1e12:.0f} TFLOP/s.")


def print_benches(benches: list[tuple], peers: dict) -> None:
    """In brackets the share of the limit that binds there, and the ratio to bf16's tokens/s."""
    cells = {}
    for how, model, report in benches:
        for result in report["results"]:
            column = (result["test"], result["batch"])
            if column not in COLUMNS:
                continue
            share = result["share_of_matrix_rate" if column[0].startswith("pp") else "share_of_bandwidth"]
            row = how + (f", after {result['depth']}" if result["depth"] else "")
            cells.setdefault((model, row), {}).setdefault(column, (result["tokens_per_second"], share))
    names = {("tg128", batch): f"decode, batch {batch}" for batch in (1, 8, 64)} | {("pp4096", 1): "prefill of 4096"}
    for model, figures in peers.items():
        found = {column: figures.get(name, {}).get("tokens_per_second") for column, name in names.items()}
        if any(found.values()):
            cells[model, "transformers"] = {column: (number, None) for column, number in found.items() if number}
    if not cells:
        return
    columns = [column for column in COLUMNS if any(column in row for row in cells.values())]
    print("\ntokens/s (share of bandwidth in tg, of the matrix rate in pp; × bf16's)\n")
    print("| model | how |" + "".join(f" {test}, batch {batch} |" for test, batch in columns))
    print("| --- | --- |" + " ---: |" * len(columns))
    first = ["bf16", "fast", "q8_0", "q4_k"]
    for model, how in sorted(cells, key=lambda key: (key[0], first.index(key[1]) if key[1] in first else 9, key[1])):
        row, base = cells[model, how], cells.get((model, "bf16"), {})
        print(f"| {model} | {how} |", "".join(f" {cell(row.get(column), base.get(column), how)} |" for column in columns), sep="")


def cell(figure: tuple | None, base: tuple | None, how: str) -> str:
    if figure is None:
        return "–"
    number, share = figure
    notes = [] if share is None else [f"{100 * share:.0f} %"]
    if base and how != "bf16":
        notes.append(f"{number / base[0]:.2f}×")
    return rate(number) + (f" ({'; '.join(notes)})" if notes else "")


def print_panel(panel: dict, peers: dict) -> None:
    if not panel:
        return
    figures, engines = panel["panel"], {engine["backbone"]: engine for engine in panel["engines"]}
    print(f"\n`bench panel`: {figures['questions']} questions, {figures['calls']} calls, {figures['errors']} errors", end=", ")
    print(f"{figures['wall_seconds']:.1f} s, {figures['questions_per_minute']:.1f} questions a minute", end=", ")
    print(f"{rate(figures['completion_tokens_per_second'])} completion tokens/s, {rate(figures['computed_tokens_per_second'])} computed.\n")
    print("| model | ours: calls | prompt tokens (cached) | completion tokens | busy s | idle s |", end="")
    print(" transformers: prompts | prompt tokens | completion tokens | s | completion tokens/s |")
    print("| --- |" + " ---: |" * 10)
    peer_tokens, peer_seconds, compared = 0, 0.0, 0
    for model, engine in engines.items():
        busy, idle = (sum(engine[kind][name] for kind in ("decode", "prefill")) for name in ("busy_seconds", "idle_seconds"))
        theirs = peers.get(model, {}).get("continuous batching", {})
        if "run" not in theirs:
            print(f"| {model} | – | – | – | {busy:.1f} | {idle:.1f} |" + " – |" * 5)
            continue
        run = theirs["run"]
        compared += 1
        peer_tokens += theirs["completion_tokens"]
        peer_seconds += theirs["seconds"]
        print(f"| {model} | {run['calls']} | {run['prompt_tokens']} ({run['cached_tokens']}) | {run['completion_tokens']} |", end="")
        print(f" {busy:.1f} | {idle:.1f} | {theirs['prompts']} | {theirs['prompt_tokens']} | {theirs['completion_tokens']} |", end="")
        print(f" {theirs['seconds']:.1f} | {rate(theirs['completion_tokens_per_second'])} |")
    # The panel's models take turns on one GPU, and so do theirs: one wall against the sum of the others.
    if compared == len(engines):
        ours, others = figures["completion_tokens_per_second"], peer_tokens / peer_seconds
        print(f"\nwall against wall, all models: {rate(ours)} completion tokens/s against {rate(others)}, {ours / others:.1f}×")
    for how in sorted({figures.get("continuous batching", {}).get("what", "") for figures in peers.values()} - {""}):
        print(f"\ntransformers: {how}.")


if __name__ == "__main__":
    main()
