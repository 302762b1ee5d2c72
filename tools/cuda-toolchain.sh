#!/usr/bin/env bash
# A CUDA toolchain from PyPI's wheels, for building with `--features cuda` where none is installed. No GPU is needed.
#   eval "$(tools/cuda-toolchain.sh ~/.cache/wardround-cuda)"
#   cargo build --release --features cuda
# CUDA 13.0: its machine code runs under drivers from 580 on. Only the compiler is fetched, for the program asks the
# driver alone (libcuda.so.1), and when it runs.
#   eval "$(tools/cuda-toolchain.sh ~/.cache/wardround-cuda candle)"
#   CUDA_COMPUTE_CAP=120 cargo build --release --features candle-cuda
# fetches the libraries that candle's kernels call too (cuBLAS, cuRAND, NVRTC, 0.6 GB); such a program wants them, and the
# driver, to start. CUDA_COMPUTE_CAP is that of the GPU, where `nvidia-smi` cannot say. Where no driver is installed, a
# library stands in for it whose every call fails.
set -euo pipefail
folder=${1:?usage: cuda-toolchain.sh FOLDER [candle]}
with=${2:-}
packages() { "$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])'; }
# Exactly these: another version makes other machine code, of which tools/machine_code.py may say that it takes more than it should.
if [[ ! -e $folder/.complete-2 ]]; then
  python3 -m venv "$folder" >&2
  "$folder/bin/pip" install --quiet --disable-pip-version-check \
    nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 \
    nvidia-cuda-cccl==13.0.85 >&2
  touch "$folder/.complete-2"
fi
home=$(packages)/nvidia/cu13
[[ -x $home/bin/nvcc ]] || { echo "cuda-toolchain.sh: no nvcc in $home; remove $folder and try again" >&2; exit 1; }
printf 'export CUDA_HOME=%q PATH=%q:"$PATH"\n' "$home" "$home/bin"
[[ $with == candle ]] || exit 0
if [[ ! -e $folder/.complete-candle ]]; then
  "$folder/bin/pip" install --quiet --disable-pip-version-check \
    nvidia-cublas==13.0.2.14 nvidia-curand==10.4.0.35 nvidia-cuda-nvrtc==13.0.88 >&2
  # Wheels have no names to link by, and no driver.
  for name in cudart:13 cublas:13 cublasLt:13 curand:10 nvrtc:13; do
    ln -sf "lib${name%:*}.so.${name#*:}" "$home/lib/lib${name%:*}.so"
  done
  mkdir -p "$home/lib/stubs"
  calls=$(grep -ohE '\bcu[A-Z][A-Za-z0-9_]*' "$home/include/cuda.h" | sort -u)
  # 34: CUDA_ERROR_STUB_LIBRARY.
  printf 'int %s(void) { return 34; }\n' $calls | cc -shared -fPIC -w -fno-builtin -Wl,-soname,libcuda.so.1 -o "$home/lib/stubs/libcuda.so" -x c -
  ln -sf libcuda.so "$home/lib/stubs/libcuda.so.1"
  touch "$folder/.complete-candle"
fi
# The stub comes last, after the system's own folders: only where there is no driver.
[[ $(ldconfig -p 2>/dev/null) == *libcuda.so.1* ]] && driver= || driver=:$home/lib/stubs
printf 'export LD_LIBRARY_PATH=%q"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" LIBRARY_PATH=%q"${LIBRARY_PATH:+:$LIBRARY_PATH}"\n' \
  "$home/lib$driver" "$home/lib:$home/lib/stubs"
