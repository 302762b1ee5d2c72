"""Compares the runs of two versions of the program, value by value: calls and searches by their keys, items, figures.

    python3 tests/acceptance/equal.py BEFORE AFTER

Both folders hold run directories at the same places, made by the same commands, or are those of recipes. Left out is what may differ: places in the log, times,
hashes, schema numbers, tokens that were cached, and fields that only one version writes. Prints what was compared and every kind of
difference with an example; exits 1 where there is any.
"""

import json
import sys
from pathlib import Path

CALL = {"seq", "elapsed_ms", "prev", "hash", "schema", "request"}
SEARCH = {"seq", "took", "cached", "prev", "hash", "schema"}
ITEM = {"prev", "hash", "schema", "kind"}
FIGURE = ("elapsed", "finished_at", "head", "cached", "version", "latency", "seconds", "_ms")


def lines(path):
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]] if path.exists() else []


def call_key(call):
    return tuple(call[key] for key in ("dataset", "run", "item", "agent", "round", "purpose", "sample"))


def search_key(search):
    return tuple(search[key] for key in ("dataset", "run", "item", "round", "step"))


def item_key(item):
    return item["run"], item["item"]


def flat(value, path=""):
    match value:
        case dict():
            for key, one in value.items():
                yield from flat(one, f"{path}.{key}")
        case list():
            for place, one in enumerate(value):
                yield from flat(one, f"{path}[{place}]")
        case _:
            yield path, value


def figures(run):
    found = flat(json.loads((run / "results.json").read_text(encoding="utf-8")))
    return {path.replace(".figures", ""): value for path, value in found if not any(word in path for word in FIGURE)}


def compare(before, after):
    runs = sorted(path.parent.relative_to(before) for path in before.rglob("calls.jsonl"))
    recipes = sorted(path.parent.relative_to(before) for path in before.rglob("recipe.toml"))
    counts, different = {"runs": len(runs), "recipes": len(recipes), "calls": 0, "searches": 0, "items": 0, "figures": 0}, {}

    def both(name, run, old, new, left_out):
        for key in old.keys() ^ new.keys():
            different.setdefault(f"{name} of one version alone", []).append((run, key))
        for key in old.keys() & new.keys():
            counts[name] += 1
            for field in (old[key].keys() & new[key].keys()) - left_out:
                left, right = old[key][field], new[key][field]
                if field == "usage":
                    left, right = ({k: v for k, v in one.items() if k != "cached_tokens"} for one in (left, right))
                if left != right:
                    different.setdefault(f"{name}: {field}", []).append((run, key, str(left)[:200], str(right)[:200]))

    for run in runs + recipes:
        old, new = before / run, after / run
        if not (new / "results.json").is_file():
            different.setdefault("missing runs", []).append(run)
            continue
        logs = ("calls", call_key, CALL), ("searches", search_key, SEARCH), ("items", item_key, ITEM)
        for name, key, left_out in () if run in recipes else logs:
            found = [{key(line): line for line in lines(folder / f"{name}.jsonl")} for folder in (old, new)]
            both(name, run, *found, left_out)
        old, new = figures(old), figures(new)
        counts["figures"] += len(old.keys() & new.keys())
        for path in old.keys() & new.keys():
            if old[path] != new[path]:
                different.setdefault(f"figure {path}", []).append((run, old[path], new[path]))
    return counts, different


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    counts, different = compare(Path(sys.argv[1]), Path(sys.argv[2]))
    print(counts)
    for name, examples in sorted(different.items()):
        print(f"{name}: {len(examples)}, such as {examples[0]}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
