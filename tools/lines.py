#!/usr/bin/env python3
"""Production lines of src/ and crates/engine by top folder, and of crates/ops: Rust files without those of tests and without inline test modules.

    tools/lines.py [CHECKOUT [CHECKOUT ...]]

A file belongs to tests where a `#[cfg(test)] mod name;` declares it, or a folder above it. Comments and blank lines count.
Of several checkouts the lines stand side by side.
"""

import collections
import pathlib
import re
import sys

DECLARED = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))? )?mod (\w+);")
INLINE = re.compile(r"\n#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))? )?mod \w+ \{")


def production(source):
    """The production files below `source`, each with its text, inline tests cut off."""
    texts = {path: path.read_text() for path in sorted(source.rglob("*.rs"))}
    of_tests = set()
    for path, text in texts.items():
        folder = path.parent if path.stem in ("mod", "lib", "main") else path.with_suffix("")
        of_tests.update(folder / name for name in DECLARED.findall(text))
    for path, text in texts.items():
        if of_tests.isdisjoint([path.with_suffix(""), *path.parents]):
            yield path, INLINE.split(text)[0]


def lines(checkout):
    """Lines by top folder of a crate, or by file where one stands in src/ itself."""
    count = collections.Counter()
    for source in (pathlib.Path(checkout) / "src", pathlib.Path(checkout) / "crates/engine/src"):
        for path, text in production(source):
            count[path.relative_to(source).parts[0].removesuffix(".rs")] += text.count("\n")
    for _, text in production(pathlib.Path(checkout) / "crates/ops/src"):
        count["ops"] += text.count("\n")
    return count


def main():
    checkouts = sys.argv[1:] or [pathlib.Path(__file__).parents[1]]
    counts = [lines(checkout) for checkout in checkouts]
    names = sorted(set().union(*counts), key=lambda name: -max(count[name] for count in counts))
    for name in names:
        print(*(f"{count[name]:7,}" for count in counts), name)
    print(*(f"{sum(count.values()):7,}" for count in counts), "in all")


if __name__ == "__main__":
    main()
