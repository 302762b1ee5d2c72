#!/usr/bin/env bash
# lm-evaluation-harness on a real model, once by its own `hf` backend and once by `local-completions` against `wardround serve`: the same
# accuracy on questions of MedQA, and every option's log-likelihood within 1e-3.
#
#     tests/acceptance/lm_eval.sh OUT MODEL DATA [ITEMS]
#
# MODEL is a folder such as smollm2, DATA has medqa/; 200 items unless ITEMS says otherwise. OUT gets the results, and a venv with
# lm-eval 0.4.13, torch and transformers unless CLIENTS names one. Takes the release binary where it is built, else the debug one;
# WARDROUND names another. Both compute in f32.
set -euo pipefail

if [ $# -lt 3 ]; then
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd) model=$(cd "$2" && pwd) data=$(cd "$3" && pwd) items=${4:-200}
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
wardround=${WARDROUND:-$target/release/wardround}
[ -x "$wardround" ] || wardround=$target/debug/wardround
clients=${CLIENTS:-$out/venv}
if [ ! -x "$clients/bin/lm_eval" ]; then
    python3 -m venv "$clients"
    "$clients/bin/pip" install -q 'lm-eval[api,hf]==0.4.13'
fi
mkdir -p "$out/tasks"
sed "s|DATA|$data|" "$root/tests/acceptance/lm_eval.yaml" >"$out/tasks/wardround_medqa.yaml"

rm -f "$out/address"
"$wardround" serve "$model" --dtype f32 --kv-dtype f32 --port 0 --offline --kv-tokens 16384 >"$out/address" 2>"$out/serve.log" &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
until [ -s "$out/address" ]; do kill -0 "$server" && sleep 0.1; done
url=$(sed 's/^listening on //' "$out/address")
until curl -fsS "$url/health" >/dev/null 2>&1; do kill -0 "$server" && sleep 0.1; done

# evaluate NAME FLAGS…
evaluate() {
    local name=$1
    shift
    rm -rf "${out:?}/$name"
    SECONDS=0
    HF_HUB_OFFLINE=1 HF_DATASETS_CACHE=$out/datasets OPENAI_API_KEY=none "$clients/bin/lm_eval" run --tasks wardround_medqa --include_path "$out/tasks" \
        --limit "$items" --log_samples --output_path "$out/$name" "$@" >"$out/$name.log" 2>&1 || {
        tail -20 "$out/$name.log" >&2
        exit 1
    }
    echo "$name: $SECONDS s"
}
evaluate served --model local-completions --batch_size 8 \
    --model_args "model=$(basename "$model"),base_url=$url/v1/completions,tokenizer_backend=remote,num_concurrent=1,max_length=8192"
kill "$server"
# transformers 5 gives some tokenizers of tokenizer.json the pre-tokenizer of GPT-2 (SmolLM2's digits are lost, so that spaces before a number
# are other tokens): https://github.com/huggingface/transformers/issues/45701. Here it takes the file as it is.
mkdir -p "$out/tokenizer"
cp "$model"/tokenizer*.json "$out/tokenizer"
sed -i 's/"tokenizer_class": *"[^"]*"/"tokenizer_class": "PreTrainedTokenizerFast"/' "$out/tokenizer/tokenizer_config.json"
evaluate hf --model hf --batch_size 4 --device cpu --model_args "pretrained=$model,tokenizer=$out/tokenizer,dtype=float32"

"$clients/bin/python" -P - "$out" "$items" <<'PY'
import json, pathlib, sys
out, items = pathlib.Path(sys.argv[1]), int(sys.argv[2])

def read(name):
    (samples,) = (out / name).rglob("samples_*.jsonl")
    (results,) = (out / name).rglob("results_*.json")
    rows = {row["doc_id"]: row for row in map(json.loads, samples.open(encoding="utf-8"))}
    figures = json.loads(results.read_text())["results"]["wardround_medqa"]
    return rows, {key: figures[f"{key},none"] for key in ["acc", "acc_norm"]}

(served, ours), (hf, theirs) = read("served"), read("hf")
assert len(served) == len(hf) == items, (len(served), len(hf))
logprobs = lambda row: [float(option[0][0]) if isinstance(option[0], list) else float(option[0]) for option in row["resps"]]  # noqa: E731
pairs = [(a, b) for item in served for a, b in zip(logprobs(served[item]), logprobs(hf[item]), strict=True)]
furthest = max(abs(a - b) for a, b in pairs)
print(f"lm-eval, {items} items, {len(pairs)} log-likelihoods: accuracy {ours} served, {theirs} by hf; furthest apart {furthest:.1e}")
assert ours == theirs and furthest < 1e-3
assert min(a for a, _ in pairs) < -1, "no log-likelihoods of a model"
PY
