#!/usr/bin/env python3
"""Repeats in src/ and crates/: runs of six lines or more that stand in two places of its production code, letter for letter.

    tools/repeats.py [--least 6] [--show 10] [CHECKOUT]

Blank lines, comments, lines of punctuation alone and imports do not count, white space is folded. A repeat is a longest
common run of two places; a run in N places is counted once for each place after the first. Tests are left out.
"""

import argparse
import collections
import pathlib
import re

from lines import production

THIN = re.compile(r"^(//.*|[\W_]*|(pub(\([^)]*\))? )?(use|mod) .*)$")


def counted(text):
    """The lines that count, as (number from 1, folded text)."""
    inside_use = False
    for number, line in enumerate(text.splitlines(), 1):
        line = " ".join(line.split())
        inside_use = inside_use or re.match(r"(pub(\([^)]*\))? )?use .*\{[^}]*$", line)
        if not inside_use and not THIN.match(line):
            yield number, line
        inside_use = inside_use and ";" not in line


def repeats(files, least):
    """Each run that stood before: (lines, its place, the earlier place), a place being (path, first line)."""
    seen, found = {}, []
    for path, rows in files:
        at = 0
        while at + least <= len(rows):
            key = tuple(line for _, line in rows[at : at + least])
            earlier = seen.get(key)
            if earlier is None:
                seen[key] = (path, rows, at)
                at += 1
                continue
            other, others, start = earlier
            length = least
            while (
                at + length < len(rows)
                and start + length < len(others)
                and rows[at + length][1] == others[start + length][1]
                and not (other == path and start + length >= at)
            ):
                length += 1
            found.append((length, (path, rows[at][0]), (other, others[start][0])))
            at += length
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout", nargs="?", default=pathlib.Path(__file__).parents[1], type=pathlib.Path)
    parser.add_argument("--least", type=int, default=6)
    parser.add_argument("--show", type=int, default=10)
    arguments = parser.parse_args()
    files = [
        (str(path.relative_to(arguments.checkout)), list(counted(text)))
        for folder in ("src", "crates/engine/src", "crates/ops/src", "crates/candle/src")
        for path, text in production(arguments.checkout / folder)
    ]
    found = repeats(files, arguments.least)
    print(f"{len(found)} repeats of {arguments.least} lines or more, {sum(length for length, *_ in found)} lines in all")
    for length, place, earlier in sorted(found, key=lambda row: -row[0])[: arguments.show]:
        print(f"{length:4}  {place[0]}:{place[1]}  {earlier[0]}:{earlier[1]}")


if __name__ == "__main__":
    main()
