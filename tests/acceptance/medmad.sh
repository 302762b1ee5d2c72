#!/usr/bin/env bash
# MED-MAD over real questions with tiny models: 20 of MedQA, 20 of PubMedQA and 20 of MMLU-Pro, three runs each.
#
#     tests/acceptance/medmad.sh DATA OUT [QUESTIONS] [RUNS]
#
# DATA holds medqa/us_5opt_test.jsonl, pubmedqa/ori_pqal.json with test_ground_truth.json beside it, and
# mmlu_pro/professional_medicine.jsonl. OUT is made, and must not hold anything yet. Takes the release binary where it
# is built, else the debug one; WARDROUND names another. Every run is verified, two items of it are replayed, and its
# votes are recomputed by tests/recompute.py. Prints one line of figures for each dataset, and exits 0 when all is well.
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
data=$1 out=$2 questions=${3:-20} runs=${4:-3}
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
panel=$out/tiny-gemma3,$out/tiny-llama,$out/tiny-qwen3

for dataset in medqa=medqa/us_5opt_test.jsonl pubmedqa=pubmedqa/ori_pqal.json \
    mmlu-pro=mmlu_pro/professional_medicine.jsonl; do
    format=${dataset%%=*} file=$data/${dataset#*=} run=$out/$format
    "$wardround" run medmad --data "$file" --format "$format" --limit "$questions" --sample-seed 42 --runs "$runs" \
        --panel "$panel" --set record_chars=32 --offline --out "$run" >"$out/$format.log"
    "$wardround" verify "$run" >>"$out/$format.log"
    ids=$(python3 -c 'import sys, tomllib
print(",".join(tomllib.load(open(sys.argv[1], "rb"))["dataset"]["items"][:2]))' "$run/plan.toml")
    "$wardround" replay "$run" --items "$ids" --max-batch 5 >>"$out/$format.log"
    python3 "$root/tests/recompute.py" "$run"
    python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
a = r["accuracy"]
print("{dataset}: {n_items} items x {n_runs} runs, {n_errors} errors, {calls} calls, {ties} ties".format(**r),
      "parse {parse}, tokens {tokens}".format(**r), sep=", ", end=", ")
print("accuracy %.4f ± %.4f, %.1f s" % (a["mean"], a["std"] or 0, r["elapsed_ms"] / 1000))' "$run/results.json"
done
