#!/usr/bin/env bash
# A CUDA toolchain from PyPI's wheels, for building with `--features cuda` where none is installed. No GPU is needed.
#   eval "$(tools/cuda-toolchain.sh ~/.cache/wardround-cuda)"
#   cargo build --release --features cuda
# CUDA 13.0: its machine code runs under drivers from 580 on. Only the compiler is fetched, for the program asks the
# driver alone (libcuda.so.1), and when it runs.
set -euo pipefail
folder=${1:?usage: cuda-toolchain.sh FOLDER}
# Exactly these: another version makes other machine code, of which tools/machine_code.py may say that it takes more than it should.
if [[ ! -e $folder/.complete-2 ]]; then
  python3 -m venv "$folder" >&2
  "$folder/bin/pip" install --quiet --disable-pip-version-check \
    nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 \
    nvidia-cuda-cccl==13.0.85 >&2
  touch "$folder/.complete-2"
fi
packages=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
home=$packages/nvidia/cu13
[[ -x $home/bin/nvcc ]] || { echo "cuda-toolchain.sh: no nvcc in $home; remove $folder and try again" >&2; exit 1; }
printf 'export CUDA_HOME=%q PATH=%q:"$PATH"\n' "$home" "$home/bin"
