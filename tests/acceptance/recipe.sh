#!/usr/bin/env bash
# A recipe on real data with tiny models, killed twice on the way and resumed; its figures recomputed from the logs.
#
#     tests/acceptance/recipe.sh DATA OUT [RECIPE] [ITEMS] [RUNS]
#
# DATA is laid out as `recipe --data-dir` wants it. OUT is made, and must not hold anything yet. RECIPE is table1, ITEMS 10, RUNS 3 unless
# they are given. Takes the release binary where it is built, else the debug one; WARDROUND names another. ENCODER may name the folder of
# all-MiniLM-L6-v2. Every cell is verified, tests/recompute_recipe.py recomputes the table, and the recipe is run once more,
# which must change nothing. Exits 0 when all is well.
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
data=$1 out=$2 recipe=${3:-table1} items=${4:-10} runs=${5:-3}
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
wardround=${WARDROUND:-$target/release/wardround}
[ -x "$wardround" ] || wardround=$target/debug/wardround

if [ -e "$out" ] && [ -n "$(ls -A "$out")" ]; then
    echo "$out is not empty" >&2
    exit 2
fi
mkdir -p "$out"
for family in gemma3 llama qwen3; do
    "$wardround" models synth "$family" "$out/tiny-$family" >"$out/synth.log"
done
folder=$out/$recipe
order=("$wardround" recipe "$recipe" --data-dir "$data" --limit "$items" --runs "$runs"
    --panel "$out/tiny-gemma3,$out/tiny-llama,$out/tiny-qwen3" --decoding grammar --set record_chars=24 --offline --quiet --out "$folder")
[ -n "${ENCODER:-}" ] && order+=(--encoder "$ENCODER")

calls() {
    { cat "$folder"/cells/*/calls.jsonl 2>/dev/null || true; } | wc -l
}

# Twice, once some calls more are made, the run is killed where it stands.
for kill in 1 2; do
    before=$(calls)
    "${order[@]}" >"$out/killed-$kill.log" 2>&1 &
    process=$!
    while kill -0 "$process" 2>/dev/null && [ "$(calls)" -lt $((before + 40 * items)) ]; do
        sleep 0.2
    done
    kill -9 "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
    echo "killed with $(calls) calls made"
done
"${order[@]}" | tee "$out/table.md"
for cell in "$folder"/cells/*; do
    "$wardround" verify "$cell" >>"$out/verify.log"
done
python3 "$root/tests/recompute_recipe.py" "$folder"
sums() {
    (cd "$folder" && find . -name '*.jsonl' -o -name results.json | sort | xargs sha256sum)
}
before=$(sums)
"${order[@]}" >"$out/again.md"
[ "$before" = "$(sums)" ] || { echo "running again changed something" >&2; exit 1; }
cmp "$out/table.md" "$out/again.md"
