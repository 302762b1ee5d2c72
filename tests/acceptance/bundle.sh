#!/usr/bin/env bash
# A bundle from end to end: made, signed, checked by hand as its page says, installed; making and installing killed again and again; the
# speed of checking beside that of openssl.
#
#     tests/acceptance/bundle.sh OUT [KILLS [MEGABYTES]]
#
# OUT is new and gets everything; 100 kills each of create and install, and 1024 MB for the speed, where nothing else is said. Takes the
# release binary where it is built, else the debug one; WARDROUND names another. Needs minisign, ssh-keygen, sha256sum and openssl.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
for tool in minisign ssh-keygen sha256sum openssl; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 2; }
done
mkdir -p "$1"
out=$(cd "$1" && pwd)
kills=${2:-100}
megabytes=${3:-1024}
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
wardround=${WARDROUND:-$target/release/wardround}
[ -x "$wardround" ] || wardround=$target/debug/wardround
cd "$out"
export SOURCE_DATE_EPOCH=1700000000
fail() { echo "WRONG: $*" >&2; exit 1; }

# Keys of a sender, models of random weights, a program that stands in for the real one where only files matter.
minisign -G -W -f -p vendor.pub -s vendor.key >/dev/null
ssh-keygen -q -t ed25519 -N '' -C vendor -f vendor.ssh
echo "vendor namespaces=\"wardround-bundle\" $(cut -d' ' -f1,2 vendor.ssh.pub)" >vendor.allowed
"$wardround" models synth llama llama >/dev/null
head -c 40000000 /dev/urandom >notes.bin
printf '#!/bin/sh\n[ "$1" = selftest ]\n' >stand-in
sign() {
    minisign -S -s vendor.key -m "$1/SHA256SUMS" >/dev/null
    ssh-keygen -q -Y sign -f vendor.ssh -n wardround-bundle "$1/SHA256SUMS" 2>/dev/null
}
make() { # make DIR VERSION [FLAG...]
    "$wardround" bundle create "$1" --name ward --release "$2" --model llama --data notes.bin --binary stand-in --unverified "${@:3}" >/dev/null 2>made
}

echo "== the first check by hand, as README.html has it"
make first 1.0 || { cat made; fail "the bundle was not made"; }
sign first
line=$(sed -n 's/^\(ssh-keygen -Y verify .*\)<\/pre>$/\1/p' first/README.html | sed 's/&lt;/</; s/&amp;/\&/g; s/-I NAME/-I vendor/; s#-f vendor.allowed#-f ../vendor.allowed#')
[ -n "$line" ] || fail "README.html has no first check"
by_hand() { (cd "$1" && bash -c "set -e; $line"); }
by_hand first
cp -r first changed
printf x >>changed/models/llama/config.json
by_hand changed >/dev/null 2>&1 && fail "a changed file passed"
cp first/models/llama/config.json changed/models/llama/
printf '%s  %s\n' "$(printf x | sha256sum | cut -d' ' -f1)" bin/more >>changed/SHA256SUMS
by_hand changed >/dev/null 2>&1 && fail "changed sums passed"
rm -r changed
minisign -V -q -p vendor.pub -m first/SHA256SUMS
"$wardround" bundle verify first --trust vendor.pub --deep

echo "== create, killed $kills times"
seconds() { date +%s.%N; }
random() { awk -v seed="$1" -v most="$2" 'BEGIN { srand(seed); printf "%.3f", rand() * most }'; }
began=$(seconds)
make again 1.0
took=$(awk -v a="$began" -v b="$(seconds)" 'BEGIN { print (b - a) * 1.1 }')
cmp first/SHA256SUMS again/SHA256SUMS
rm -r again
whole=0
for round in $(seq "$kills"); do
    "$wardround" bundle create again --name ward --release 1.0 --model llama --data notes.bin --binary stand-in --unverified >/dev/null 2>&1 &
    sleep "$(random "$round" "$took")"
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    if [ -e again ]; then
        cmp -s first/SHA256SUMS again/SHA256SUMS || fail "round $round left half a bundle"
        "$wardround" bundle verify again >/dev/null 2>&1 || fail "round $round left half a bundle"
        whole=$((whole + 1))
        rm -r again
    fi
