#!/usr/bin/env bash
# What a replay by prefill costs beside a replay that generates: calls of one real model with completions of 200 tokens, at several batches.
#
#     tests/acceptance/by_prefill.sh MODEL QUESTIONS OUT [CALLS] [BATCHES]
#
# MODEL is a checkpoint, QUESTIONS a file as of MedQA. OUT is made, and must not hold anything yet. CALLS is 200, BATCHES "1 4" unless they
# are given. Takes the release binary where it is built, else the debug one; WARDROUND names another. Both replays must find no difference.
# Prints seconds of whole commands, loading and prompts included, and their ratio.
set -euo pipefail

if [ $# -lt 3 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
model=$1 questions=$2 out=$3 calls=${4:-200} batches=${5:-1 4}
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
wardround=${WARDROUND:-$target/release/wardround}
[ -x "$wardround" ] || wardround=$target/debug/wardround

if [ -e "$out" ] && [ -n "$(ls -A "$out")" ]; then
    echo "$out is not empty" >&2
    exit 2
fi
mkdir -p "$out"
# So hot that no text ends by itself: then none can be read either, and the command ends with 1.
"$wardround" run zero-shot --data "$questions" --format medqa --limit "$calls" --panel "$model" --decoding text --temperature 2 --top-p 1 --top-k 0 \
    --set max_tokens=200 --context 2048 --offline --quiet --out "$out/run" >"$out/run.log" 2>&1 || [ $? -eq 1 ]
python3 - "$out/run/results.json" <<'PYTHON'
import json, sys
results = json.load(open(sys.argv[1]))
calls, tokens = results["calls"], results["tokens"]
print(f"{calls} calls: prompts of {tokens['prompt'] / calls:.0f} tokens, completions of {tokens['completion'] / calls:.0f}")
PYTHON
seconds() {
    local began=$EPOCHREALTIME
    "$wardround" replay "$out/run" --offline --quiet --max-batch "$@" >"$out/replay.log"
    grep -q ', 0 differences$' "$out/replay.log"
    echo "$EPOCHREALTIME $began" | awk '{ printf "%.1f", $1 - $2 }'
}
for batch in $batches; do
    generated=$(seconds "$batch")
    prefilled=$(seconds "$batch" --by-prefill)
    echo "batch $batch: replay $generated s, --by-prefill $prefilled s, ratio $(awk "BEGIN { printf \"%.1f\", $generated / $prefilled }")"
done
