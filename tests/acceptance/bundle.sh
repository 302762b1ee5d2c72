#!/usr/bin/env bash
# A bundle from end to end: made, signed, checked by hand, used where it lies; the speed of checking beside that of openssl.
#
#     tests/acceptance/bundle.sh OUT [MEGABYTES]
#
# OUT is new and gets everything; 1024 MB for the speed, where nothing else is said. Takes the release binary where it is
# built, else the debug one; WARDROUND names another. Needs minisign, sha256sum and openssl.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
for tool in minisign sha256sum openssl; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 2; }
done
mkdir -p "$1"
out=$(cd "$1" && pwd)
megabytes=${2:-1024}
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
wardround=${WARDROUND:-$target/release/wardround}
[ -x "$wardround" ] || wardround=$target/debug/wardround
cd "$out"
fail() { echo "WRONG: $*" >&2; exit 1; }

minisign -G -W -f -p vendor.pub -s vendor.key >/dev/null

echo "== made, signed by the command that it prints, checked by hand"
mkdir -p ward/bundle/models ward/bundle/bin ward/bundle/data
"$wardround" models synth llama ward/bundle/models/llama >/dev/null
cp "$wardround" ward/bundle/bin/wardround
head -c 40000000 /dev/urandom >ward/bundle/data/notes.bin
"$wardround" bundle create ward/bundle >signing 2>made || { cat made; fail "the bundle was not made"; }
sed 's/KEY/vendor.key/' signing | sh >/dev/null
by_hand() { (cd "$1" && minisign -V -q -p ../../vendor.pub -m SHA256SUMS && sha256sum --quiet --strict -c SHA256SUMS); }
by_hand ward/bundle
"$wardround" bundle verify ward/bundle --key vendor.pub
cp -r ward/bundle ward/changed
printf x >>ward/changed/models/llama/config.json
by_hand ward/changed >/dev/null 2>&1 && fail "a changed file passed"
cp ward/bundle/models/llama/config.json ward/changed/models/llama/
printf '%s  %s\n' "$(printf x | sha256sum | cut -d' ' -f1)" bin/more >>ward/changed/SHA256SUMS
by_hand ward/changed >/dev/null 2>&1 && fail "a changed list passed"
rm -r ward/changed

echo "== used where it lies"
HF_HOME=$out/ward/bundle ward/bundle/bin/wardround generate --model ward/bundle/models/llama --prompt Fever --max-tokens 4 --offline >/dev/null
HF_HOME=$out/ward/bundle ward/bundle/bin/wardround selftest --model ward/bundle/models/llama
"$wardround" bundle verify ward/bundle --key vendor.pub >/dev/null || fail "using it changed it"

seconds() { date +%s.%N; }
echo "== the speed of verify, $megabytes MB"
mkdir -p large/data
for half in a b; do head -c $((megabytes * 500000)) /dev/urandom >"large/data/$half.bin"; done
"$wardround" bundle create large >/dev/null 2>&1
minisign -S -s vendor.key -m large/SHA256SUMS >/dev/null
cat large/data/* >/dev/null
began=$(seconds)
"$wardround" bundle verify large --key vendor.pub >/dev/null
took=$(awk -v a="$began" -v b="$(seconds)" 'BEGIN { print b - a }')
peer=$(openssl speed -elapsed -seconds 3 -bytes 65536 -multi "$(nproc)" sha256 2>/dev/null | awk '/^sha256/ { sub(/k$/, "", $NF); print $NF / 1000 }')
awk -v took="$took" -v peer="$peer" -v cores="$(nproc)" -v size="$megabytes" 'BEGIN {
    rate = size / took
    printf "verify: %.0f MB/s; openssl speed sha256 on %d cores: %.0f MB/s; share %.0f %%\n", rate, cores, peer, 100 * rate / peer
}'
rm -r large
echo "done"
