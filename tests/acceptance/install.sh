#!/usr/bin/env bash
# Installing a bundle by its README.html, in a fresh Debian 12 without a network: the commands of the page as they stand there, counted.
#
#     tests/acceptance/install.sh OUT [MIRROR]
#
# OUT is new and gets everything. Needs root, debootstrap, minisign, ssh-keygen, unshare, python3, and, for the Debian alone, a network.
# Takes the release binary where it is built, else the debug one; WARDROUND names another. It must not need a newer C library than
# Debian 12 has.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
for tool in debootstrap minisign ssh-keygen unshare python3; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 2; }
done
mkdir -p "$1"
out=$(cd "$1" && pwd)
mirror=${2:-http://deb.debian.org/debian}
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
wardround=${WARDROUND:-$target/release/wardround}
[ -x "$wardround" ] || wardround=$target/debug/wardround
fail() { echo "WRONG: $*" >&2; exit 1; }
cd "$out"

echo "== the sender: a bundle, signed"
minisign -G -W -f -p vendor.pub -s vendor.key >/dev/null
ssh-keygen -q -t ed25519 -N '' -C vendor -f vendor.ssh
"$wardround" models synth qwen3 tiny-qwen3 >/dev/null
"$wardround" bundle create ward --name ward --release 1.0 --model tiny-qwen3 --unverified --golden --binary "$wardround" >/dev/null
minisign -S -s vendor.key -m ward/SHA256SUMS >/dev/null
ssh-keygen -q -Y sign -f vendor.ssh -n wardround-bundle ward/SHA256SUMS 2>/dev/null

echo "== the host: Debian 12, with OpenSSH's client as any host has it"
debootstrap --variant=minbase --include=openssh-client bookworm host "$mirror" >debootstrap.log
cp -r ward host/mnt/ward
echo "vendor namespaces=\"wardround-bundle\" $(cut -d' ' -f1,2 vendor.ssh.pub)" >host/mnt/vendor.allowed
python3 - host/mnt/ward/README.html "$(tail -1 vendor.pub)" >host/mnt/commands <<'PY'
import html, re, sys
page, key = open(sys.argv[1]).read(), sys.argv[2]
blocks = [html.unescape(block) for block in re.findall(r"<pre>(.*?)</pre>", page, re.S)]
names = {"THIS-DIRECTORY": "/mnt/ward", "-f vendor.allowed": "-f ../vendor.allowed", "-I NAME": "-I vendor", "KEY": key, "sudo ": ""}
for line in "\n".join(blocks).splitlines():
    for name, value in names.items():
        line = line.replace(name, value)
    print(line)
PY
commands=$(wc -l <host/mnt/commands)
mount -t proc proc host/proc
trap 'umount "$out/host/proc"' EXIT
cat host/mnt/commands

echo "== the commands, without a network"
unshare -n chroot host bash -c 'set -e; cd /; while IFS= read -r line; do echo "\$ $line" >&2; eval "$line"; done </mnt/commands' >installed.log 2>&1 ||
    { cat installed.log; fail "a command of the page failed"; }
grep -q 'Good "wardround-bundle" signature' installed.log || fail "the signature was not seen"
[ "$(readlink host/opt/wardround/current)" = versions/1.0 ] || fail "1.0 is not current"
[ "$commands" -le 10 ] || fail "$commands commands"

echo "== what was installed works"
unshare -n chroot host /opt/wardround/current/bin/wardround generate --model tiny-qwen3 --prompt Fever --max-tokens 8 >/dev/null
unshare -n chroot host /opt/wardround/current/bin/wardround selftest --root /opt/wardround/current --out "$(unshare -n chroot host mktemp -d)"
unshare -n chroot host /opt/wardround/current/bin/wardround bundle verify /opt/wardround/current --trust "$(tail -1 vendor.pub)"
printf 'beside the root: %s\n' "$(find host -path host/proc -prune -o -path host/opt/wardround -prune -o -newer host/mnt/commands -type f -print | sed 's/^host//' | tr '\n' ' ')"
echo "installed by $commands commands"
