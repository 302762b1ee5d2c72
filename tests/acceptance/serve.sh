#!/usr/bin/env bash
# Real clients against `wardround serve` with tiny models of the three families.
#
#     tests/acceptance/serve.sh OUT [DATA]
#
# OUT gets the clients (openai 3.54.0, lm-eval 0.4.13, inspect_ai 0.3.285, autogen 0.7.5 in a venv; CLIENTS names one that is there), the models
# and the logs. With DATA, which holds medqa/, inspect_ai asks the system medmad and a group chat of autogen a model, both questions of MedQA.
# Where WARDROUND_MINILM names the directory of all-MiniLM-L6-v2, clients of embeddings ask too (sentence-transformers 6.2.0,
# langchain-openai 1.7.4, chromadb 1.5.9 in another venv; EMBEDDERS names one that is there).
# Takes the release binary where it is built, else the debug one; WARDROUND names another.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
wardround=${WARDROUND:-$target/release/wardround}
[ -x "$wardround" ] || wardround=$target/debug/wardround
clients=${CLIENTS:-$out/venv}
if [ ! -x "$clients/bin/python" ]; then
    python3 -m venv "$clients"
    "$clients/bin/pip" install -q 'openai==3.54.0' 'lm-eval[api]==0.4.13' 'inspect_ai==0.3.285' 'autogen-agentchat==0.7.5' 'autogen-ext[openai]==0.7.5'
fi

# serve NAME FLAGS…: a server with the models after `--`; sets `url`.
serve() {
    # What a run that failed has left would be taken for this one's.
    rm -f "$out/address"
    "$wardround" serve "$@" --port 0 --offline --kv-tokens 65536 >"$out/address" 2>"$out/serve.log" &
    server=$!
    until [ -s "$out/address" ]; do sleep 0.1; done
    url=$(sed 's/^listening on //' "$out/address")
    until curl -fsS "$url/health" >/dev/null 2>&1; do sleep 0.1; done
}
stop() {
    kill -TERM "$server"
    wait "$server"
    rm -f "$out/address"
}
trap 'kill -9 $server 2>/dev/null || true' EXIT

for family in gemma3 llama qwen3; do
    [ -d "$out/$family" ] || "$wardround" models synth "$family" "$out/$family" >/dev/null
done
serve "$out/gemma3" "$out/llama" "$out/qwen3"
"$clients/bin/python" "$root/tests/acceptance/serve_clients.py" openai "$url"
"$clients/bin/python" "$root/tests/acceptance/serve_clients.py" inspect "$url" qwen3 "$out/inspect"
stop
if [ -n "${2:-}" ]; then
    questions=$2/medqa/us_5opt_test.jsonl
    serve "$out/gemma3" "$out/llama" "$out/qwen3" --system medmad --set medmad.record_chars=32 --set medmad.t_max=2
    "$clients/bin/python" "$root/tests/acceptance/serve_clients.py" inspect-system "$url" medmad "$out/inspect" "$questions"
    "$clients/bin/python" "$root/tests/acceptance/serve_clients.py" autogen "$url" qwen3 "$questions"
    stop
fi
if [ -n "${WARDROUND_MINILM:-}" ]; then
    embedders=${EMBEDDERS:-$out/embedders}
    if [ ! -x "$embedders/bin/python" ]; then
        python3 -m venv "$embedders"
        "$embedders/bin/pip" install -q 'openai==3.54.0' 'sentence-transformers==6.2.0' 'langchain-openai==1.7.4' 'chromadb==1.5.9'
    fi
    rm -rf "$out/corpus" "$out/minilm"
    python3 - "$root/tests/common/passages.jsonl" >"$out/passages.jsonl" <<'END'
import json, sys
for number, line in enumerate(open(sys.argv[1])):
    print(json.dumps({"id": str(number), "text": json.loads(line)["text"][:400].strip()}))
END
    printf 'name = "ours"\n[[source]]\nlabel = "ours"\nformat = "jsonl"\npath = "passages.jsonl"\nlicence = "own"\nredistribute = true\n' >"$out/ours.toml"
    cp -r "$WARDROUND_MINILM" "$out/minilm"
    printf 'output = "mean"\nnormalised = true\nquery_tokens = 256\ndocument_tokens = 256\n' >"$out/minilm/encoder.toml"
    "$wardround" corpus build "$out/ours.toml" --out "$out/corpus" --encoder "$out/minilm" --quiet
    serve "minilm=$out/minilm"
    HF_HUB_OFFLINE=1 "$embedders/bin/python" "$root/tests/acceptance/serve_clients.py" embeddings "$url" minilm "$WARDROUND_MINILM" "$out/passages.jsonl" "$out/corpus/vectors.bin"
    "$embedders/bin/python" "$root/tests/acceptance/serve_clients.py" turns "$url" minilm
    stop
fi
ulimit -n 8192
serve "$out/qwen3" --max-queue 1000 --max-batch 128
"$clients/bin/python" "$root/tests/acceptance/serve_clients.py" streams "$url"
"$clients/bin/python" "$root/tests/acceptance/serve_clients.py" gone "$url"
grep -E 'VmRSS|VmHWM' "/proc/$server/status" || true
stop
serve "$out/qwen3" --max-queue 512 --max-batch 128
"$clients/bin/python" "$root/tests/acceptance/serve_clients.py" queue "$url"
stop
rm -f "$out/equal.json"
for restart in 1 2; do
    serve "$out/qwen3"
    "$clients/bin/python" "$root/tests/acceptance/serve_clients.py" equal "$url" "$out/equal.json"
    stop
done
serve "$out/qwen3" --client-timeout 3
"$clients/bin/python" "$root/tests/acceptance/serve_clients.py" slow "$url"
stop
for family in gemma3 llama qwen3; do
    serve "$out/$family"
    "$clients/bin/python" "$root/tests/acceptance/serve_clients.py" lm-eval "$url" "$family" "$wardround" "$out/$family" 2>"$out/lm-eval-$family.log"
    stop
done
