#!/usr/bin/env bash
# A run that is killed again and again: its directory verifies and ends as that of a run in one go.
#
#     tests/acceptance/kills.sh OUT [KILLS]
#
# OUT is new and gets both runs; 40 kills where nothing else is said. Takes the release binary where it is built, else the debug one;
# WARDROUND names another. Needs python3.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
kills=${2:-40}
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
wardround=${WARDROUND:-$target/release/wardround}
[ -x "$wardround" ] || wardround=$target/debug/wardround
cd "$out"
[ -d llama ] || "$wardround" models synth llama llama >/dev/null
python3 - <<'P'
import json
with open("questions.jsonl", "w") as file:
    for n in range(400):
        question = {"question": f"Which is number {n}?", "options": {"A": f"{n}", "B": "none", "C": "another"}, "answer_idx": "A", "answer": f"{n}"}
        print(json.dumps(question), file=file)
P
run=(run medmad --data questions.jsonl --format medqa --panel llama,llama,llama --set max_tokens=24 --set record_chars=8 --quiet --offline)
started=$(date +%s%N)
"$wardround" "${run[@]}" --out whole >/dev/null
took_ms=$((($(date +%s%N) - started) / 1000000))

# Each process lives a twentieth of what the run takes at most, and what it takes to start.
killed=0
for round in $(seq "$kills"); do
    setsid "$wardround" "${run[@]}" --out killed >/dev/null 2>>errors &
    process=$!
    sleep "$(awk -v ms="$took_ms" -v seed="$round" 'BEGIN {srand(seed); printf "%.3f", 0.15 + rand() * ms / 20000}')"
    if kill -9 "$process" 2>/dev/null; then killed=$((killed + 1)); fi
    wait "$process" 2>/dev/null || true
done
lines=$(wc -l <killed/calls.jsonl)
"$wardround" "${run[@]}" --out killed >/dev/null
"$wardround" verify killed
python3 "$root/tests/acceptance/equal.py" whole killed
echo "$killed kills in a run of $took_ms ms; $lines calls stood after them of $(wc -l <whole/calls.jsonl)"
