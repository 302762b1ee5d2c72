#!/usr/bin/env bash
# That the program talks to nobody, and that its sandbox changes nothing but what it may do.
#
#     tests/acceptance/sandbox.sh OUT [ROUNDS]
#
# OUT is made. Takes the release binary where it is built, else the debug one; WARDROUND names another. Needs strace, unshare (as root, or with
# user namespaces), ip, curl and python3. Checked are: a run, a check and a server give the same bytes under `--sandbox require` as under `off`;
# under strace `run`, `check`, `report`, `bench` and `serve` open no socket but serve's listener, no file of name resolution, and none for writing but what was named; all of it works in
# a network namespace without any interface but loopback. RECORD_CHARS shortens the run (default 200). Printed is the time of the run with and without the sandbox, the fastest of ROUNDS (default 5) in turns, and what the
# filter of calls can cost at most.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
rounds=${2:-5}
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
wardround=${WARDROUND:-$target/release/wardround}
[ -x "$wardround" ] || wardround=$target/debug/wardround
unset WARDROUND_SANDBOX
export http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

cd "$out"
rm -rf tiny off require calls.strace ./*.strace run-*
"$wardround" models synth qwen3 tiny >synth.log
cp "$root/src/data/demo.jsonl" questions.jsonl
printf 'Fever for two days.\nMalaria is treated with aspirin.\n' >note.txt
run=(run medmad --data questions.jsonl --format mcq --panel tiny --set record_chars="${RECORD_CHARS:-200}" --offline --quiet)
check=(check note.txt --panel tiny --offline --set record_chars=40 --json)

echo "== the same bytes"
declare -A best
for round in $(seq "$rounds"); do
    for mode in off require; do
        rm -rf "$mode"
        mkdir "$mode"
        began=$(date +%s%N)
        "$wardround" "${run[@]}" --sandbox "$mode" --out "$mode/run" >/dev/null
        took=$((($(date +%s%N) - began) / 1000))
        [ "${best[$mode]:-$took}" -lt "$took" ] || best[$mode]=$took
        [ "$round" -gt 1 ] || "$wardround" "${check[@]}" --sandbox "$mode" >"check-$mode.json"
    done
done
python3 "$root/tests/acceptance/equal.py" off require
python3 - <<'P'
import json

def answer(mode):
    return {key: value for key, value in json.load(open(f"check-{mode}.json")).items() if "elapsed" not in key}

assert answer("off") == answer("require"), "the checks differ"
P
awk -v off="${best[off]}" -v on="${best[require]}" 'BEGIN {
    printf "a run of eight questions: %.3f s without, %.3f s with the sandbox (%+.1f %%)\n", off / 1e6, on / 1e6, 100 * (on / off - 1) }'

port=$(python3 -c 'import socket; own = socket.create_server(("127.0.0.1", 0)); print(own.getsockname()[1])')
serve() { # serve COMMAND…: a server, asked once; what it answers goes to stdout
    "$@" serve tiny --port "$port" >serve.log 2>&1 &
    local process=$!
    for _ in $(seq 300); do grep -q '^ready' serve.log && break || sleep 0.1; done
    curl -s --noproxy '*' "http://127.0.0.1:$port/v1/chat/completions" -H 'content-type: application/json' \
        -d '{"model": "tiny", "seed": 1, "max_tokens": 16, "messages": [{"role": "user", "content": "Hello"}]}' |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["choices"])'
    # strace waits for its child.
    pkill -TERM -P "$process" || kill "$process"
    wait "$process" || true
}
serve env WARDROUND_SANDBOX=off "$wardround" >off/serve
serve env WARDROUND_SANDBOX=require "$wardround" >require/serve
cmp off/serve require/serve

echo "== no socket, by strace"
traced() { # traced NAME COMMAND…
    local name=$1
    shift
    strace -f -qq -e trace=network,openat,open -o "$name.strace" "$@" >/dev/null 2>"$name.err" || fail "$name under strace: $(tail -3 "$name.err")"
}
# Without the sandbox: a socket that it would refuse must not even be tried.
traced run "$wardround" "${run[@]}" --sandbox off --out run-traced
traced check "$wardround" "${check[@]}" --sandbox off
traced report "$wardround" report run-traced
traced bench "$wardround" bench --model tiny --prompt-tokens 16 --generate-tokens 4 --offline
serve strace -f -qq -e trace=network,openat,open -o serve.strace env WARDROUND_SANDBOX=off "$wardround" >serve.answer
cmp off/serve serve.answer
for trace in *.strace; do
    [ -s "$trace" ] || fail "$trace is empty"
    if grep -E 'socket\(AF_NETLINK|connect\(|/etc/(resolv\.conf|hosts|nsswitch\.conf)' "$trace"; then fail "$trace: the network was tried"; fi
done
if grep 'socket(AF_INET' run.strace check.strace report.strace bench.strace; then fail "a socket of the network was made"; fi
[ "$(grep -c 'socket(AF_INET' serve.strace)" = 1 ] || fail "serve made more sockets than its listener"
grep -q "bind(.*htons($port)" serve.strace || fail "the one socket of serve is not its listener"

echo "== no file is opened for writing outside of what was named"
python3 - "$out" run-traced run.strace check.strace serve.strace <<'P'
import os, re, sys

out, run, *traces = sys.argv[1:]
# The run's directory alone; `check` and `serve` were told of none. A terminal and nothing are no files.
named = os.path.join(out, run)
wrong = []
for trace in traces:
    for line in open(trace, errors="replace"):
        found = re.search(r'open(?:at)?\((?:[^,"]*, )?"([^"]*)", ([A-Z_|]+)', line)
        if not found or not re.search(r"O_WRONLY|O_RDWR|O_CREAT", found[2]) or " = -1 " in line:
            continue
        path = os.path.normpath(os.path.join(out, found[1]))
        if path not in ("/dev/null", "/dev/tty") and not path.startswith(named):
            wrong.append(f"{trace}: {line.strip()}")
assert not wrong, "\n".join(wrong)
P

echo "== what the filter costs"
# A machine's times differ by more than a filter costs, so that it is bounded: all calls of the run, each behind more comparisons than the filter has.
strace -f -c -qq -o calls.count "$wardround" "${run[@]}" --sandbox off --out run-counted >/dev/null
python3 - "$wardround" "${run[@]}" --sandbox off --out run-timed <<'P'
import ctypes, os, resource, struct, subprocess, sys, time

COMPARISONS = 300
calls = int(next(line.split()[3] for line in open("calls.count") if line.endswith(" total\n")))
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)

def call_seconds():
    def once():
        began = time.perf_counter()
        for _ in range(100_000):
            os.getppid()
        return (time.perf_counter() - began) / 100_000
    return min(once() for _ in range(5))

free = call_seconds()
# Loads the call's number, compares it with numbers that no call has, and allows it.
program = struct.pack("HBBI", 0x20, 0, 0, 0)
program += b"".join(struct.pack("HBBI", 0x15, 0, 0, 100_000 + one) for one in range(COMPARISONS))
program += struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0, "no_new_privs"
given = Program(COMPARISONS + 2, program)
assert libc.prctl(22, 2, ctypes.byref(given), 0, 0) == 0, os.strerror(ctypes.get_errno())
each = call_seconds() - free
share = calls * each / (used.ru_utime + used.ru_stime)
print(f"{calls} calls at {each * 1e6:.2f} us: at most {100 * share:.2f} % of the run's {used.ru_utime + used.ru_stime:.2f} s of computing")
assert share < 0.01
P

echo "== without any network"
alone=(unshare -n)
unshare -n true 2>/dev/null || alone=(unshare -rn)
"${alone[@]}" "$wardround" "${run[@]}" --sandbox require --out run-alone >/dev/null
"${alone[@]}" "$wardround" "${check[@]}" --sandbox require >check-alone.json
export port
export -f serve
"${alone[@]}" bash -euo pipefail -c 'ip link set lo up; serve env WARDROUND_SANDBOX=require "$0"' "$wardround" >serve-alone
cmp off/serve serve-alone

"$wardround" doctor
echo "all is well"
