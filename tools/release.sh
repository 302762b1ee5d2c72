#!/usr/bin/env bash
# The binary of a release: committed source, built so that whoever builds it again gets the same bytes.
#
#     tools/release.sh OUT [CARGO FLAGS…]      such as tools/release.sh out --no-default-features --features serve,airgap
#
# OUT is new and gets source/, target/ and the binary as wardround. COMMIT names another commit than HEAD. One codegen unit, the time of the
# commit, no path of this machine. Where cargo-auditable is installed (cargo install --locked cargo-auditable@0.7.7) the binary carries the
# list of its crates; without it the bytes are others, and that is said. Needs the crates in cargo's cache or a network; CARGO_NET_OFFLINE=true
# forbids the latter. The compiler decides the bytes too: `wardround doctor` names it. Of a build with the feature `cuda` nothing is
# promised yet.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
root=$(cd "$(dirname "$0")/.." && pwd)
WARDROUND_COMMIT=$(git -C "$root" rev-parse "${COMMIT:-HEAD}")
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct "$WARDROUND_COMMIT")
export WARDROUND_COMMIT SOURCE_DATE_EPOCH
export CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 CARGO_TERM_COLOR=never
tree=$out/source
target=$out/target
mkdir -p "$tree"
git -C "$root" archive "$WARDROUND_COMMIT" | tar -x -C "$tree"
# Where the source, the crates and the compiler lie must leave no trace.
cache=${CARGO_HOME:-$HOME/.cargo}
rust=${RUSTUP_HOME:-$HOME/.rustup}
map="--remap-path-prefix=$tree=/source --remap-path-prefix=$target=/target --remap-path-prefix=$cache=/cargo --remap-path-prefix=$rust=/rust"
in_c="-ffile-prefix-map=$cache=/cargo -ffile-prefix-map=$tree=/source -ffile-prefix-map=$target=/target"
build=(cargo auditable build)
if ! cargo auditable --version >/dev/null 2>&1; then
    build=(cargo build)
    echo "without the list of crates inside, since cargo-auditable is not installed" >&2
fi
(cd "$tree" && CARGO_TARGET_DIR=$target RUSTFLAGS=$map CFLAGS=$in_c CXXFLAGS=$in_c "${build[@]}" --release --locked "$@")
cp "$target/release/wardround" "$out/wardround"
