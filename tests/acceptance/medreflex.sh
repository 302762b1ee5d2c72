#!/usr/bin/env bash
# MedReAct'N'MedReFlex on all notes of MEDEC-MS's test set with tiny models and MedQuAD, killed twice and resumed, verified, replayed.
#
#     tests/acceptance/medreflex.sh DATA OUT [ITEMS]
#
# DATA holds medec/ and corpus/medquad.jsonl. OUT is made, and must not hold anything yet. With ITEMS the first so many notes run, else all 597.
# Takes the release binary where it is built, else the debug one; WARDROUND names another, ENCODER the encoder's folder (by default the tiny one of
# the goldens), DOCUMENTS how many documents of MedQuAD are built (default all), SET more settings, as "rerank_top_k=3 react_turns=2", LAYERS how
# many layers the tiny model has (default 3). All notes take some 70 minutes of two cores at SET=record_chars=64 LAYERS=1, for random weights
# write as much as the grammar allows; a dozen notes show the shares at the defaults. The run is recomputed by tests/recompute_notes.py, two
# notes are replayed, and the shares and sizes that may not grow are printed and checked: of the prompt tokens 80 % from the
# prefix index, 120 kB of searches.jsonl a note, 100 kB of the page a note.
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,14s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
data=$(cd "$1" && pwd) out=$2 items=${3:-597}
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
wardround=${WARDROUND:-$target/release/wardround}
[ -x "$wardround" ] || wardround=$target/debug/wardround
encoder=${ENCODER:-$root/tests/goldens/encoders/tiny-mean}

if [ -e "$out" ] && [ -n "$(ls -A "$out")" ]; then
    echo "$out is not empty" >&2
    exit 2
fi
mkdir -p "$out"
"$wardround" models synth qwen3 "$out/tiny-qwen3" >"$out/synth.log"
# As many positions as the published model has: the tiny tokenizer makes up to 36,000 tokens of prompts.
sed -i 's/"max_position_embeddings": 16384/"max_position_embeddings": 40960/' "$out/tiny-qwen3/config.json"
sed -i "s/\"\(num_hidden_layers\|max_window_layers\)\": 3/\"\1\": ${LAYERS:-3}/" "$out/tiny-qwen3/config.json"
mkdir -p "$out/data/corpus"
head -n "${DOCUMENTS:-1000000}" "$data/corpus/medquad.jsonl" >"$out/data/corpus/medquad.jsonl"
"$wardround" corpus build medquad --data-dir "$out/data" --encoder "$encoder" --out "$out/corpus" --quiet
"$wardround" corpus verify "$out/corpus"

set=(--set rerank=off)
for pair in ${SET:-}; do set+=(--set "$pair"); done
run=$out/run
order=("$wardround" run medreflex --data "$data/medec/MEDEC-MS-TestSet-with-GroundTruth-and-ErrorType.csv" --format medec --limit "$items"
    --context 40960 --panel "$out/tiny-qwen3" --corpus "$out/corpus" "${set[@]}" --offline --quiet --out "$run")
calls() { { cat "$run/calls.jsonl" 2>/dev/null || true; } | wc -l; }

before=0
for kill in 1 2; do
    "${order[@]}" >"$out/killed-$kill.log" 2>&1 &
    process=$!
    while kill -0 "$process" 2>/dev/null && [ "$(calls)" -lt $((before + 2 * items)) ]; do sleep 0.2; done
    kill -9 "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
    before=$(calls)
    echo "killed with $before calls made"
    order=("$wardround" resume "$run" --offline --quiet)
done
if [ -e "$run/results.json" ]; then :; else "${order[@]}" >"$out/run.md"; fi
"$wardround" verify "$run"
python3 "$root/tests/recompute_notes.py" "$run"
notes=$(head -2 "$run/dataset.jsonl" | cut -c1-4096 | grep -o '"item":"[^"]*"' | cut -d'"' -f4)
"$wardround" replay "$run" --items "$(paste -sd, <<<"$notes")" --offline --quiet

python3 - "$run" "$items" <<'PY'
import json, sys
from pathlib import Path
run, items = Path(sys.argv[1]), int(sys.argv[2])
results = json.loads((run / "results.json").read_text())
tokens, search = results["tokens"], results["notes"]["search"]
share = tokens["cached"] / tokens["prompt"]
searches = (run / "searches.jsonl").stat().st_size / items / 1000
page = (run / "report.html").stat().st_size / items / 1000
print(f"{items} notes, {results['calls']} calls, {search['searches']} searches, {search['cached']} of them cached")
print(f"steps {search['steps']['mean']:.2f}, turns {search['turns']['mean']:.2f}, {search['seconds_a_step']['mean']:.3f} s a step")
print(f"exhausted {search['exhausted']}, lost {search['lost_turns']}, unread {search['unread_reviews']}, leaks {search['leaks']}, ungrounded {search['ungrounded']}")
print(f"{100 * share:.1f} % of prompt tokens from the prefix index, {searches:.1f} kB of searches and {page:.1f} kB of the page a note")
if items > 20 and share < 0.8:
    sys.exit("less than 80 % of the prompt tokens were found in the prefix index")
PY
