#!/usr/bin/env bash
# Whether a release is reproducible: has tools/release.sh build the committed source twice, in two directories with two homes, and compares
# the binaries.
#
#     tests/acceptance/reproduce.sh OUT [CARGO FLAGS…]
#
# OUT is new and gets both trees and, where the binaries differ, a list of the sections that do. It takes twice the time of a release
# build, and needs the crates in cargo's cache or a network. Of a build with the feature `cuda` nothing is promised yet.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
# Both builds are of this commit, whatever is committed meanwhile.
COMMIT=$(git -C "$root" rev-parse HEAD)
export COMMIT
CARGO_HOME=${CARGO_HOME:-$HOME/.cargo}
RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}
export CARGO_HOME RUSTUP_HOME

# build NAME UMASK FLAGS…
build() {
    local name=$1
    umask "$2"
    shift 2
    mkdir -p "$out/$name/home"
    HOME=$out/$name/home USER=$name LOGNAME=$name "$root/tools/release.sh" "$out/$name" "$@"
}
build first 022 "$@"
build second-and-longer 077 "$@"
first=$out/first/wardround
second=$out/second-and-longer/wardround
sha256sum "$first" "$second"
for path in "$out" "$HOME"; do
    if grep -qaF "$path" "$first"; then
        echo "the binary names $path" >&2
        exit 1
    fi
done
if cmp "$first" "$second"; then
    echo "both builds are equal"
    exit 0
fi
for binary in first second-and-longer; do
    objdump -h "$out/$binary/wardround" | awk '$1 ~ /^[0-9]+$/ {print $2, $3}' >"$out/$binary.sections" || true
done
diff "$out/first.sections" "$out/second-and-longer.sections" >"$out/sections.diff" || true
echo "the builds differ; $out/sections.diff has the sections whose sizes do" >&2
exit 1
