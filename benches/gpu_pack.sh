#!/usr/bin/env bash
# What travels to a GPU machine that has no Rust, for benches/gpu.sh: `benches/gpu_pack.sh FOLDER` builds program and tests for sm_90a
# alone, strips them and packs them as FOLDER/bin.tar.xz, below 64 MiB, with 128 questions of MedQA where WARDROUND_DATA has them. nvcc has
# to be in PATH (tools/cuda-toolchain.sh).
set -euo pipefail
folder=${1:?usage: gpu_pack.sh FOLDER}
export WARDROUND_CUDA_ARCHITECTURES=90a CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
build() { cargo "$@" --release --locked --features cuda --message-format json | python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable"): print(message["target"]["name"], message["target"]["kind"][0], message["executable"])'; }
mkdir -p "$folder"; rm -rf "$folder/bin"; mkdir "$folder/bin"
program=$(build build | awk '$1 == "wardround" {print $3}')
tests=$(build test --no-run --lib --test cuda)
cp "$program" "$folder/bin/wardround"
cp "$(awk '$1 == "wardround_ops" && $2 == "lib" {print $3}' <<<"$tests")" "$folder/bin/lib-tests"
cp "$(awk '$1 == "cuda" {print $3}' <<<"$tests")" "$folder/bin/cuda-tests"
strip "$folder"/bin/*
questions=${WARDROUND_DATA:-}/medqa/us_5opt_test.jsonl
[[ ! -f $questions ]] || head -n 128 "$questions" >"$folder/bin/questions.jsonl"
tar -C "$folder/bin" -cf - . | xz -T0 -6 >"$folder/bin.tar.xz"
ls -l "$folder/bin.tar.xz"
