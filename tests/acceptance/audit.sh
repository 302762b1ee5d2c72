#!/usr/bin/env bash
# An audit trail under load: requests by the thousand, a server that is killed again and again, a full disk, forgetting, replaying.
#
#     tests/acceptance/audit.sh OUT [REQUESTS [KILLS]]
#
# OUT is new and gets the trail and the logs; 10000 requests and 50 kills where nothing else is said. Takes the release binary where it
# is built, else the debug one; WARDROUND names another. Needs python3.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
requests=${2:-10000}
kills=${3:-50}
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
wardround=${WARDROUND:-$target/release/wardround}
[ -x "$wardround" ] || wardround=$target/debug/wardround
cd "$out"
[ -d llama ] || "$wardround" models synth llama llama >/dev/null
: >heads

start() {
    rm -f address
    "$wardround" serve llama --port 0 --offline --kv-tokens 65536 --max-connections 256 --audit audit --audit-content full >address 2>>heads &
    server=$!
    until [ -s address ]; do sleep 0.05; done
    url=$(sed 's/^listening on //' address)
    until python3 -c "import urllib.request; urllib.request.urlopen('$url/health')" 2>/dev/null; do sleep 0.05; done
}
trap 'kill -9 $server 2>/dev/null || true' EXIT

answered=0
for round in $(seq "$kills"); do
    start
    python3 "$root/tests/acceptance/audit_load.py" "$url" $((requests / kills)) "$server" >answers
    answered=$((answered + $(cat answers)))
    kill -9 "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
done
lines=$("$wardround" audit show audit --event request | grep -c '  done  ')
echo "$answered answers, $lines lines, $kills kills"
[ "$lines" -ge "$answered" ]
# A short run is killed before it tells a head.
known=()
grep -q 'audit head' heads && known=(--heads heads)
"$wardround" verify --audit audit "${known[@]}" >verified || { cat verified; exit 1; }

# A disk that is full: what stands where texts go.
start
ask() {
    curl -s -o /dev/null -w '%{http_code}' "$url/v1/completions" -H 'content-type: application/json' -d '{"prompt":"x","max_tokens":1}'
}
mv audit/content aside
: >audit/content
[ "$(ask)" = 503 ]
[ "$(ask)" = 503 ]
rm audit/content
mv aside audit/content
until [ "$(ask)" = 200 ]; do sleep 0.2; done
kill -TERM "$server"
wait "$server"
echo "a disk that is full: refused, and served again"

# The same bytes again, then half of the texts forgotten.
some=$("$wardround" audit show audit --event request | grep '  done  ' | awk '{print $1}' | shuf -n 100 --random-source="$wardround")
# shellcheck disable=SC2086
"$wardround" replay --audit audit $some --offline --kv-tokens 65536
half=$("$wardround" audit show audit --event request | awk 'NR % 2 {print $1}')
# shellcheck disable=SC2086
"$wardround" audit forget audit $half --why acceptance
"$wardround" verify --audit audit --heads heads | tee verified | tail -4

# An edit, a cut, a swap and a fork in copies without texts.
for change in edit cut swap end; do
    rm -rf changed
    mkdir changed
    cp audit/trail*.jsonl audit/trail.head changed/
    trail=changed/trail.jsonl
    case $change in
        edit) sed -i '7s/"status":"done"/"status":"DONE"/;7s/"verb":"serve"/"verb":"SERVE"/;7s/"event"/"evenT"/' $trail ;;
        cut) sed -i '5d' $trail ;;
        swap) sed -i '5{h;d};6{G}' $trail ;;
        end) sed -i '$d' $trail ;;
    esac
    if "$wardround" verify --audit changed --heads heads >verified 2>&1; then
        echo "$change was not found" >&2
        exit 1
    fi
done
echo "edit, cut, swap and a cut end: each found"
