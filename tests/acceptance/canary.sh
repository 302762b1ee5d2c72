#!/usr/bin/env bash
# Texts of patients stay in the process: a word that stands for them goes through requests good and bad, and is then looked for
# wherever a process leaves something behind.
#
#     tests/acceptance/canary.sh OUT [REQUESTS]
#
# OUT is new; 200 requests where nothing else is said. First without a sandbox, which shows that the looking finds something: a core dump
# and a debugger have the word. Then under `--sandbox auto`, where neither gets it. Run as root it serves as `nobody`, since no rule keeps root
# out. Takes the debug binary, or the one that WARDROUND names. Needs python3; gcore of gdb for the debugger, else that part is left out.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
requests=${2:-200}
root=$(cd "$(dirname "$0")/../.." && pwd)
wardround=${WARDROUND:-${CARGO_TARGET_DIR:-$root/target}/debug/wardround}
canary=tweetzalcoatl
as=()
if [ "$(id -u)" = 0 ]; then
    as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    chown 65534:65534 "$out"
    chmod 0755 "$out"
fi
cd "$out"
export HOME=$out
ulimit -c unlimited
pattern=$(cat /proc/sys/kernel/core_pattern)
began=$(date "+%F %T")

found() { # found WHERE FILE…: fails where the word is
    local where=$1
    shift
    if grep -laF -e "$canary" -e "$key" "$@" 2>/dev/null; then
        echo "the word or the key is in $where" >&2
        exit 1
    fi
    echo "not in $where"
}

"${as[@]}" "$wardround" models synth llama llama >/dev/null
key=$("${as[@]}" "$wardround" keys add keys ward | sed -n 1p)
printf '%s was given. Malaria is treated with aspirin.' "$canary" >note.txt

start() { # start NAME SANDBOX
    mkdir -p "$1"
    [ "$(id -u)" = 0 ] && chown 65534:65534 "$1"
    cp -r llama keys "$1/"
    [ "$(id -u)" = 0 ] && chown -R 65534:65534 "$1"
    (cd "$1" && exec "${as[@]}" "$wardround" serve llama --port 0 --offline --threads 2 --kv-tokens 32768 --keys keys --audit audit \
        --sandbox "$2" --system medguards --set medguards.agents=1 --set medguards.max_tokens=8 >address 2>stderr) &
    server=$!
    until [ -s "$1/address" ]; do sleep 0.1; done
    url=$(sed 's/^listening on //' "$1/address")
    until python3 -c "import urllib.request; urllib.request.urlopen('$url/health')" 2>/dev/null; do sleep 0.1; done
}
trap 'kill -9 "$server" 2>/dev/null || true' EXIT

ask() { # ask COUNT: good and bad requests in turn; prints how many ended well and how many were refused, and keeps what refusals say
    python3 - "$url" "$key" "$canary" "$1" <<'PY'
import json, sys, urllib.error, urllib.request
url, key, canary, count = sys.argv[1:4] + [int(sys.argv[4])]
text = lambda n: [{"role": "user", "content": f"{canary} {n}"}]
kinds = [
    lambda n: ("/v1/chat/completions", "application/json", {"model": "llama", "messages": text(n), "max_tokens": 2}, None),
    lambda n: ("/v1/chat/completions", "application/json", {"model": canary, "messages": text(n)}, None),
    lambda n: ("/v1/chat/completions", "application/json", canary, None),
    lambda n: ("/v1/completions", "application/json", {"model": "llama", "prompt": canary * 20000}, None),
    lambda n: ("/v1/completions", "application/json", {"model": "llama", "prompt": f"{canary} {n}", "max_tokens": 2, "stream": True}, None),
    lambda n: ("/v1/chat/completions", "application/json", {"model": "llama", "messages": text(n), "structured_outputs": {"regex": f"({canary}"}}, None),
    lambda n: ("/v1/check", "application/json", {"text": f"{canary} was given on day {n}. Well."}, None),
    lambda n: ("/v1/check", canary, canary, None),
    lambda n: ("/v1/check", "application/json", {canary: canary}, None),
    lambda n: (f"/{canary}?{canary}={canary}", "application/json", {}, None),
    lambda n: ("/v1/models", "application/json", None, canary),
    lambda n: ("/v1/chat/completions", "application/json", {"model": "llama", "messages": text(n), "temperature": canary}, None),
]
good = bad = 0
for n in range(count):
    path, kind, body, other = kinds[n % len(kinds)](n)
    data = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
    headers = {"authorization": f"Bearer {other or key}", "content-type": kind}
    try:
        urllib.request.urlopen(urllib.request.Request(url + path, data, headers)).read()
        good += 1
    except urllib.error.HTTPError as error:
        error.read()
        bad += 1
request = urllib.request.Request(url + "/metrics", headers={"authorization": f"Bearer {key}"})
open("metrics", "wb").write(urllib.request.urlopen(request).read())
print(f"{good} answered, {bad} refused")
assert good and bad
PY
}

