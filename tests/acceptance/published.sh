#!/usr/bin/env bash
# The published models of 3 to 4 billion on this machine, beside transformers: templates, logits, greedy texts, speed, a debate.
#
#     tests/acceptance/published.sh DIR [FILE]
#
# DIR has whichever of the folders gemma3-4b, llama3.2-3b and qwen3-4b there are, as `wardround models fetch NAME --to DIR/NAME` makes
# them; other models may lie in their places. Everything runs on the CPU and, where there is one, on a GPU: WARDROUND_DEVICES names other
# devices (cpu,cuda,candle-cuda). PYTHON has torch and transformers. Takes the release binary where it is built, else the debug one;
# WARDROUND names another. On the CPU numbers are f32: a model of 4 billion takes 17 GB, once here and once there.
# FILE, published.tar.gz unless named, has what came of it, with the plan and the logs of the debate: send it back. Exits 0 when all is well.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
models=$(cd "$1" && pwd) file=${2:-published.tar.gz}
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
wardround=${WARDROUND:-$target/release/wardround}
[ -x "$wardround" ] || wardround=$target/debug/wardround
devices=${WARDROUND_DEVICES:-cpu}
if [ -z "${WARDROUND_DEVICES:-}" ] && "$wardround" doctor --offline | grep -q '^device  *cuda:0:'; then
    devices=cpu,cuda
fi
unset WARDROUND_DEVICES

work=$(mktemp -d)
# What there is by then, when it is interrupted.
finish() {
    tar -C "$work" -czf "$file" published
    echo "$file is what to send back"
    rm -rf "$work"
}
trap finish EXIT
out=$work/published
mkdir "$out"
"$wardround" doctor --offline >"$out/doctor.txt"
status=0
"${PYTHON:-python3}" "$root/tests/acceptance/published.py" "$wardround" "$models" "$devices" "$out" 2>&1 | tee "$out/log.txt" || status=1
exit $status
