#!/usr/bin/env bash
# Fifteen minutes with a Hopper GPU: does it work, what has to be left out, how fast is it. Two calls of less than ten minutes each.
#
#   benches/gpu_pack.sh carry                 # on any machine: what travels, below 64 MiB
#   benches/gpu.sh carry/bin.tar.xz OUT first   # 300 s: a probe, parts one by one, every test, Qwen3-4B's speed, a profile
#   benches/gpu.sh carry/bin.tar.xz OUT second  # 400 s: the same gate on a fresh machine, three families, a panel, a peer, other weights
#
# OUT gets summary.txt (a line for what failed and what was found) and logs.tgz. Every step has a time limit, and what it printed and how
# it ended are kept. DEVICE=cpu SHAPE=tiny tries the script itself where there is no GPU. WORK holds models and logs [/dev/shm/wr or /tmp/wr].
set -uo pipefail
(($# == 3)) && [[ -f $1 ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
packed=$(realpath "$1") out=$(realpath -m "$2") call=$3 device=${DEVICE:-cuda} shape=${SHAPE:-full} work=${WORK:-} SECONDS=0
if [[ -z $work ]]; then # 26 GB of models, and memory may be small
  free=$(df -Pk /dev/shm 2>/dev/null | awk 'NR==2{print $4}')
  ((${free:-0} > 30000000)) && work=/dev/shm/wr || work=/tmp/wr
fi
log=$work/logs bin=$work/bin w=$work/bin/wardround
mkdir -p "$out" "$log" "$bin"; : >"$out/summary.txt"
tar -C "$bin" -xJf "$packed" || exit 2
say() { printf '%4d s  %s\n' "$SECONDS" "$*" | tee -a "$out/summary.txt"; }
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
    nproc; df -Ph /dev/shm /tmp | tail -n 2; command -v nvcc ncu compute-sanitizer; } >"$log/machine.out" 2>&1
  ldconfig -p | grep -q libcuda.so.1 || export LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/local/nvidia/lib:${LD_LIBRARY_PATH:-}
  sed 's/^/      /' "$log/machine.out"
}
families=(qwen3 gemma3 llama)
tiny() { local f; for f in "${families[@]}"; do [[ -d $work/tiny-$f ]] || run 20 "tiny.$f" "$w" models synth "$f" "$work/tiny-$f" & done; wait; }
sum_of() { # sum_of WAY: one hash of a greedy and a drawn text of each tiny family, and of 300 rows at once against 7 at a time
  local way=$1 f t n=texts.${1:-whole}
  for f in "${families[@]}"; do
    for t in 0 1; do WARDROUND_CUDA_WITHOUT=$way run 40 "$n.$f.$t" "$w" generate --model "$work/tiny-$f" --tokens 5,6,7,8,9 --max-tokens 40 --json --device "$device" --temperature $t --top-p 0.9 || return 1; done
    for t in 300 7; do WARDROUND_CUDA_WITHOUT=$way run 40 "$n.$f.$t" "$w" logprobs --model "$work/tiny-$f" --tokens "$(seq -s, 10 309)" --device "$device" --rows $t || return 1; done
    cmp -s "$log/$n.$f.300.out" "$log/$n.$f.7.out" || { say "$n: $f's bits depend on the rows of a step"; return 1; }
  done
  cat "$log/$n".*.out | sha256sum | cut -c1-16 >"$log/$n.sum"
}
read -ra parts <<<"${PARTS:-wgmma launch clusters graphs}"
all_but() { local q rest=; for q in "${parts[@]}"; do [[ $q == "${1:-}" ]] || rest=$rest,$q; done; echo "${rest#,}"; }
gate() { # all ways at once: a part is left out if it alone changes what is said with none
  local p bad=() plain=$log/texts.$(all_but).sum without jobs=()
  rm -f "$log"/texts.*.sum
  for p in "" "${parts[@]}"; do sum_of "$(all_but "$p")" & jobs+=($!); done; sum_of "" & jobs+=($!)
  wait "${jobs[@]}"
  [[ -s $plain ]] || { say "NOTHING WORKS even with every part left out"; return 1; }
  for p in "${parts[@]}"; do cmp -s "$plain" "$log/texts.$(all_but "$p").sum" || bad+=("$p"); done
  without=$(IFS=,; echo "${bad[*]:-}")
  if [[ -z $without ]] && ! cmp -s "$plain" "$log/texts.whole.sum"; then without=launch,graphs; say "parts work alone and not together"; fi
  echo -n "$without" >"$work/without"; say "leave out: ${without:-nothing}"
}
tests() { # each in a process of its own, for a fault ends all that comes after it; a failed one once more, each launch by itself
  local p n jobs=()
  for p in lib-tests cuda-tests; do [[ -x $bin/$p ]] || continue
    while read -r n; do
      while (($(jobs -rp | wc -l) >= ${JOBS:-12})); do wait -n; done
      (run 80 "test.$n" "$bin/$p" --exact "$n" --include-ignored --test-threads=1 --nocapture ||
        WARDROUND_CUDA_CHECK=1 run 80 "checked.$n" "$bin/$p" --exact "$n" --include-ignored --test-threads=1 --nocapture) & jobs+=($!)
    done < <("$bin/$p" --list --format terse 2>/dev/null | sed -n 's/: test$//p' | grep -E "${TESTS:-^cuda::|^[a-z_]+$}")
  done
  wait "${jobs[@]}"; say "tests: $(cat "$log"/test.*.code 2>/dev/null | grep -c '^0 ') passed of $(ls "$log"/test.*.code 2>/dev/null | wc -l)"
}
shadow() { # tiny models launch by launch, on GPU and emulator, byte by byte: every format, every size of product
  local f q t jobs=() model one
  for f in "${families[@]}"; do for q in none q8_0 q4_k; do
    one=$f.$q model=(--model "$work/tiny-$f" --device "$device"); [[ $q == none ]] || model+=(--quant "$q")
    (WARDROUND_CUDA_SHADOW=$log/shadow.$one.jsonl run 90 "shadow.$one" "$w" generate "${model[@]}" --tokens 10,11,12,13,14,15,16 --max-tokens 4 --temperature 0
      for t in 12 50 100 200; do WARDROUND_CUDA_SHADOW=$log/shadow.$one.jsonl run 90 "shadow.$one.$t" "$w" logprobs "${model[@]}" --tokens "$(seq -s, 10 $((9 + t)))" --rows $t; done) & jobs+=($!)
  done; done
  wait "${jobs[@]}"; python3 tools/shadow.py "$log"/shadow.*.jsonl >"$log/shadow.txt" 2>&1; say "shadow: $(tail -n 1 "$log/shadow.txt")"
}
bench() { run "$1" "bench.$2.$3" "$w" bench --model "$work/$3" --device "$device" --offline --format json "${@:4}"; }
model() { [[ -d $work/$1 ]] || { run 150 "synth.$1" "$w" models synth "$1" "$work/$1.part" --shape "$shape" --seed 1 && mv "$work/$1.part" "$work/$1"; }; }
table() { python3 - "$log" <<'P'
import glob, json, sys
for path in sorted(glob.glob(sys.argv[1] + "/bench.*.out")):
    try: report = json.load(open(path))
    except ValueError: continue
    print("     ", path.split("bench.")[1][:-4], json.dumps(report["environment"].get("limits"))[:300])
    for r in report["results"]:
        share = r.get("share_of_matrix_rate") if r["test"].startswith("pp") else r.get("share_of_bandwidth")
        print(f"        {r['test']:16} batch {r['batch']:3} depth {r['depth']:5} {r['tokens_per_second']:10,.1f} tok/s {100 * (share or 0):5.1f} %")
P
}
counters() { # counters NAME OPTION...: kernels of a step, each with its time, bytes and shares
  WARDROUND_CUDA_WITHOUT=graphs,$WARDROUND_CUDA_WITHOUT run 50 "ncu.$1" ncu --csv --clock-control none --cache-control none --launch-skip "$2" --launch-count "$3" \
    --metrics gpu__time_duration.sum,dram__bytes.sum,lts__t_bytes.sum,sm__throughput.avg.pct_of_peak_sustained_elapsed,launch__grid_size,launch__registers_per_thread \
    "$w" bench --model "$work/qwen3" --device "$device" --offline -r 1 "${@:4}"
}
left_out() { export WARDROUND_CUDA_WITHOUT=${WARDROUND_CUDA_WITHOUT-$(cat "$work/without" 2>/dev/null)}; }
first() {
  machine; tiny
  model qwen3 & maker=$!
  [[ ${PROBE:-1} == 1 ]] && command -v nvcc >/dev/null && run 60 probe.build nvcc -std=c++20 -O3 -gencode=arch=compute_90a,code=sm_90a -o "$bin/probe" benches/gpu_probe.cu &&
    run 25 probe "$bin/probe"; sed 's/^/      /' "$log/probe.out" 2>/dev/null
  run 30 doctor "$w" doctor --offline || WARDROUND_CUDA_WITHOUT=wgmma run 20 doctor.without-wgmma "$w" doctor --offline; grep -h -i cuda "$log"/doctor*.out
  gate; tests; shadow; keep
  left_out; wait "$maker"
  bench 60 all qwen3 -r 3 -p 512,4096 -n 128 --sample --batch 1
  bench 60 batches qwen3 -r 3 -p 0 -n 128 --batch 8,16,32,64 --depth 0,512
  for p in "${parts[@]}"; do ((SECONDS < ${UNTIL:-230})) || break; WARDROUND_CUDA_WITHOUT=$p,$WARDROUND_CUDA_WITHOUT bench 40 "without-$p" qwen3 -r 2 -p $([[ $p == wgmma ]] && echo 4096 || echo 0) -n 128 --batch 1,8,64; done
  command -v ncu >/dev/null && for p in 64 8; do ((SECONDS > ${UNTIL:-230})) || counters "$p" 2500 60 -p 0 -n 24 --batch $p; done
}
left() { ((SECONDS < ${UNTIL:-390} - $1)); } # whether a step of so many seconds fits
second() { # as much as is left; the machine may be a fresh one with a mended program
  local f q mcq=(--data src/data/demo.jsonl --free --set max_tokens=128 --max-batch 64 --device "$device" --offline --quiet)
  if [[ ! -e $work/without ]]; then machine; tiny; for f in "${families[@]}"; do model "$f" & makers+=($!); done; gate; tests; shadow; keep; wait "${makers[@]}"; fi
  left_out
  for f in "${families[@]}"; do
    left 20 && bench 60 decode "$f" -r 2 -p 0 -n 128 --sample --batch 1,8,64; left 20 && bench 60 prompts "$f" -r 2 -p 512,4096 -n 0 --batch 1; keep
  done
  left 50 && run 90 panel "$w" bench panel --data-format mcq --limit 60 --panel "$work/gemma3,$work/llama,$work/qwen3" --ignore-eos --format json "${mcq[@]}"
  if left 50 && python3 -c 'import torch, transformers' 2>/dev/null; then # one model, the same calls, wall against wall
    run 60 run "$w" run medmad --format mcq --limit 12 --panel "$work/qwen3" --out "$work/run" "${mcq[@]}"
    run 70 peers.qwen3 python3 benches/peers_gpu.py --device "$device" --out "$log/peers.qwen3.json" --checkpoint "$work/qwen3" --batch 1,64 --new-tokens 128 --calls "$work/run/calls.jsonl" --prompts 0; fi
  left 25 && counters 64 2500 60 -p 0 -n 24 --batch 64
  for q in q8_0 q4_k; do left 20 && bench 40 $q qwen3 -r 2 --quant $q -p 512 -n 128 --batch 1,64; done
  left 20 && bench 40 fast qwen3 -r 2 --fast -p 512 -n 128 --batch 1,8,64
  left 20 && bench 40 depth qwen3 -r 2 -p 0 -n 128 --batch 8,64 --depth 512
}
makers=()
case $call in first | second) "$call" ;; *) echo "no such call: $call; known: first, second" >&2; exit 2 ;; esac
wait; keep; table
failed=$(cat "$log"/*.code | grep -vc '^0 ')
say "$call: $failed steps failed; leave out: $(cat "$work/without" 2>/dev/null || echo unknown)"
[[ $failed == 0 && -e $work/without ]] # what failed, or was never found out, is no success
