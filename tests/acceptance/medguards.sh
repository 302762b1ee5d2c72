#!/usr/bin/env bash
# MedGuards and the model alone on all test notes with tiny models, killed twice a table and resumed; figures recomputed from the logs.
#
#     tests/acceptance/medguards.sh DATA OUT [ITEMS]
#
# DATA is laid out as `recipe --data-dir` wants it. OUT is made, and must not hold anything yet. Runs the recipes medguards-table2 (MEDEC-MS, 597
# notes) and medguards-table3 (MedErrBench in English, Arabic and Chinese), on ITEMS notes of each file where that is given. Takes the release
# binary where it is built, else the debug one; WARDROUND names another. Every run is verified, tests/recompute_notes.py recomputes both tables
# (with the package jieba those of Chinese too), and each recipe is run once more, which must change nothing.
# Exits 0 when all is well.
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
data=$1 out=$2 items=${3:-}
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

calls() {
    { cat "$1"/cells/*/calls.jsonl 2>/dev/null || true; } | wc -l
}
sums() {
    (cd "$1" && find . -name '*.jsonl' -o -name results.json | sort | xargs sha256sum)
}

# A recipe on so many notes in all, killed each time that three calls a note more are made.
table() {
    local recipe=$1 notes=$2 folder=$out/$1 kill process before
    local order=("$wardround" recipe "$recipe" --data-dir "$data" --runs 1 --decoding grammar --set record_chars=24
        --panel "$out/tiny-gemma3,$out/tiny-llama,$out/tiny-qwen3" --offline --quiet --out "$folder")
    [ -n "$items" ] && order+=(--limit "$items")
    for kill in 1 2; do
        before=$(calls "$folder")
        "${order[@]}" >"$out/$recipe-killed-$kill.log" 2>&1 &
        process=$!
        while kill -0 "$process" 2>/dev/null && [ "$(calls "$folder")" -lt $((before + 3 * notes)) ]; do
            sleep 0.2
        done
        kill -9 "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
        echo "$recipe: killed with $(calls "$folder") calls made"
    done
    "${order[@]}" >"$out/$recipe.md"
    for cell in "$folder"/cells/*; do
        "$wardround" verify "$cell" >>"$out/verify.log"
        echo "$recipe: $(basename "$cell"): $(wc -l <"$cell/items.jsonl") notes, $(wc -l <"$cell/calls.jsonl") calls"
    done
    python3 "$root/tests/recompute_notes.py" "$folder"
    before=$(sums "$folder")
    "${order[@]}" >"$out/$recipe-again.md"
    [ "$before" = "$(sums "$folder")" ] || { echo "running $recipe again changed something" >&2; exit 1; }
    cmp "$out/$recipe.md" "$out/$recipe-again.md"
    head -n 13 "$out/$recipe.md"
}

table medguards-table2 "${items:-597}"
table medguards-table3 "$((3 * ${items:-168}))"
