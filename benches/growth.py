#!/usr/bin/env python3
"""How cost grows: tokens a second against the batch and against the depth of the context, as benches/growth.svg.

    python3 -m venv plots && plots/bin/pip install matplotlib
    for quant in none q8_0 q4_k; do
        wardround bench --model DIR --quant $quant --threads 2 -p 0 -n 24 --batch 1,2,4,8,12,16 --format json > $quant-batch.json
        wardround bench --model DIR --quant $quant --threads 2 -p 512 -n 24 --depth 0,512,2048,4096 --format json > $quant-depth.json
    done
    plots/bin/python benches/growth.py *-batch.json *-depth.json --out benches/growth.svg

Each file is one report of `wardround bench --format json`; a line in the plot is a kind of weights and a test. A share of the limit
stands beside each point of decoding where batches grow.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=Path("growth.svg"))
    arguments = parser.parse_args()
    by_batch, by_depth = defaultdict(dict), defaultdict(dict)
    for path in arguments.reports:
        report = json.loads(path.read_text())
        weights = weights_of(report["model"])
        for result in report["results"]:
            line = (weights, result["test"])
            if result["depth"] == 0 and result["test"].startswith("tg"):
                by_batch[line][result["batch"]] = result
            if result["batch"] == 1:
                by_depth[line][result["depth"]] = result
    draw(by_batch, by_depth, arguments.out)


def weights_of(model: dict) -> str:
    return model["dtype"] if model["quantisation"] == "none" else model["quantisation"]


def draw(by_batch: dict, by_depth: dict, out: Path) -> None:
    # The same figures give the same bytes.
    plt.rcParams.update({"svg.hashsalt": "growth", "font.size": 9})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for (weights, test), results in sorted(by_batch.items()):
        if len(results) > 1:
            plot(left, results, f"{weights}, {test}", "o-")
            for batch, result in results.items():
                place = (batch, result["tokens_per_second"])
                share = result["share_of_bandwidth"]  # candle's devices have none
                left.annotate("" if share is None else f"{100 * share:.0f} %", place, textcoords="offset points", xytext=(3, -9), fontsize=6)
    left.set(title="decoding, by batch (share of the read rate)", xlabel="sequences", ylabel="tokens/s, summed")
    for (weights, test), results in sorted(by_depth.items()):
        if len(results) > 1:
            plot(right, results, f"{weights}, {test}", "o-" if test.startswith("pp") else "s--")
    right.set(title="one sequence, by depth", xlabel="positions before the test", ylabel="tokens/s", yscale="log")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    left.set_ylim(bottom=0)
    figure.savefig(out, metadata={"Date": None})


def plot(axes, results: dict, label: str, style: str) -> None:
    places = sorted(results)
    axes.plot(places, [results[place]["tokens_per_second"] for place in places], style, label=label, markersize=3)


if __name__ == "__main__":
    main()
