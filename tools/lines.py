#!/usr/bin/env python3
"""Production lines of src/ and crates/engine by top folder, and of crates/ops and crates/candle: Rust files without those of tests and without inline test modules.

    tools/lines.py [CHECKOUT [CHECKOUT ...]]

A file belongs to tests where a `#[cfg(test)] mod name;` declares it, or a folder above it. Comments and blank lines count.
Before them, apart: what is written in other languages, and tests; behind them how many of these lines are comments, and the sum.
Of several checkouts the lines stand side by side.
"""

import collections
import pathlib
import re
import sys

DECLARED = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))? )?mod (\w+);")
INLINE = re.compile(r"\n#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))? )?mod \w+ \{")
# What is no Rust of the program, by the ends of names; files of tests count as tests.
LANGUAGES = {
    "CUDA and C++": (".cu", ".cuh", ".cpp", ".h"),
    "HTML, JS and CSS": (".html", ".js", ".mjs", ".css"),
    "Python": (".py",),
    "shell": (".sh",),
    "TOML": (".toml",),
    "prompts": (".txt",),
    "documents": (".md",),
}
FOLDERS = ("src", "crates", "kernels", "models", "prompts", "datasets", "corpora", "recipes", "systems", "tools", "benches", "docs", "python")


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


def rust(checkout):
    """Lines by top folder of a crate, or by file where one stands in src/ itself; and how many of them are comments."""
    count, comments = collections.Counter(), 0
    sources = {"src": None, "crates/engine/src": None, "crates/ops/src": "ops", "crates/candle/src": "candle"}
    for source, one in sources.items():
        for path, text in production(checkout / source):
            folder = path.relative_to(checkout / source).parts[0].removesuffix(".rs")
            count[one or folder] += text.count("\n")
            comments += sum(line.lstrip().startswith("//") for line in text.splitlines())
    return count, comments


def others(checkout, of_program):
    """Lines apart from the Rust of the program."""
    count = collections.Counter()
    for folder in FOLDERS:
        for path in (checkout / folder).rglob("*"):
            for language, ends in LANGUAGES.items():
                if path.name.endswith(ends):
                    count[language] += path.read_text().count("\n")
    for folder in ("src", "crates", "tests", "benches"):
        for path in (checkout / folder).rglob("*"):
            is_code = path.suffix in (".rs", ".py", ".sh", ".mjs") and (folder == "tests" or path.suffix == ".rs")
            count["tests and benches"] += path.read_text().count("\n") if is_code else 0
    count["tests and benches"] -= of_program
    return count


def main():
    checkouts = [pathlib.Path(given) for given in sys.argv[1:]] or [pathlib.Path(__file__).parents[1]]
    counts, comments = zip(*map(rust, checkouts))
    sums = [sum(count.values()) for count in counts]
    apart = [others(checkout, total) for checkout, total in zip(checkouts, sums)]

    def show(figures, name):
        print(*(f"{figure:7,}" for figure in figures), name)

    for name in sorted(set().union(*apart), key=lambda name: -max(count[name] for count in apart)):
        show([count[name] for count in apart], name)
    print()
    for name in sorted(set().union(*counts), key=lambda name: -max(count[name] for count in counts)):
        show([count[name] for count in counts], name)
    show(comments, "comments among these")
    show(sums, "in all")


if __name__ == "__main__":
    main()
