#!/usr/bin/env bash
# An audit trail under load: requests by the thousand, a server that is killed again and again, a full disk, forgetting, and every kind of change found.
#
#     tests/acceptance/audit.sh OUT [REQUESTS [KILLS]]
#
# OUT is new and gets the trail and the logs; 10000 requests and 50 kills where nothing else is said. Takes the release binary where it
# is built, else the debug one; WARDROUND names another. Needs python3; root for a disk that is really full, else that part is left out.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
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

start() { # start AUDIT FLAGS…
    local audit=$1
    shift
    rm -f address
    "$wardround" serve llama --port 0 --offline --kv-tokens 65536 --audit "$audit" --audit-content full \
        --system medguards --set medguards.agents=1 --set medguards.max_tokens=8 "$@" >address 2>>heads &
    server=$!
    until [ -s address ]; do sleep 0.05; done
    url=$(sed 's/^listening on //' address)
    until python3 -c "import urllib.request; urllib.request.urlopen('$url/health')" 2>/dev/null; do sleep 0.05; done
}
trap 'kill -9 $server 2>/dev/null || true; mountpoint -q small && umount small || true' EXIT

answered=0
for round in $(seq "$kills"); do
    start audit
    python3 "$root/tests/acceptance/audit_load.py" "$url" $((requests / kills)) "$server" >answers
    answered=$((answered + $(cat answers)))
    kill -9 "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
done
lines=$("$wardround" audit show audit | grep '"event":"request"' | grep -c '"status":"done"')
echo "$answered answers, $lines lines, $kills kills"
[ "$lines" -ge "$answered" ]
# A short run is killed before it tells a head.
known=()
grep -q 'audit head' heads && known=(--head "$(awk '/audit head/ {h = $NF} END {print h}' heads)")
"$wardround" audit verify audit "${known[@]}" >verified || { cat verified; exit 1; }

# A disk that is full: what stands where texts go.
start audit
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
python3 - "$url" <<'PY'
import json, sys, urllib.request
for day in range(100):
    note = f"Fever for {day} days. Malaria is treated with aspirin."
    body = json.dumps({"text": note}).encode()
    request = urllib.request.Request(sys.argv[1] + "/v1/check", body, {"content-type": "application/json"})
    assert urllib.request.urlopen(request).status == 200
PY
kill -TERM "$server"
wait "$server"
echo "nowhere to write: refused, and served again"

# A disk that is full indeed.
if [ "$(id -u)" = 0 ]; then
    cp heads heads-of-audit
    mkdir -p small
    mount -t tmpfs -o size=1m tmpfs small
    head -c 200000 /dev/zero >small/ballast
    start small/audit
    served=0
    while [ "$(ask)" = 200 ]; do served=$((served + 1)); done
    [ "$(ask)" = 503 ]
    rm small/ballast
    until [ "$(ask)" = 200 ]; do sleep 0.2; done
    kill -TERM "$server"
    wait "$server"
    "$wardround" audit verify small/audit --head "$(awk '/audit head/ {h = $NF} END {print h}' heads)" >verified || { cat verified; exit 1; }
    python3 - small/audit <<'PY'
import json, pathlib, sys
audit = pathlib.Path(sys.argv[1])
told = {json.loads(line).get("content") for line in open(audit / "trail.jsonl")} - {None}
kept = {path.name.removesuffix(".json") for path in (audit / "content").rglob("*") if path.is_file()}
assert kept == told, (len(kept - told), len(told - kept))
print(f"{len(kept)} texts, each with its line")
PY
    umount small
    mv heads-of-audit heads
    echo "a disk that is full: $served answers, then refused, then served again"
else
    echo "left out: a disk that is really full, which root alone can mount"
fi

# Half of the texts forgotten.
half=$("$wardround" audit show audit | grep '"event":"request"' | awk -F '[:,]' 'NR % 2 {print $2}')
# shellcheck disable=SC2086
"$wardround" audit forget audit $half --why acceptance 2>>heads
head=$(awk '/audit head/ {h = $NF} END {print h}' heads)
"$wardround" audit verify audit --head "$head" | tee verified | tail -4

# In copies without texts, each with the head of its own last line beside it, as whoever changes them would write it: bytes changed,
# lines cut out, lines swapped, ends cut off, and everything written again from some line on, with right hashes.
python3 - "$wardround" "$head" <<'PY'
import hashlib, json, pathlib, random, re, shutil, subprocess, sys

wardround, head, random = sys.argv[1], sys.argv[2], random.Random(7)
here = pathlib.Path("changed")
lines = open("audit/trail.jsonl").read().splitlines()


def is_found(changed):
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    shutil.copy("audit/key", here)
    (here / "trail.jsonl").write_text("\n".join(changed) + "\n")
    for last in [lines[-1], changed[-1]]:
        if said := re.search(r'"seq":(\d+),.*"hash":"([0-9a-f]{64})"', last):
            (here / "trail.head").write_text(f"audit head {said[1]} {said[2]}\n")
    return subprocess.run([wardround, "audit", "verify", here, "--head", head], capture_output=True).returncode == 3


def edited(lines):
    number = random.randrange(len(lines))
    place = random.randrange(len(lines[number]))
    other = random.choice([c for c in "0123456789abcdefx\"" if c != lines[number][place]])
    return lines[:number] + [lines[number][:place] + other + lines[number][place + 1 :]] + lines[number + 1 :]


def cut(lines):
    number = random.randrange(len(lines))
    return lines[:number] + lines[number + 1 :]


def swapped(lines):
    number = random.randrange(len(lines) - 1)
    return lines[:number] + [lines[number + 1], lines[number]] + lines[number + 2 :]


def ended(lines):
    return lines[: -random.randrange(1, min(50, len(lines)))]


def forked(lines):
    """Another time on some line, and all hashes from there on as they must be."""
    number, changed, prev = random.randrange(len(lines)), list(lines), None
    for index in range(number, len(lines)):
        fields = json.loads(changed[index])
        del fields["hash"]
        fields["up_ms"] += index == number
        fields["prev"] = prev or fields["prev"]
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        prev = hashlib.sha256(text.encode()).hexdigest()
        changed[index] = f'{text[:-1]},"hash":"{prev}"}}'
    return changed


assert not is_found(lines)
for change, count in [(edited, 200), (cut, 200), (swapped, 20), (ended, 20), (forked, 20)]:
    missed = sum(not is_found(change(lines)) for _ in range(count))
    print(f"{change.__name__}: {count - missed} of {count} found")
    assert not missed
PY
