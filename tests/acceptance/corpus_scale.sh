#!/bin/bash
# What a build holds in memory at 10 thousand, 100 thousand and a million chunks, and how long a corpus takes to be verified.
#
#   tests/acceptance/corpus_scale.sh WARDROUND [OUT]
#
# Minutes and a gigabyte of disk with an optimised binary. Needs python3 and Linux. The peak is of the process's own memory: pages of files
# that it maps are the system's to take back, and stand beside it.
set -euo pipefail
wardround=$(realpath "$1")
here=$(cd "$(dirname "$0")/../.." && pwd)
encoder=$here/tests/goldens/encoders/tiny-mean
out=${2:-$(mktemp -d)}
# Bytes that the largest build may hold more than the smallest.
most=$((512 << 20))

mkdir -p "$out"
printf 'name = "scale"\n[[source]]\nlabel = "rows"\nformat = "jsonl"\npath = "rows.jsonl"\nlicence = "own"\n' > "$out/scale.toml"
printf '%10s %10s %10s %12s %10s\n' chunks seconds 'peak MiB' 'mapped MiB' 'info ms'
for count in 10000 100000 1000000; do
    python3 - "$count" > "$out/rows.jsonl" <<'P'
import json, random, sys

random.seed(1)
words = [f"word{number}" for number in range(5000)]
for row in range(int(sys.argv[1])):
    text = " ".join(random.choices(words, k=12))
    print(json.dumps({"id": f"r{row}", "title": f"Title {row}", "text": f"{text}."}))
P
    rm -rf "$out/corpus"
    read -r seconds kibibytes mapped < <(python3 - "$wardround" corpus build "$out/scale.toml" \
        --encoder "$encoder" --quiet --out "$out/corpus" << 'P'
import re, subprocess, sys, time

began = time.time()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
peak = {"RssAnon": 0, "RssFile": 0}
while process.poll() is None:
    try:
        status = open(f"/proc/{process.pid}/status").read()
    except OSError:
        break
    for name, kibibytes in re.findall(r"(RssAnon|RssFile):\s+(\d+)", status):
        peak[name] = max(peak[name], int(kibibytes))
    time.sleep(0.02)
if process.wait() != 0:
    sys.exit("the build failed")
print(f"{time.time() - began:.1f}", *peak.values())
P
    )
    start=$(date +%s%N)
    "$wardround" corpus verify "$out/corpus" > "$out/info.txt"
    took=$((($(date +%s%N) - start) / 1000000))
    grep -Eq "^In all $count documents, $count chunks," "$out/info.txt"
    printf '%10s %10s %10s %12s %10s\n' "$count" "$seconds" $((kibibytes >> 10)) $((mapped >> 10)) "$took"
    first=${first:-$kibibytes}
done
if [ $(((kibibytes - first) << 10)) -gt "$most" ]; then echo "memory grows with the corpus"; exit 1; fi
echo "all is well"
