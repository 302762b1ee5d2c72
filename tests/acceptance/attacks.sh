#!/usr/bin/env bash
# The attacks on the server that SECURITY.md lists, against a built binary with synthetic models on loopback: each is said to have «held» or
# «got through», and one that got through makes the exit code 1.
#
#     tests/acceptance/attacks.sh OUT
#
# OUT is new. Takes the debug binary, or the one that WARDROUND names. Needs python3. Attacks on the sandbox, on templates and checkpoints, on the
# trail and on bundles belong below the server's, each with a function of its own.
set -euo pipefail

if [ $# -ne 1 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
wardround=${WARDROUND:-${CARGO_TARGET_DIR:-$root/target}/debug/wardround}
mkdir -p "$1"
cd "$1"
export HOME=$PWD

"$wardround" models synth qwen3 qwen3 >/dev/null
for name in ward lab; do
    "$wardround" keys add keys "$name" --role api | sed -n 1p >"key-$name"
done

start() { # start FLAG…: a server with keys and one system that checks notes; its address is in `address`
    : >address
    "$wardround" serve qwen3 --port 0 --offline --threads 1 --context 1024 --kv-tokens 8192 --keys keys \
        --trust-user-header x-remote-user --system medguards --set medguards.agents=1 --set medguards.max_tokens=8 "$@" \
        >address 2>>stderr &
    server=$!
    until [ -s address ]; do sleep 0.1; done
}
trap 'kill -9 "$server" 2>/dev/null || true' EXIT

failed=0
attack() { # attack NAME…: each in turn, against the server that runs
    python3 "$root/tests/acceptance/attacks.py" "$(sed 's/^listening on //' address)" "$server" "$wardround" "$@" || failed=1
}

start --max-connections 40
attack ready texts live bodies values routes csrf hosts headers identity proxied cached share logprobs kept connections
kill -9 "$server"

if [ "$failed" = 0 ]; then echo "all held"; else echo "something got through"; fi
exit "$failed"