done
make again 1.0 || fail "it was not made after the kills"
cmp first/SHA256SUMS again/SHA256SUMS
[ ! -e .again.partial ] || fail ".again.partial stays"
rm -r again
echo "$kills kills of create in $took s: $whole whole bundles, no half one; made again"

echo "== install, killed $kills times"
make second 2.0
sign second
install() { "$wardround" bundle install "$1" --to root --trust vendor.pub >/dev/null 2>installed; }
install first || { cat installed; fail "1.0 was not installed"; }
began=$(seconds)
install second
took=$(awk -v a="$began" -v b="$(seconds)" 'BEGIN { print (b - a) * 1.1 }')
back() { "$wardround" bundle rollback root --to 1.0 >/dev/null; }
back
new=0
for round in $(seq "$kills"); do
    rm -rf root/versions/2.0
    "$wardround" bundle install second --to root --trust vendor.pub >/dev/null 2>&1 &
    sleep "$(random "$((round + 1000))" "$took")"
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    now=$(readlink root/current)
    case $now in
    versions/1.0) ;;
    versions/2.0) new=$((new + 1)) ;;
    *) fail "round $round: current is $now" ;;
    esac
    "$wardround" bundle verify root/current --trust vendor.pub >/dev/null 2>&1 || fail "round $round: $now is damaged"
    if [ -e root/versions/2.0 ]; then
        "$wardround" bundle verify root/versions/2.0 --trust vendor.pub >/dev/null 2>&1 || fail "round $round: half a version"
    fi
    if [ $((round % 5)) = 0 ]; then
        install second || { cat installed; fail "round $round: it was not installed again"; }
        [ "$(readlink root/current)" = versions/2.0 ] || fail "round $round: 2.0 is not current"
    fi
    back
done
install second || fail "it was not installed after the kills"
[ "$(find root/versions -mindepth 1 -maxdepth 1 | wc -l)" = 2 ] || fail "something stays in root/versions"
echo "$kills kills of install in $took s: 2.0 was current after $new of them, 1.0 else; none damaged; installed again"

echo "== the program itself: golden files, selftest, models by their names"
if "$wardround" selftest --help >/dev/null 2>&1; then
    "$wardround" bundle create real --name ward --release 3.0 --model llama --unverified --golden >/dev/null
    sign real
    ls real/golden
    "$wardround" bundle install real --to root --trust vendor.pub
    [ "$(readlink root/current)" = versions/3.0 ]
else
    "$wardround" bundle create real --name ward --release 3.0 --model llama --unverified >/dev/null
    sign real
    "$wardround" bundle install real --to root --trust vendor.pub
fi
mkdir elsewhere
(cd elsewhere && ../root/current/bin/wardround generate --model llama --prompt Fever --max-tokens 4 --offline >/dev/null)
echo "the installed program found its model"

echo "== the speed of verify, $megabytes MB"
for half in a b; do head -c $((megabytes * 500000)) /dev/urandom >"large-$half.bin"; done
"$wardround" bundle create large --name ward --data large-a.bin large-b.bin --binary stand-in --unverified >/dev/null 2>&1
rm large-?.bin
cat large/data/* >/dev/null
began=$(seconds)
"$wardround" bundle verify large >/dev/null 2>&1
took=$(awk -v a="$began" -v b="$(seconds)" 'BEGIN { print b - a }')
peer=$(openssl speed -elapsed -seconds 3 -bytes 65536 -multi "$(nproc)" sha256 2>/dev/null | awk '/^sha256/ { sub(/k$/, "", $NF); print $NF / 1000 }')
awk -v took="$took" -v peer="$peer" -v cores="$(nproc)" -v size="$megabytes" 'BEGIN {
    rate = size / took
    printf "verify: %.0f MB/s; openssl speed sha256 on %d cores: %.0f MB/s; share %.0f %%\n", rate, cores, peer, 100 * rate / peer
}'
rm -r large
echo "done"
