#!/usr/bin/env python3
"""How far two outputs of `wardround logprobs --full` lie apart, a line a position in ten; fails beyond the bound.

    compare_logits.py REFERENCE OTHER [BOUND]

Distances are of the largest difference in a row to the row's largest logit. A forward pass of some 36 layers rounds to bf16 about
150 times in a row, each time by up to 2⁻⁹ of a number and mostly in no common direction: √150 · 2⁻⁹ ≈ 0.024; the bound is twice that.
"""

import json
import sys


def main() -> None:
    reference, other = (json.load(open(path))["logits"] for path in sys.argv[1:3])
    bound = float(sys.argv[3]) if len(sys.argv) > 3 else 0.05
    distances = [distance(a, b) for a, b in zip(reference, other, strict=True)]
    for position in range(0, len(distances), 10):
        print(f"position {position:4}: {distances[position]:.5f}")
    likeliest = sum(a.index(max(a)) == b.index(max(b)) for a, b in zip(reference, other))
    print(f"largest {max(distances):.5f}, mean {sum(distances) / len(distances):.5f}; {likeliest} of {len(distances)} likeliest tokens agree")
    sys.exit(max(distances) > bound)


def distance(a: list[float], b: list[float]) -> float:
    return max(abs(x - y) for x, y in zip(a, b, strict=True)) / max(map(abs, a))


if __name__ == "__main__":
    main()
