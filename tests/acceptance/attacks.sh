#!/usr/bin/env bash
# The attacks that SECURITY.md sums up, against a built binary with synthetic models: on a server on loopback, by models, corpora, data, plans and
# run directories from elsewhere, on the sandbox, an audit trail and bundles. Each is said to have «held» or «GOT THROUGH», or why it was
# «not tried»; one that got through makes the exit code 1.
#
#     tests/acceptance/attacks.sh OUT
#
# OUT is new; its file `results` has what is said. Takes the debug binary, or the one that WARDROUND names. Needs python3 and Linux. What is tried
# of the sandbox's files needs a kernel with Landlock.
set -euo pipefail

if [ $# -ne 1 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
wardround=$(realpath "${WARDROUND:-${CARGO_TARGET_DIR:-$root/target}/debug/wardround}")
encoder=$root/tests/goldens/encoders/tiny-mean
mkdir -p "$1"
cd "$1"
export HOME=$PWD PYTHONDONTWRITEBYTECODE=1
unset "${!WARDROUND_@}" WARDROUND

"$wardround" models synth qwen3 qwen3 >/dev/null
for name in ward lab; do
    "$wardround" keys add keys "$name" | sed -n 1p >"key-$name"
done

start() { # start FLAG…: a server of one model and of one system that checks notes; its address is in `address`
    stop
    : >address
    "$wardround" serve qwen3 --port 0 --offline --threads 1 --context 1024 --kv-tokens 8192 --system medguards --set medguards.agents=1 \
        --set medguards.max_tokens=8 "$@" >address 2>>stderr &
    server=$!
    until [ -s address ]; do sleep 0.1; done
}
stop() {
    [ -n "${server:-}" ] || return 0
    { kill -9 "$server" && wait "$server"; } 2>/dev/null || true
    server=
}
trap stop EXIT

failed=0
attack() { # attack NAME…: each in turn, against the server that runs
    python3 "$here/attacks.py" "$(sed 's/^listening on //' address)" "$server" "$wardround" "$@" | tee -a results || failed=1
}
attack_by() { # attack_by KIND NAME…: those of attacks_KIND.py, in a folder of their own
    mkdir "$1"
    (cd "$1" && python3 "$here/attacks_$1.py" "$wardround" "${@:2}") | tee -a results || failed=1
}

start --keys keys
attack ready texts live bodies values hosts headers identity cached share logprobs grammars twice key_files connections
start --keys keys --audit audit
attack ready left behind
stop

attack_by files "$encoder" templates tokenizers configurations weights links pipes terminals widened corpora data
attack_by runs plans pipes links strange_names
attack_by trail cut rolled_back changed texts key outside links pipes terminals
attack_by bundles changed modes lists terminals

count() { grep -c "^$1" results || true; }
echo "$(count held) held, $(count 'GOT THROUGH') got through, $(count 'not tried') not tried"
exit "$failed"
