#!/usr/bin/env bash
# Everything that needs a GPU: right, then the same bits, then fast, then beside transformers. In stages, each of ten minutes or less.
#
#   benches/gpu.sh WARDROUND OUT [STAGE...]
#
# WARDROUND is a binary built with --features cuda. OUT gets three files, made again after every step: summary.txt (a line a step),
# logs.tgz (what each step printed, without logits) and table.md (for benches/LOG.md). No stage stands for all, in this order:
#
#   right      doctor, the compiled tests one by one, logits of the full models against the CPU's f32
#   bits       equal bits whatever the rows of a step, without wgmma, and without graphs
#   fast       decoding and prefill of the three models in bf16, then with --fast, then prefill without wgmma
#   panel      MED-MAD over QUESTIONS, as `run` and as `bench panel`
#   peers      the GPU's limits by PyTorch; transformers on the same checkpoints and on prompts of `panel`'s run
#   quantised  the same figures in q8_0 and q4_k
#   sweep      more batches, 4,096 tokens before the test, quantised prefill, decoding without graphs and without early launches
#   memcheck   compute-sanitizer, where it is, over a test of each kernel's file
#
# Before the first stage a tiny model is tried. Where it fails it is tried without `wgmma`, then `launch`, then `graphs` as well, and
# the rest goes on with what works; WARDROUND_CUDA_WITHOUT, if set (it may be empty), says so instead. No failure ends the rest.
#
#   WORK         models (24 GB), run and logs, kept from call to call: the tables are of all of them   [/tmp/wardround-gpu]
#   LIMIT        seconds for the whole call: steps end there, and the files of OUT are still made      [none]
#   CUDA_TESTS   compiled test programs: `cargo test --release --features cuda --no-run` prints where they are
#   QUESTIONS, FORMAT, QUESTION_LIMIT   for `panel`                               [src/data/demo.jsonl, mcq, 100]
#   PROMPTS      prompts a model for transformers' continuous batching, 0 for all                      [64]
#   MODELS, PYTHON, DEVICE, SHAPE       [$WORK/models-$SHAPE, python3, cuda, full]; DEVICE=cpu SHAPE=tiny tries out the script
set -uo pipefail
known="right bits fast panel peers quantised sweep memcheck"
(($# >= 2)) && [[ -x $1 ]] || { sed -n '2,30s/^# \{0,1\}//p' "$0" >&2; exit 2; }
wardround=$(realpath "$1") out=$(realpath -m "$2")
read -ra stages <<<"${*:3}"
((${#stages[@]})) || read -ra stages <<<"$known"
for stage in "${stages[@]}"; do
  [[ " $known " == *" $stage "* ]] || { echo "no such stage: $stage; known: $known" >&2; exit 2; }
done
here=$(cd "$(dirname "$0")" && pwd)
device=${DEVICE:-cuda} shape=${SHAPE:-full} python=${PYTHON:-python3}
work=$(realpath -m "${WORK:-/tmp/wardround-gpu}")
models=$(realpath -m "${MODELS:-$work/models-$shape}") logs=$work/logs dumps=$work/dumps
questions=$(realpath -m "${QUESTIONS:-$here/../src/data/demo.jsonl}") format=${FORMAT:-mcq}
families=(qwen3 gemma3 llama)
some_tokens=$(seq -s, 100 3 220)
many_tokens=$(for ((i = 0; i < 700; i++)); do printf '%d,' $((10 + i * 7919 % 800)); done)
mkdir -p "$out" "$models" "$logs" "$dumps"
: >"$out/summary.txt"

say() { printf '%s\n' "$*" | tee -a "$out/summary.txt"; }

keep() { # brings OUT up to date; one at a time, since tests run side by side
  {
    flock 9
    "$python" "$here/gpu_table.py" "$logs" >"$out/table.md"
    tar -czf "$out/part" -C "$work" logs # fails where a log grows meanwhile, and is whole all the same
    mv "$out/part" "$out/logs.tgz"
  } 9>"$work/lock" 2>"$logs/keep.err"
}

# step SECONDS NAME COMMAND...: runs it, keeps what it prints, says how it ended. DUMP=FILE takes stdout; SHOW=N prints its last lines.
step() {
  local seconds=$1 name=$2 started=$SECONDS target=${DUMP:-$logs/$2.out} code
  shift 2
  if [[ -n ${LIMIT:-} ]] && ((LIMIT - SECONDS < seconds)); then seconds=$((LIMIT - SECONDS)); fi
  ((seconds > 2)) || { say "$name: not begun, LIMIT is reached"; return 1; }
  timeout -k 5 "$seconds" "$@" >"$target" 2>"$logs/$name.err" </dev/null
  code=$?
  say "$(
    printf '%-44s exit %d, %d s\n' "$name" "$code" $((SECONDS - started))
    if ((code)); then
      [[ -n ${DUMP:-} ]] || tail -n 5 "$target" | cut -c1-300 | sed 's/^/    /'
      tail -n 5 "$logs/$name.err" | cut -c1-300 | sed 's/^/    /'
    elif [[ -n ${SHOW:-} ]]; then tail -n "$SHOW" "$target" | sed 's/^/    /'; fi
  )"
  keep
  return "$code"
}

logprobs() { # logprobs SECONDS NAME MODEL OPTION...: into a file of that name among the dumps
  DUMP=$dumps/$2 step "$1" "$2" "$wardround" logprobs --model "$3" "${@:4}"
}

compare() { # compare NAME REFERENCE OTHER [OPTION]
  SHOW=1 step 100 "$1" "$python" "$here/compare_logits.py" "${@:4}" "$dumps/$2" "$dumps/$3"
}

find_what_works() { # where a tiny model gives the CPU's logits, nearly, and decodes
  local without with tokens ways=("" "wgmma" "wgmma,launch" "wgmma,launch,graphs")
  tokens=$(seq -s, 10 309)
  [[ -z ${WARDROUND_CUDA_WITHOUT+set} ]] || ways=("$WARDROUND_CUDA_WITHOUT")
  [[ -d $models/smoke ]] || step 30 smoke.synth "$wardround" models synth qwen3 "$models/smoke"
  logprobs 60 smoke.cpu "$models/smoke" --tokens "$tokens" --full --dtype f32
  for without in "${ways[@]}"; do
    export WARDROUND_CUDA_WITHOUT=$without
    with=${without:+.without-$without}
    logprobs 60 "smoke.gpu$with" "$models/smoke" --tokens "$tokens" --full --device "$device" --rows 300 &&
      compare "smoke.compare$with" smoke.cpu "smoke.gpu$with" &&
      step 60 "smoke.generate$with" "$wardround" generate --model "$models/smoke" --tokens 5,6,7 --max-tokens 40 --device "$device" &&
      { say "a tiny model works, with WARDROUND_CUDA_WITHOUT='$without'"; return; }
  done
  say "A TINY MODEL FAILS; the rest is tried with WARDROUND_CUDA_WITHOUT='$without'"
}

make_models() { # in the background: tests need none
  local family
  for family in "${families[@]}"; do
    [[ -d $models/$family ]] || {
      rm -rf "$models/$family.part"
      step 300 "synth.$family" "$wardround" models synth "$family" "$models/$family.part" --shape "$shape" --seed 1 &&
        mv "$models/$family.part" "$models/$family"
    } &
  done
}

list_tests() { "$@" --list --format terse 2>/dev/null | sed -n 's/: test$//p'; }

right() {
  local program name family filter
  SHOW=20 step 60 doctor "$wardround" doctor --offline
  # Each test in a process of its own, since a kernel's fault ends all that comes after it there; some at a time.
  for program in ${CUDA_TESTS:-}; do
    [[ $(basename "$program") == cuda-* ]] && filter=() || filter=(ops::cuda::) # of the library's own tests, those of the backend
    for name in $(list_tests "$program" "${filter[@]}"); do
      while (($(jobs -rp | wc -l) >= 6)); do wait -n; done
      step 90 "test.$name" "$program" --exact "$name" --include-ignored --test-threads=1 --nocapture &
    done
  done
  wait
  for family in "${families[@]}"; do
    logprobs 150 "logits.gpu.$family" "$models/$family" --tokens "$some_tokens" --full --device "$device"
    logprobs 200 "logits.cpu.$family" "$models/$family" --tokens "$some_tokens" --full --dtype f32
    compare "logits.compare.$family" "logits.cpu.$family" "logits.gpu.$family"
  done
}

same_bits() { # same_bits QUANT FAMILY ROWS...: against steps of 1024 rows
  local name=bits.$1.$2 flags=(--tokens "${many_tokens%,}" --quant "$1" --device "$device") rows
  logprobs 120 "$name.1024" "$models/$2" --rows 1024 "${flags[@]}" || return
  for rows in "${@:3}"; do
    logprobs 120 "$name.$rows" "$models/$2" --rows "$rows" "${flags[@]}" && compare "$name.compare.$rows" "$name.1024" "$name.$rows" --same
  done
  WARDROUND_CUDA_WITHOUT=wgmma,$WARDROUND_CUDA_WITHOUT logprobs 120 "$name.without-wgmma" "$models/$2" --rows 1024 "${flags[@]}" &&
    compare "$name.compare.without-wgmma" "$name.1024" "$name.without-wgmma" --same
}

bits() {
  local family quant
  local decode=(generate --model "$models/qwen3" --tokens "$some_tokens" --max-tokens 400 --temperature 1 --json --device "$device")
  for family in "${families[@]}"; do same_bits none "$family" 64 16 1; done
  step 120 bits.decode "$wardround" "${decode[@]}" &&
    WARDROUND_CUDA_WITHOUT=graphs,launch,$WARDROUND_CUDA_WITHOUT step 120 bits.decode.without-graphs "$wardround" "${decode[@]}" &&
    step 5 bits.decode.compare cmp "$logs/bits.decode.out" "$logs/bits.decode.without-graphs.out"
  for family in "${families[@]}"; do
    for quant in q8_0 q4_k; do same_bits "$quant" "$family" 64 16; done
  done
}

bench() { # bench HOW WHAT FAMILY OPTION...
  step 150 "bench.$1.$2.$3" "$wardround" bench --model "$models/$3" --device "$device" --offline --format json -r 2 "${@:4}"
}

fast() {
  local family decode=(-p 0 -n 128 --batch) prefill=(-n 0 -p 4096)
  for family in "${families[@]}"; do bench bf16 decode "$family" "${decode[@]}" 1,8,64; done
  for family in "${families[@]}"; do bench bf16 prefill "$family" "${prefill[@]}"; done
  # What the same bytes in any company cost.
  for family in "${families[@]}"; do
    bench fast prefill "$family" --fast "${prefill[@]}"
    bench fast decode "$family" --fast "${decode[@]}" 1,64
  done
  WARDROUND_CUDA_WITHOUT=wgmma,$WARDROUND_CUDA_WITHOUT bench without-wgmma prefill qwen3 "${prefill[@]}"
}

panel() {
  local flags=(--data "$questions" --limit "${QUESTION_LIMIT:-100}" --panel "$models/gemma3,$models/llama,$models/qwen3"
    --device "$device" --free --set max_tokens=128 --max-batch 64 --offline --quiet)
  rm -rf "$work/run"
  SHOW=9 step 240 panel-run "$wardround" run medmad --format "$format" "${flags[@]}" --out "$work/run"
  step 240 panel-bench "$wardround" bench panel --data-format "$format" "${flags[@]}" --ignore-eos --format json
}

peers() {
  local family calls=() peer=("$python" "$here/peers_gpu.py" --device "$device" --out)
  [[ ! -f $work/run/calls.jsonl ]] || calls=(--calls "$work/run/calls.jsonl" --prompts "${PROMPTS:-64}")
  step 100 peers-limits "${peer[@]}" "$logs/peers-limits.json"
  for family in "${families[@]}"; do
    step 200 "peers.$family" "${peer[@]}" "$logs/peers.$family.json" --checkpoint "$models/$family" "${calls[@]}"
  done
}

quantised() {
  local family quant
  for quant in q8_0 q4_k; do
    for family in "${families[@]}"; do bench "$quant" both "$family" --quant "$quant" -p 512 -n 128 --batch 1,8,64; done
  done
}

sweep() {
  local family part
  for part in graphs launch; do
    WARDROUND_CUDA_WITHOUT=$part,$WARDROUND_CUDA_WITHOUT bench "without-$part" decode qwen3 -p 0 -n 128 --batch 1,64
  done
  for family in "${families[@]}"; do
    bench bf16 sweep "$family" -p 512 -n 128 --batch 1,2,4,8,16,32,64
    bench bf16 deep "$family" -p 512 -n 128 --depth 4096 --batch 1,8,64
    bench q8_0 prefill "$family" --quant q8_0 -n 0 -p 4096
    bench q4_k prefill "$family" --quant q4_k -n 0 -p 4096
  done
}

memcheck() {
  local program name
  command -v compute-sanitizer >/dev/null || { say "there is no compute-sanitizer"; return; }
  for program in ${CUDA_TESTS:-}; do
    for name in $(list_tests "$program" ops::cuda::tests:: | sort -t: -k7,7 -su); do # of each file the first
      step 120 "memcheck.$name" compute-sanitizer --error-exitcode 9 "$program" --exact "$name" --include-ignored --test-threads=1
    done
  done
}

find_what_works
make_models
for stage in "${stages[@]}"; do
  [[ $stage == right ]] || wait # for the models
  say "== $stage"
  "$stage"
done
keep
cat "$out/table.md"
failures=$(grep -c -E '^[^ ].*( exit [1-9]|: not begun)' "$out/summary.txt")
say "$failures steps failed, $SECONDS s"
((failures == 0))
