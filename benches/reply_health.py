#!/usr/bin/env python3
"""How the replies of a real model are read: every system under each decoding, beside other builds of the program.

    benches/reply_health.py MODEL DATA [--binary PATH …] [--items 5] [--max-tokens 160] [--systems medmad cot …]

DATA has medqa/ and medec/. For each system, decoding and binary a line: wall seconds, calls, and of these the shares that were read exactly,
repaired, from words, declined, unread, and cut by the limit. The last column is that of a report's warnings: void. Systems that search or show exemplars need more: name one with --systems,
and what it needs as one argument, as in --more="--exemplars FILE --exemplars-format medec".
"""
import argparse
import collections
import json
import pathlib
import shlex
import subprocess
import tempfile
import time

QUESTIONS = ["zero-shot", "few-shot", "cot", "self-consistency", "healthcareagent", "medagents", "mdagents", "reconcile", "no-debate", "medmad"]
NOTES = ["base-llm", "medguards", "medprompt", "em-mixers"]
NEEDY = ["medprompt", "em-mixers"]
READ = ["ok", "repaired", "fallback", "refused", "unread"]


def find(value, key):
    """The first value of a key anywhere in a JSON value."""
    if isinstance(value, dict):
        if key in value:
            return value[key]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            found = find(inner, key)
            if found is not None:
                return found
    return None


def run(binary, system, decoding, args, out):
    is_note = system in NOTES
    file = "medec/MEDEC-MS-TestSet-with-GroundTruth-and-ErrorType.csv" if is_note else "medqa/us_5opt_test.jsonl"
    command = [binary, "run", system, "--data", str(args.data / file), "--format", "medec" if is_note else "medqa", "--panel", str(args.model.resolve()), "--offline",
               "--limit", str(args.items), "--decoding", decoding, "--set", f"max_tokens={args.max_tokens}", "--quiet", "--out", str(out), *args.more]
    began = time.monotonic()
    told = subprocess.run(command, capture_output=True, text=True)
    wall = time.monotonic() - began
    if not (out / "results.json").exists():
        return f"failed: {told.stderr.strip().splitlines()[-1:]}"
    calls = [json.loads(line) for line in (out / "calls.jsonl").read_text().splitlines()]
    counts = collections.Counter(call["parse"] for call in calls)
    cut = sum(call["finish_reason"] == "length" for call in calls)
    shares = [f"{100 * counts[one] / len(calls):.0f}" for one in READ] + [f"{100 * cut / len(calls):.0f}"]
    health = find(json.loads((out / "results.json").read_text()), "parse_health") or {}
    # A share of none is left out.
    void = f"{100 * health.get('void', 0):.0f}"
    return f"{wall:.0f} | {len(calls)} | " + " | ".join([*shares, void])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--binary", nargs="+", default=["target/release/wardround"])
    parser.add_argument("--items", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, default=160)
    parser.add_argument("--systems", nargs="+", default=[system for system in QUESTIONS + NOTES if system not in NEEDY])
    parser.add_argument("--decodings", nargs="+", default=["grammar", "json", "text"])
    parser.add_argument("--more", type=shlex.split, default=[])
    args = parser.parse_args()
    print("| system | decoding | build | s | calls | exact | repaired | words | declined | unread | by length | void |")
    print("| --- | --- | --- |" + " ---: |" * 9)
    with tempfile.TemporaryDirectory() as scratch:
        for system in args.systems:
            for decoding in args.decodings:
                for place, binary in enumerate(args.binary):
                    out = pathlib.Path(scratch) / f"{system}-{decoding}-{place}"
                    print(f"| {system} | {decoding} | {place} | {run(binary, system, decoding, args, out)} |", flush=True)


if __name__ == "__main__":
    main()
