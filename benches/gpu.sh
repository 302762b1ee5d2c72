#!/usr/bin/env bash
# Everything that needs a GPU, in one go: right against the CPU first, then bits, then speed, then the peer.
#
#   benches/gpu.sh WARDROUND OUT [QUESTIONS FORMAT]
#
# WARDROUND is a binary built with --features cuda; OUT gets every log. CUDA_TESTS may name the compiled test programs
# (`cargo test --release --features cuda --no-run` prints where they are), QUESTIONS a file for `bench panel`. Full-size
# models of random weights are made under MODELS (default OUT/models: 24 GB). Python with PyTorch and transformers for the peer.
set -uo pipefail
wardround=$(realpath "$1") out=$(realpath -m "$2") questions=${3:-} format=${4:-medqa}
here=$(cd "$(dirname "$0")" && pwd)
models=${MODELS:-$out/models}
mkdir -p "$out" "$models"
failures=0

step() { # step NAME COMMAND...: runs it, keeps what it prints, says how it ended
  local name=$1 started=$SECONDS
  shift
  "$@" >"$out/$name.out" 2>"$out/$name.err"
  local code=$?
  ((code == 0)) || failures=$((failures + 1))
  printf '%-28s exit %d, %d s\n' "$name" "$code" $((SECONDS - started))
}

step doctor "$wardround" doctor --offline
for program in ${CUDA_TESTS:-}; do
  # Of the library's own tests, those of the backend.
  filter=()
  [[ $(basename "$program") == cuda-* ]] || filter=(ops::cuda)
  step "tests-$(basename "$program")" "$program" "${filter[@]}"
done

for family in qwen3 gemma3 llama; do
  full=$models/$family
  [[ -d $full ]] || step "synth-$family" "$wardround" models synth "$family" "$full" --shape full --seed 1
  # Right: logits of the full model against the CPU's f32, relative to the largest.
  ids=$(seq -s, 100 3 220)
  step "cpu-logits-$family" "$wardround" logprobs --model "$full" --tokens "$ids" --full --dtype f32
  step "gpu-logits-$family" "$wardround" logprobs --model "$full" --tokens "$ids" --full --device cuda
  step "compare-$family" python3 "$here/compare_logits.py" "$out/cpu-logits-$family.out" "$out/gpu-logits-$family.out"
  # Fast.
  step "bench-$family" "$wardround" bench --model "$full" --device cuda -p 512,4096 -n 128 --depth 0,4096 \
    --batch 1,2,4,8,16,32,64 --format json
  # What the same bytes in any company cost.
  step "bench-fast-$family" "$wardround" bench --model "$full" --device cuda --fast -p 512,4096 -n 128 --batch 1,64 --format json
  step "bench-q8_0-$family" "$wardround" bench --model "$full" --device cuda --quant q8_0 -p 4096 -n 128 --batch 1,8,64 --format json
  step "bench-q4_k-$family" "$wardround" bench --model "$full" --device cuda --quant q4_k -p 4096 -n 128 --batch 1,8,64 --format json
done

panel=$models/gemma3,$models/llama,$models/qwen3
if [[ -n $questions ]]; then
  step run "$wardround" run medmad --data "$questions" --format "$format" --limit 100 --panel "$panel" --device cuda \
    --free --set max_tokens=128 --max-batch 64 --out "$out/run"
  step bench-panel "$wardround" bench panel --data "$questions" --data-format "$format" --limit 100 --panel "$panel" \
    --device cuda --free --ignore-eos --set max_tokens=128 --max-batch 64 --format json
fi
calls=()
[[ -f $out/run/calls.jsonl ]] && calls=(--calls "$out/run/calls.jsonl")
step peers python3 "$here/peers_gpu.py" "$models/gemma3" "$models/llama" "$models/qwen3" "${calls[@]}"
echo "$failures failed"
((failures == 0))
