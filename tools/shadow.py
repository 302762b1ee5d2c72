#!/usr/bin/env python3
"""What a GPU did otherwise than the emulator: the summary of reports that WARDROUND_CUDA_SHADOW named.

    tools/shadow.py REPORT.jsonl...

A row per kernel: launches that were equal, different, no number in another way, or a fault; alone, and behind a kernel that
writes late. Then the first difference of each kernel and way. Fails where there is any, or where nothing was compared.
"""

import collections
import json
import pathlib
import sys

WAYS = ["plain", "late"]
VERDICTS = ["equal", "different", "nan", "fault"]


def main(paths):
    counts = {}  # by process, kernel: a later line takes an earlier one's place
    first = {}
    running = None
    for path in paths:
        for line in pathlib.Path(path).read_text().splitlines():
            line = json.loads(line)
            if "summary" in line:
                counts[path, line["of"], line["summary"]] = line
            else:
                first.setdefault((line["kernel"], line["way"], line["verdict"]), line)
        beside = pathlib.Path(f"{path}.running")
        if beside.exists() and (lines := beside.read_text().splitlines()):
            running = json.loads(lines[-1])
    total = collections.defaultdict(collections.Counter)
    for (_, _, kernel), line in counts.items():
        total[kernel]["emulated"] += line["emulated"]
        for way in WAYS:
            for verdict in VERDICTS:
                total[kernel][way, verdict] += line[way][verdict]
    print(f"{'kernel':40} {'plain: ' + ' '.join(VERDICTS):>34} {'late: ' + ' '.join(VERDICTS):>34} {'emulated':>9}")
    for kernel, count in sorted(total.items()):
        told = [" ".join(f"{count[way, verdict]:>7}" for verdict in VERDICTS) for way in WAYS]
        print(f"{kernel:40} {told[0]:>34} {told[1]:>34} {count['emulated']:>9}")
    for (kernel, way, verdict), line in sorted(first.items()):
        shape = f"grid {line['grid']}, {line['threads']} threads, cluster {line['cluster']}"
        print(f"\n{kernel}, {way}: {verdict}; {shape}; {line.get('reason', '')}")
        for region in line.get("regions", []):
            expected, found = region["expected"], region["found"]
            print(f"  region {region['region']} ({region['what']}, {region['region_bytes']} bytes): {region['words']} words, "
                  f"{region['both_nan']} of them no number; at byte {region['offset']} {found['hex']} ({found['f32']}), "
                  f"not {expected['hex']} ({expected['f32']}); off by {region['f32_steps']} f32, {region['bf16_steps']} bf16 steps; "
                  f"{region['suspect']}")
    if running:
        print(f"\nlast begun: {running['running']}, {running['way']}")
    compared = sum(count[way, verdict] for count in total.values() for way in WAYS for verdict in VERDICTS)
    bad = [key for key in first if key[2] != "nan"]
    print(f"\n{compared} runs compared, {len(bad)} kinds of difference")
    return 1 if bad or not compared else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
