#!/usr/bin/env bash
# Fifteen minutes with a Hopper GPU: does it work, how fast is it, what do its kernels wait for. Two calls of less than ten minutes each.
#
#   benches/gpu_pack.sh carry                            # on any machine: what travels, below 64 MiB
#   benches/gpu.sh carry/bin.tar.xz OUT                  # 540 s: every step in order, as far as time allows
#   benches/gpu.sh carry/bin.tar.xz OUT panel counters   # whether it works, then these steps: those that the first call asks for
#
# Steps: products, prompts, decode, panel, weights, counters, peers, checks, families. OUT gets summary.txt (a line for what failed and what was found)
# and logs.tgz. Every command has a time limit, and what it printed and how it ended are kept. DEVICE=cpu SHAPE=tiny QUESTIONS=2 tries the
# script itself where there is no GPU. WORK holds models and logs [/dev/shm/wr or /tmp/wr].
set -uo pipefail
steps=(products prompts decode panel weights counters peers checks families)
(($# >= 2)) && [[ -f $1 ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
packed=$(realpath "$1") out=$(realpath -m "$2") device=${DEVICE:-cuda} shape=${SHAPE:-full} work=${WORK:-} SECONDS=0; shift 2
for step in "$@"; do [[ " ${steps[*]} " == *" $step "* ]] || { echo "no such step: $step; known: ${steps[*]}" >&2; exit 2; }; done
(($# > 0)) && steps=("$@")
if [[ -z $work ]]; then # 26 GB of models, and memory may be small
  free=$(df -Pk /dev/shm 2>/dev/null | awk 'NR==2{print $4}')
  ((${free:-0} > 30000000)) && work=/dev/shm/wr || work=/tmp/wr
fi
log=$work/logs bin=$work/bin w=$work/bin/wardround
mkdir -p "$out" "$log" "$bin"; : >"$out/summary.txt"
tar -C "$bin" -xJf "$packed" || exit 2
say() { printf '%4d s  %s\n' "$SECONDS" "$*" | tee -a "$out/summary.txt"; }
made() { wait "${makers[@]}" 2>/dev/null; } # all models are there
left() { ((SECONDS + $1 < ${UNTIL:-540})) || { say "no time for $2"; return 1; }; } # left SECONDS WHAT: whether it fits
why() { local found; found=$(cat "$@" | grep -A1 -m1 'panicked at' | tr '\n' ' '); echo "${found:-$(tail -qn 1 "$@" | tr '\n' ' ')}" | cut -c1-300; }
run() { # run SECONDS NAME COMMAND...: its output to a log, how it ended to a file of its own
  local s=$1 n=$2 t=$SECONDS c; shift 2
  timeout -k 2 "$s" "$@" >"$log/$n.out" 2>"$log/$n.err" </dev/null; c=$?
  echo "$c $((SECONDS - t))" >"$log/$n.code"
  ((c == 0)) || say "$n: exit $c after $((SECONDS - t)) s: $(why "$log/$n.err" "$log/$n.out")"
  return $c
}
keep() { tar -C "$work" -czf "$out/part" logs 2>/dev/null; mv -f "$out/part" "$out/logs.tgz"; }
trap 'keep; exit 143' TERM INT
machine() {
  { nvidia-smi -L; nvidia-smi --query-gpu=driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.draw --format=csv,noheader
    nproc; df -Ph /dev/shm /tmp | tail -n 2; command -v ncu compute-sanitizer; } >"$log/machine.out" 2>&1
  ldconfig -p | grep -q libcuda.so.1 || export LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/local/nvidia/lib:${LD_LIBRARY_PATH:-}
  sed 's/^/      /' "$log/machine.out"
}
families=(qwen3 gemma3 llama)
tiny() { local f; for f in "${families[@]}"; do [[ -d $work/tiny-$f ]] || run 20 "tiny.$f" "$w" models synth "$f" "$work/tiny-$f" & done; wait; }
model() { [[ -d $work/$1 ]] || { run 150 "synth.$1" "$w" models synth "$1" "$work/$1.part" --shape "$shape" --seed 1 && mv "$work/$1.part" "$work/$1"; }; }
sum_of() { # sum_of WITHOUT: one hash of a greedy and a drawn text of each tiny family, and of 300 rows at once against 7 at a time
  local f t n=texts.${1:-whole}; local -x WARDROUND_CUDA_WITHOUT=$1
  for f in "${families[@]}"; do
    for t in 0 1; do run 40 "$n.$f.$t" "$w" generate --model "$work/tiny-$f" --tokens 5,6,7,8,9 --max-tokens 40 --json --device "$device" --temperature $t --top-p 0.9 || return 1; done
    for t in 300 7; do run 40 "$n.$f.$t" "$w" generate --logits --model "$work/tiny-$f" --tokens "$(seq -s, 10 309)" --device "$device" --rows $t || return 1; done
    cmp -s "$log/$n.$f.300.out" "$log/$n.$f.7.out" || { say "$n: $f's bits depend on the rows of a step"; return 1; }
  done
  cat "$log/$n".*.out | sha256sum | cut -c1-16 >"$log/$n.sum"
}
gate() { # of what wgmma is for, what says nothing or anything else than without it is left out
  local part jobs=()
  rm -f "$log"/texts.*.sum
  sum_of wgmma & jobs+=($!); sum_of "" & jobs+=($!); wait "${jobs[@]}"
  [[ -s $log/texts.wgmma.sum ]] || { say "NOTHING WORKS even without wgmma"; return 1; }
  export WARDROUND_CUDA_WITHOUT=
  if ! cmp -s "$log/texts.wgmma.sum" "$log/texts.whole.sum"; then
    jobs=(); for part in units waves attention units,waves,attention; do sum_of $part & jobs+=($!); done; wait "${jobs[@]}"
    for part in units waves attention units,waves,attention; do cmp -s "$log/texts.wgmma.sum" "$log/texts.$part.sum" && { WARDROUND_CUDA_WITHOUT=$part; break; }; done
  fi
  echo -n "$WARDROUND_CUDA_WITHOUT" >"$work/without"; say "leave out: ${WARDROUND_CUDA_WITHOUT:-nothing}"
}
tests() { # each in a process of its own, for a fault ends all that comes after it; a failed one once more, each launch by itself
  local p n jobs=()
  for p in lib-tests cuda-tests; do [[ -x $bin/$p ]] || continue
    while read -r n; do
      while (($(jobs -rp | wc -l) >= ${JOBS:-12})); do wait -n; done
      (run 80 "test.$n" "$bin/$p" --exact "$n" --include-ignored --test-threads=1 --nocapture ||
        WARDROUND_CUDA_CHECK=1 run 80 "checked.$n" "$bin/$p" --exact "$n" --include-ignored --test-threads=1 --nocapture) & jobs+=($!)
    done < <("$bin/$p" --list --format terse 2>/dev/null | sed -n 's/: test$//p' | grep -E "${TESTS:-^cuda::|^[a-z_]+$}" | grep -v cuda::tests::speed)
  done
  wait "${jobs[@]}"; say "tests: $(cat "$log"/test.*.code 2>/dev/null | grep -c '^0 ') passed of $(ls "$log"/test.*.code 2>/dev/null | wc -l)"
}
bench() { run "$1" "bench.$2" "$w" bench --model "$work/$3" --device "$device" --offline --format json -r 2 "${@:4}"; }
table() { python3 - "$log" <<'P'
import glob, json, sys
for path in sorted(glob.glob(sys.argv[1] + "/bench.*.out")):
    try: report = json.load(open(path))
    except ValueError: continue
    print("     ", path.split("bench.")[1][:-4], f"{report['environment']['bytes_per_second'] / 1e9:,.0f} GB/s")
    for r in report["results"]:
        print(f"        {r['test']:16} batch {r['batch']:3} depth {r['depth']:5} {r['tokens_per_second']:10,.1f} tok/s {100 * r['share_of_bandwidth']:5.1f} %")
P
}
products() { # each shape of Qwen3-4B's by each kernel that takes it
  [[ $device == cuda ]] && left 25 products && run 40 products "$bin/lib-tests" cuda::tests::speed --ignored --nocapture --test-threads=1
  grep ' us' "$log/products.out" 2>/dev/null
}
prompts() {
  left 20 prompts && bench 40 prompts qwen3 -p 64,128,256,512,1024,2048,4096 -n 0
}
decode() {
  left 30 decode && bench 60 decode qwen3 -p 0 -n 128 --batch 1,8,16,32,64,96,128 --depth 0,1024
  left 10 mixed && bench 30 mixed qwen3 -p 512 -n 0 --mixed --batch 64
}
questions=(--data src/data/demo.jsonl --format mcq)
[[ -f $bin/questions.jsonl ]] && questions=(--data "$bin/questions.jsonl" --format medqa)
debate() { # debate NAME QUESTIONS ROWS OPTION...; what random weights say cannot be read, which a run says by its exit code 1
  run 90 "panel.$1" sh -c '"$@" || [ $? -eq 1 ]' - "$w" run medmad "${questions[@]}" --limit "$2" --max-batch "$3" --panel "$work/gemma3,$work/llama,$work/qwen3" --decoding text \
    --set max_tokens=128 --device "$device" --offline --out "$work/panel.$1" "${@:4}"
  grep -h '^speed: ' "$log/panel.$1.err" | sed "s/^speed:/      $1:/"
}
panel() { # on MedQA, where gpu_pack.sh found it
  local rows; made
  for rows in ${PANEL_ROWS:-8 64 128}; do left 40 "a panel of $rows rows" && debate "$rows" "${QUESTIONS:-$((rows > 8 ? 128 : 32))}" "$rows"; done
}
weights() {
  local q; for q in q8_0 q4_k; do left 15 "$q" && bench 40 $q qwen3 --quant $q -p 512 -n 128 --batch 1,8,64; done
  made; left 30 "a panel of q8_0" && debate 64.q8_0 "${QUESTIONS:-128}" 64 --quant q8_0
}
counters() { # kernels of a step, each with its time, bytes and shares; what runs before it, the launches of a warm-up, is not counted
  command -v ncu >/dev/null || { say "no ncu"; return; }
  local n; for n in "wave.64 2500 -p 0 -n 24 --batch 64" "wave.128 2500 -p 0 -n 24 --batch 128" "prompt.512 300 -p 512 -n 0" "prompt.2048 300 -p 2048 -n 0"; do
    read -ra n <<<"$n"; left 15 "counters ${n[0]}" && run 50 "ncu.${n[0]}" ncu --csv --clock-control none --cache-control none --graph-profiling node --launch-skip "${n[1]}" --launch-count 60 \
      --metrics gpu__time_duration.sum,dram__bytes.sum,lts__t_bytes.sum,sm__throughput.avg.pct_of_peak_sustained_elapsed,launch__grid_size,launch__registers_per_thread \
      "$w" bench --model "$work/qwen3" --device "$device" --offline -r 1 "${n[@]:2}"
  done
}
peers() { # what cuBLAS makes of the same products, and sdpa of the same prompts
  python3 -c 'import torch, transformers' 2>/dev/null || { say "no torch and transformers"; return; }
  left 25 peers && run 60 peers python3 benches/peers_gpu.py --device "$device" --out "$log/peers.json"
}
checks() {
  local t n tool jobs=(); command -v compute-sanitizer >/dev/null || { say "no compute-sanitizer"; return; }
  left 60 checks && for t in norm::the_rows_that_give_logits_are_gathered rotary::heads_are_turned_as_on_the_cpu_and_lie_where_attention_looks \
    text::embeddings_norms_biases_and_gelu_are_the_cpus attention::decoding_has_the_bits_of_prefill matmul::wgmma_has_the_bits_of_mma_sync \
    wave::waves_of_few_rows_of_bf16_have_the_bits_of_small_products; do
    for tool in memcheck racecheck; do
      run 55 "$tool.$t" compute-sanitizer --tool $tool --error-exitcode 9 "$bin/lib-tests" --exact "cuda::tests::$t" --include-ignored --test-threads=1 & jobs+=($!)
    done
  done
  wait "${jobs[@]}"; for n in memcheck racecheck; do say "$n: $(cat "$log/$n".*.code 2>/dev/null | grep -c '^0 ') clean"; done
}
families() {
  local f; made; for f in gemma3 llama; do left 20 $f && bench 40 "$f.prompts" $f -p 512,4096 -n 0 && bench 40 "$f.decode" $f -p 0 -n 128 --batch 1,8,64; done
}
machine; tiny
makers=(); for f in "${families[@]}"; do model "$f" & makers+=($!); done
run 30 doctor "$w" doctor --offline || WARDROUND_CUDA_WITHOUT=wgmma run 20 doctor.without-wgmma "$w" doctor --offline; grep -h -i cuda "$log"/doctor*.out
gate; tests; keep; wait "${makers[0]}" 2>/dev/null
for step in "${steps[@]}"; do $step; keep; done
wait; keep; table
failed=$(cat "$log"/*.code | grep -vc '^0 ')
say "$failed commands failed; leave out: $(cat "$work/without" 2>/dev/null || echo unknown)"
[[ $failed == 0 && -e $work/without ]] # what failed, or was never found out, is no success
