#!/usr/bin/env bash
# Half an hour with a GPU: does it work, what has to be left out, how fast is it, beside transformers. Five stages, each a call of less
# than ten minutes; what one needs of another is a condition, not a decision.
#
#   benches/gpu.sh WARDROUND OUT [STAGE...]
#
#   gate    420 s   doctor; one greedy and one drawn text of a tiny model with each part left out in turn: what makes a difference is left
#                   out from here on; all compiled tests, six at a time, a minute each; `bench` of the first model
#   speed   590 s   of each model one process of `bench` (pp 512 and 4096, tg at 1, 8, 16, 32, 64, after 0 and 4096); of the first also
#                   with each part left out, with --fast; counters of ncu, where it is
#   panel   400 s   `bench panel` and transformers on the same checkpoints, wall against wall, where torch is
#   rest    250 s   logits of the full models against the CPU, equal bits whatever the rows, q8_0 and q4_k, memcheck where it is
#   search  130 s   `bench embed` of texts, of queries and of a reranker's pairs; a corpus, and `medreflex` over it on notes: notes a minute,
#                   prompt tokens from the prefix index
#
# WARDROUND is a binary built with --features cuda. OUT gets, made again after every step: verdict.txt (a page: works or not, what to leave
# out, shares of the limits, what to mend first), summary.txt (a line a step), table.md (for benches/LOG.md) and logs.tgz. A stage ends at
# its seconds, and where it is told to stop, with all of these. Nothing is tried that the gate says cannot work: exit 3.
#
#   WORK         models, logs and what the gate found, kept from call to call     [/dev/shm/wardround-gpu]
#   CUDA_TESTS   compiled test programs: `cargo test --release --features cuda --no-run --lib --test cuda` prints where they are
#   QUESTIONS, FORMAT, QUESTION_LIMIT   for `panel`                               [src/data/demo.jsonl, mcq, 100]
#   PROMPTS      prompts a model for transformers' continuous batching            [64]
#   WARDROUND_CUDA_WITHOUT   what to leave out, whatever the gate says
#   PYTHON, DEVICE, SHAPE    [python3, cuda, full]; DEVICE=cpu SHAPE=tiny tries out the script
set -uo pipefail
known="gate speed panel rest search"
declare -A seconds_of=([gate]=420 [speed]=590 [panel]=400 [rest]=250 [search]=130)
(($# >= 2)) && [[ -x $1 ]] || { sed -n '2,31s/^# \{0,1\}//p' "$0" >&2; exit 2; }
wardround=$(realpath "$1") out=$(realpath -m "$2")
read -ra stages <<<"${*:3}"
((${#stages[@]})) || read -ra stages <<<"$known"
for stage in "${stages[@]}"; do
  [[ " $known " == *" $stage "* ]] || { echo "no such stage: $stage; known: $known" >&2; exit 2; }
done
here=$(cd "$(dirname "$0")" && pwd)
device=${DEVICE:-cuda} shape=${SHAPE:-full} python=${PYTHON:-python3}
work=$(realpath -m "${WORK:-/dev/shm/wardround-gpu}")
models=$work/models-$shape logs=$work/logs dumps=$work/dumps
questions=$(realpath -m "${QUESTIONS:-$here/../src/data/demo.jsonl}") format=${FORMAT:-mcq}
families=(qwen3 gemma3 llama)
given=${WARDROUND_CUDA_WITHOUT+set}
mkdir -p "$out" "$models" "$logs" "$dumps"
: >"$out/summary.txt"

say() { printf '%s\n' "$*" | tee -a "$out/summary.txt" "$work/summary.txt"; }

keep() { # brings OUT up to date; one at a time, since steps run side by side
  {
    flock 9
    "$python" "$here/gpu_table.py" "$logs" >"$out/table.md"
    "$python" "$here/gpu_verdict.py" "$work" >"$out/verdict.txt"
    tar -czf "$out/part" -C "$work" logs summary.txt # fails where a log grows meanwhile, and is whole all the same
    mv "$out/part" "$out/logs.tgz"
  } 9>"$work/lock" 2>"$work/keep.err"
}

stop() {
  trap '' TERM INT
  say "== stopped in ${stage:-the beginning}"
  pkill -TERM -P $$ 2>/dev/null # the steps under way, this script's own children
  rm -f "$work/lock" # what was stopped may hold it
  wait
  keep
  exit 143
}
trap stop TERM INT

# step SECONDS NAME COMMAND...: runs it, keeps what it prints, says how it ended. DUMP=FILE takes stdout; SHOW=N prints its last lines. It
# ends with its stage.
step() {
  local seconds=$1 name=$2 started=$SECONDS target=${DUMP:-$logs/$2.out} code
  shift 2
  ((stage_end - SECONDS >= seconds)) || seconds=$((stage_end - SECONDS))
  ((seconds > 2)) || { say "$name: not begun, its stage has no time left"; return 1; }
  timeout -k 5 "$seconds" "$@" >"$target" 2>"$logs/$name.err" </dev/null &
  wait $!
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
  SHOW=1 step 60 "$1" "$python" "$here/compare_logits.py" "${@:4}" "$dumps/$2" "$dumps/$3"
}

make_models() { # in the background: the gate's tests need none
  local family
  for family in "${families[@]}"; do
    [[ -d $models/$family ]] || {
      rm -rf "$models/$family.part"
      step 300 "synth.$family" "$wardround" models synth "$family" "$models/$family.part" --shape "$shape" --seed 1 &&
        mv "$models/$family.part" "$models/$family"
    } &
    makers+=($!)
  done
}

texts() { # texts WAY: the sum of a greedy and a drawn text of the tiny model with a part left out; nothing where one fails
  local way=$1 name=gate.texts.${1:-whole} texts=(generate --model "$work/smoke" --tokens 5,6,7 --max-tokens 60 --json --device "$device")
  WARDROUND_CUDA_WITHOUT=$way step 40 "$name.greedy" "$wardround" "${texts[@]}" --temperature 0 &&
    WARDROUND_CUDA_WITHOUT=$way step 40 "$name.drawn" "$wardround" "${texts[@]}" --temperature 1 --top-p 0.9 &&
    sum=$(cat "$logs/$name.greedy.out" "$logs/$name.drawn.out" | sha256sum)
}

find_what_works() { # leaves in $work/without what to leave out, or in $work/fails that nothing works
  local way plain sum=""
  rm -f "$work/without" "$work/fails"
  [[ -d $work/smoke ]] || step 30 gate.synth "$wardround" models synth qwen3 "$work/smoke"
  logprobs 60 gate.cpu "$work/smoke" --tokens "$(seq -s, 10 309)" --full --dtype f32
  texts wgmma,norms,rotary,launch,graphs || { say "NOTHING WORKS"; touch "$work/fails"; return 1; }
  plain=$sum
  for way in "" wgmma norms rotary norms,rotary wgmma,norms,rotary wgmma,norms,rotary,launch wgmma,norms,rotary,launch,graphs; do
    sum=""
    texts "$way"
    [[ $sum == "$plain" ]] || { say "with WARDROUND_CUDA_WITHOUT='$way' texts differ or fail"; continue; }
    WARDROUND_CUDA_WITHOUT=$way logprobs 60 "gate.gpu.${way:-whole}" "$work/smoke" --tokens "$(seq -s, 10 309)" --full --device "$device" --rows 300 &&
      compare "gate.compare.${way:-whole}" gate.cpu "gate.gpu.${way:-whole}" && {
      printf '%s' "$way" >"$work/without"
      say "works with WARDROUND_CUDA_WITHOUT='$way'"
      return 0
    }
  done
  say "NOTHING WORKS"
  touch "$work/fails"
  return 1
}

list_tests() { "$@" --list --format terse 2>/dev/null | sed -n 's/: test$//p'; }

bench() { # bench SECONDS HOW WHAT FAMILY OPTION...
  step "$1" "bench.$2.$3.$4" "$wardround" bench --model "$models/$4" --device "$device" --offline --format json -r 2 "${@:5}"
}

gate() {
  local program name filter running=()
  SHOW=20 step 60 doctor "$wardround" doctor --offline || { say "NOTHING WORKS"; touch "$work/fails"; return 1; }
  find_what_works || return 1
  leave_out
  make_models
  # Each test in a process of its own, since a kernel's fault ends all that comes after it there.
  for program in ${CUDA_TESTS:-}; do
    [[ $(basename "$program") == cuda-* ]] && filter=() || filter=(ops::cuda::) # of the library's own tests, those of the backend
    for name in $(list_tests "$program" "${filter[@]}"); do
      while (($(jobs -rp | wc -l) >= 6 + ${#makers[@]})); do wait -n; done
      step 60 "test.$name" "$program" --exact "$name" --include-ignored --test-threads=1 --nocapture &
      running+=($!)
    done
  done
  ((${#running[@]} == 0)) || wait "${running[@]}"
  wait "${makers[@]}"
  bench 150 bf16 first qwen3 -p 512 -n 64 --batch 1,64 || { touch "$work/fails"; return 1; }
}

profile() { # profile NAME OPTION...: a step's kernels by counters; a graph would be one launch
  WARDROUND_CUDA_WITHOUT=graphs,$WARDROUND_CUDA_WITHOUT step 60 "ncu.$1" ncu --csv --launch-skip 700 --launch-count 340 \
    --metrics gpu__time_duration.sum,dram__bytes.sum,lts__t_bytes.sum,sm__throughput.avg.pct_of_peak_sustained_elapsed \
    "$wardround" bench --model "$models/qwen3" --device "$device" --offline -r 1 "${@:2}"
}

speed() {
  local family part grid=(-p 512,4096 -n 128 --sample --batch 1,8,16,32,64 --depth 0,4096)
  [[ $shape == full ]] || grid=(-p 64,256 -n 16 --sample --batch 1,8,64 --depth 0,256)
  for family in "${families[@]}"; do bench 150 bf16 grid "$family" "${grid[@]}"; done
  for part in norms rotary graphs launch wgmma; do
    WARDROUND_CUDA_WITHOUT=$part,$WARDROUND_CUDA_WITHOUT bench 60 "without-$part" short qwen3 -p 4096 -n 128 --batch 1
  done
  [[ $device == cpu ]] || bench 60 fast short qwen3 --fast -p 4096 -n 128 --batch 1
  command -v ncu >/dev/null || { say "there is no ncu"; return; }
  profile decode-1 -p 0 -n 8
  profile decode-64 -p 0 -n 8 --batch 64
  profile prefill -p 2048 -n 0
}

panel() {
  local family calls=() peer=("$python" "$here/peers_gpu.py" --device "$device" --out)
  local flags=(--data "$questions" --limit "${QUESTION_LIMIT:-100}" --panel "$models/gemma3,$models/llama,$models/qwen3"
    --device "$device" --free --set max_tokens=128 --max-batch 64 --offline --quiet)
  step 150 panel-bench "$wardround" bench panel --data-format "$format" "${flags[@]}" --ignore-eos --format json
  "$python" -c 'import torch, transformers' 2>/dev/null || { say "there is no torch, so no peer"; return; }
  rm -rf "$work/run"
  step 100 panel-run "$wardround" run medmad --format "$format" "${flags[@]}" --out "$work/run"
  [[ ! -f $work/run/calls.jsonl ]] || calls=(--calls "$work/run/calls.jsonl" --prompts "${PROMPTS:-64}")
  step 60 peers-limits "${peer[@]}" "$logs/peers-limits.json"
  for family in "${families[@]}"; do
    step 120 "peers.$family" "${peer[@]}" "$logs/peers.$family.json" --checkpoint "$models/$family" "${calls[@]}"
  done
}

same_bits() { # same_bits FAMILY ROWS...: against steps of 1024 rows
  local tokens rows name=bits.$1
  tokens=$(for ((i = 0; i < 700; i++)); do printf '%d,' $((10 + i * 7919 % 800)); done)
  logprobs 60 "$name.1024" "$models/$1" --tokens "${tokens%,}" --device "$device" --rows 1024 || return
  for rows in "${@:2}"; do
    logprobs 60 "$name.$rows" "$models/$1" --tokens "${tokens%,}" --device "$device" --rows "$rows" &&
      compare "$name.compare.$rows" "$name.1024" "$name.$rows" --same
  done
}

rest() {
  local family quant program name tokens
  tokens=$(seq -s, 100 3 220)
  for family in "${families[@]}"; do
    logprobs 60 "logits.gpu.$family" "$models/$family" --tokens "$tokens" --full --device "$device" &&
      logprobs 90 "logits.cpu.$family" "$models/$family" --tokens "$tokens" --full --dtype f32 &&
      compare "logits.compare.$family" "logits.cpu.$family" "logits.gpu.$family"
  done
  same_bits qwen3 100 16 1
  for quant in q8_0 q4_k; do bench 60 "$quant" short qwen3 --quant "$quant" -p 512 -n 128 --batch 1,8,64; done
  command -v compute-sanitizer >/dev/null || { say "there is no compute-sanitizer"; return; }
  for program in ${CUDA_TESTS:-}; do
    for name in $(list_tests "$program" ops::cuda::tests:: | sort -t: -k7,7 -su); do # of each file the first
      step 60 "memcheck.$name" compute-sanitizer --error-exitcode 9 "$program" --exact "$name" --include-ignored --test-threads=1
    done
  done
}

library() { # in $work: a corpus of the demo's passages, a reranker and so many notes
  local source="$here/../src/cli/demo" goldens="$here/../tests/goldens" index
  rm -rf "$work/corpus" "$work/medreflex" "$work/reranker"
  cp -r "$goldens/retrieval/tiny-cross" "$work/reranker"
  printf 'output = "one-logit"\nquery_tokens = 300\ndocument_tokens = 300\n' >"$work/reranker/encoder.toml"
  cp "$source/passages.jsonl" "$work/passages.jsonl"
  printf 'name = "demo"\n[[source]]\nlabel = "demo"\nformat = "jsonl"\npath = "passages.jsonl"\nlicence = "own"\n' >"$work/demo.toml"
  for ((index = 0; index < $1; index++)); do
    sed "s/\"id\": \"/&$index-/; s/\"text\": \"/&Ward $index. /" "$source/notes.jsonl" | sed -n "$((index % 3 + 1))p"
  done >"$work/notes.jsonl"
  step 20 search.corpus "$wardround" corpus build "$work/demo.toml" --encoder "$goldens/encoders/tiny-mean" --out "$work/corpus" --device "$device" --quiet
}

embed() { # embed NAME TEXTS OPTION...
  SHOW=9 step 30 "embed.$1" "$wardround" bench embed --device "$device" --quiet -r 2 --texts "$2" "${@:3}"
}

search() {
  local many=256 notes=50 run=$work/medreflex
  [[ $shape == full ]] || many=2 notes=3
  embed f32 "$many" --dtype f32 --tokens 64,200,512
  embed bf16 "$many" --dtype bf16 --tokens 64,200,512
  embed query 1 --dtype f32 --tokens 24,64
  embed rerank "$((many < 50 ? many : 50))" --dtype bf16 --tokens 300
  library "$notes" || return
  step 100 search.medreflex "$wardround" run medreflex --data "$work/notes.jsonl" --format notes --panel "$models/qwen3" --corpus "$work/corpus" \
    --reranker "$work/reranker" --set rerank_top_k=5 --set record_chars=64 --set reflexion_turns=2 --device "$device" --offline --quiet --out "$run" || return
  SHOW=1 step 10 search.figures "$python" -c '
import json, sys
results = json.load(open(sys.argv[1] + "/results.json"))
tokens, items = results["tokens"], results["n_items"]
print(f"{60000 * items / results[\"elapsed_ms\"]:.1f} notes a minute, {100 * tokens[\"cached\"] / tokens[\"prompt\"]:.1f} % of prompt tokens cached, {results[\"n_errors\"]} errors")' "$run"
}

leave_out() { # what the gate found, unless the caller says
  [[ -n $given ]] || WARDROUND_CUDA_WITHOUT=$(cat "$work/without" 2>/dev/null)
  export WARDROUND_CUDA_WITHOUT
}

makers=()
for stage in "${stages[@]}"; do
  stage_end=$((SECONDS + seconds_of[$stage]))
  say "== $stage"
  if [[ $stage != gate ]]; then
    [[ ! -e $work/fails || -n $given ]] || { say "the gate found nothing that works"; keep; cat "$out/verdict.txt"; exit 3; }
    leave_out
    make_models
    wait "${makers[@]}"
    makers=()
  fi
  "$stage"
done
wait
keep
cat "$out/table.md" "$out/verdict.txt"
failures=$(grep -c -E '^[^ ].*( exit [1-9]|: not begun|NOTHING WORKS)' "$out/summary.txt")
say "$failures steps failed, $SECONDS s"
((failures == 0)) || exit 1