core_of() { # core_of DIR: what a core dump of the server would be called
    find "$1" -maxdepth 1 -name 'core*' 2>/dev/null
}

for mode in off auto; do
    echo "== --sandbox $mode"
    rm -rf "$mode"
    start "$mode" "$mode"
    ask "$requests"
    tr '\0' ' ' <"/proc/$server/cmdline" >"$mode/cmdline"
    found "/proc/PID/cmdline" "$mode/cmdline"
    found "/metrics" metrics
    found "stderr" "$mode/stderr"
    found "the audit trail" "$mode"/audit/trail*.jsonl
    if command -v gcore >/dev/null; then
        rm -f dump.*
        "${as[@]}" gcore -o dump "$server" >gcore.log 2>&1 || true
        if [ "$mode" = off ]; then
            if grep -qaF "$canary" dump.* 2>/dev/null; then echo "a debugger finds the word"; else echo "a debugger is kept out by the kernel (ptrace_scope): nothing to compare with"; fi
        else
            [ -z "$(find . -maxdepth 1 -name 'dump.*')" ] || { echo "a debugger got in" >&2; exit 1; }
            grep -qi "not permitted\|could not attach" gcore.log || { cat gcore.log >&2; exit 1; }
            echo "gcore refused"
        fi
        rm -f dump.*
    else
        echo "left out: the debugger, since gcore is not there"
    fi
    # The first is taken by the runtime, which looks for an overflown stack and leaves the next one to the kernel.
    kill -SEGV "$server"
    sleep 1
    kill -SEGV "$server"
    wait "$server" 2>/dev/null || true
    case $pattern in
        /* | '|'*) echo "left out: core dumps, which go to $pattern" ;;
        *)
            core=$(core_of "$mode")
            if [ "$mode" = off ]; then
                [ -n "$core" ] && grep -qaF "$canary" $core || { echo "without a sandbox there is no core dump to compare with" >&2; exit 1; }
                echo "a core dump has the word"
                rm -f $core
            else
                [ -z "$core" ] || { echo "there is a core dump" >&2; exit 1; }
                echo "no core dump"
            fi
            ;;
    esac
    found "files of the server" $(find "$mode" -type f ! -path '*/llama/*')
done

echo "== check"
"${as[@]}" "$wardround" check - --json --offline --panel llama --set agents=1 --set max_tokens=8 --kv-tokens 8192 --threads 2 \
    --sandbox auto <note.txt >checked 2>check.stderr || true
found "stderr of check" check.stderr
"${as[@]}" "$wardround" check note.txt --json --offline --panel llama --set agents=none --sandbox auto >checked 2>check-refused.stderr &&
    exit 1
found "stderr of a check that was refused" check-refused.stderr
if command -v journalctl >/dev/null && journalctl --since "$began" >journal 2>/dev/null && [ -s journal ]; then
    found "the journal of this machine since then" journal
else
    echo "left out: the journal, since there is none"
fi
echo "the word was found nowhere, nor the key"
