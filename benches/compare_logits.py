#!/usr/bin/env python3
"""How far two outputs of `wardround generate --logits` lie apart.

    compare_logits.py REFERENCE OTHER [BOUND]     # a line a position in ten; fails beyond the bound
    compare_logits.py --same REFERENCE OTHER      # fails where a single bit differs, and says where first

Distances are of the largest difference in a row to the row's largest logit. A forward pass of some 36 layers rounds to bf16 about
150 times in a row, each time by up to 2⁻⁹ of a number and mostly in no common direction: √150 · 2⁻⁹ ≈ 0.024; the bound is twice that.
"""

import json
import math
import sys


def main() -> None:
    if sys.argv[1] == "--same":
        sys.exit(not same(*(json.load(open(path)) for path in sys.argv[2:4])))
    reference, other = (json.load(open(path))["logits"] for path in sys.argv[1:3])
    bound = float(sys.argv[3]) if len(sys.argv) > 3 else 0.05
    distances = [distance(a, b) for a, b in zip(reference, other, strict=True)]
    for position in range(0, len(distances), 10):
        print(f"position {position:4}: {distances[position]:.5f}")
    likeliest = sum(likeliest_of(a) == likeliest_of(b) for a, b in zip(reference, other))
    count = len(distances)
    print(f"largest {max(distances):.5f}, mean {sum(distances) / count:.5f}; {likeliest} of {count} likeliest tokens agree")
    sys.exit(max(distances) > bound)


def distance(a: list, b: list) -> float:
    """JSON has null for what is no number: that is as far as can be."""
    if None in a or None in b:
        return math.inf
    return max(abs(x - y) for x, y in zip(a, b, strict=True)) / max(map(abs, a))


def likeliest_of(row: list) -> int | None:
    return None if None in row else row.index(max(row))


def same(reference: dict, other: dict) -> bool:
    rows, others = (report["logits"] for report in (reference, other))
    differing = [position for position, (a, b) in enumerate(zip(rows, others)) if a != b]
    if len(rows) == len(others) and not differing:
        print(f"{len(rows)} positions, every bit the same")
        return True
    print(f"{len(rows)} and {len(others)} positions; {len(differing)} differ, first {differing[:8]}", file=sys.stderr)
    if differing:
        a, b = rows[differing[0]], others[differing[0]]
        print(f"position {differing[0]}: {str(a)[:200]} but {str(b)[:200]}", file=sys.stderr)
    return False


if __name__ == "__main__":
    main()
