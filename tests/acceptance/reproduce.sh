#!/usr/bin/env bash
# Whether a release is reproducible: builds the committed source twice, in two directories with two homes, and compares the binaries.
#
#     tests/acceptance/reproduce.sh OUT [CARGO FLAGS…]
#
# OUT is new and gets both trees and, where the binaries differ, a list of the sections that do. It takes twice the time of a release
# build, and needs the crates in cargo's cache or a network. Of a build with the feature `cuda` nothing is promised yet.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
# Both builds are of this commit, whatever is committed meanwhile.
commit=$(git -C "$root" rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH
export CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 CARGO_TERM_COLOR=never
cache=${CARGO_HOME:-$HOME/.cargo}
rust=${RUSTUP_HOME:-$HOME/.rustup}

# build NAME UMASK FLAGS…
build() {
    local name=$1 tree=$out/$1/source
    umask "$2"
    shift 2
    mkdir -p "$tree" "$out/$name/home"
    git -C "$root" archive "$commit" | tar -x -C "$tree"
    # The crates themselves are the same files; where they and the source lie must leave no trace.
    local target=$out/$name/target
    local map="--remap-path-prefix=$tree=/source --remap-path-prefix=$target=/target --remap-path-prefix=$cache=/cargo --remap-path-prefix=$rust=/rust"
    local in_c="-ffile-prefix-map=$cache=/cargo -ffile-prefix-map=$tree=/source -ffile-prefix-map=$target=/target"
    (
        cd "$tree"
        HOME=$out/$name/home CARGO_HOME=$cache RUSTUP_HOME=$rust USER=$name LOGNAME=$name \
            CARGO_TARGET_DIR=$target RUSTFLAGS="$map" CFLAGS="$in_c" CXXFLAGS="$in_c" \
            cargo build --release --locked "$@"
    )
}
build first 022 "$@"
build second-and-longer 077 "$@"
first=$out/first/target/release/wardround
second=$out/second-and-longer/target/release/wardround
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
    objdump -h "$out/$binary/target/release/wardround" | awk '$1 ~ /^[0-9]+$/ {print $2, $3}' >"$out/$binary.sections" || true
done
diff "$out/first.sections" "$out/second-and-longer.sections" >"$out/sections.diff" || true
echo "the builds differ; $out/sections.diff has the sections whose sizes do" >&2
exit 1
