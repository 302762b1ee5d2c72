#!/usr/bin/env bash
# A wheel of the program and the reader of runs (python/), so that `pip install FILE.whl` gives both without a compiler:
#
#     tools/wheel.sh OUT           wardround, for CPUs; for Linux with glibc 2.28 or later
#     tools/wheel.sh OUT cuda      wardround-cuda; needs CUDA's compiler (tools/cuda-toolchain.sh), and where it runs the driver alone
#
# Needs a python3 with venv, and a network for maturin and, on x86-64 and Arm, for the C compiler that knows older glibcs (ziglang).
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
kind=${2:-cpu}
cd "$(dirname "$0")/.."
case $kind in
cpu) name=wardround features=default ;;
cuda) name=wardround-cuda features=cuda ;;
*)
    echo "$kind: cpu or cuda" >&2
    exit 2
    ;;
esac
tools=target/wheel-tools
[ -x "$tools/bin/maturin" ] || { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet maturin==1.16.0 ziglang==0.15.2; }
# maturin takes Python from below its own project alone.
rm -rf "target/wheel-$kind"
mkdir -p "target/wheel-$kind"
cp -R python/wardround "target/wheel-$kind/"
rm -rf "target/wheel-$kind/wardround/__pycache__"
version=$(sed -n '/^\[package\]/,/^version/s/^version = "\(.*\)"/\1/p' Cargo.toml)
cat >"target/wheel-$kind/pyproject.toml" <<TOML
[build-system]
requires = ["maturin"]
build-backend = "maturin"

[project]
name = "$name"
version = "$version"
description = "Panels of small open language models and published medical multi-agent systems, on one machine, offline"
license = "Apache-2.0 OR MIT"
requires-python = ">=3.8"

[project.optional-dependencies]
# What the reader of runs needs, beside Python 3.11.
pandas = ["pandas>=2"]

[tool.maturin]
bindings = "bin"
python-source = "."
module-name = "wardround"
manifest-path = "../../Cargo.toml"
features = ["$features"]
TOML
PATH=$PWD/$tools/bin:$PATH CARGO_TARGET_DIR=$PWD/target maturin_dir="target/wheel-$kind"
export PATH CARGO_TARGET_DIR
(cd "$maturin_dir" && maturin build --release --locked --zig --compatibility manylinux_2_28 --strip --out "$out")
python3 - "$out" <<'PYTHON'
import pathlib, sys, zipfile

for wheel in pathlib.Path(sys.argv[1]).glob("*.whl"):
    names = zipfile.ZipFile(wheel).namelist()
    missing = {"wardround/__init__.py", "wardround/py.typed"} - set(names)
    if missing or not any("/scripts/" in name for name in names):
        sys.exit(f"{wheel} lacks the program or {missing}")
PYTHON
ls -l "$out"
