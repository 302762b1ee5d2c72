#!/usr/bin/env bash
# What is in `deploy/`, checked as far as this machine can:
#
#     tests/acceptance/system.sh OUT
#
# 1. systemd-analyze: the exposure of each unit, against its goal                    (needs systemd-analyze)
# 2. every flag in a unit is one of `wardround serve`
# 3. every system call that a server makes in its sandbox passes the units' filter    (needs strace, systemd-analyze, python3)
# 4. the rules of nftables load in a network of their own, drop what the service sends and let it answer  (needs root, nft, unshare, ip)
#
# What cannot be checked here is said. Takes the debug binary, or the one that WARDROUND names.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
wardround=${WARDROUND:-${CARGO_TARGET_DIR:-$root/target}/debug/wardround}
have() { command -v "$1" >/dev/null; }
cd "$out"

echo "== exposure"
if have systemd-analyze; then
    systemd-analyze --version | head -1
    for unit in "$root"/deploy/*.service; do
        goal=$(sed -n 's/^# The goal: .* at most \([0-9.]*\) .*/\1/p' "$unit")
        level=$(systemd-analyze security --offline=true "$unit" 2>/dev/null | sed -n 's/.*Overall exposure level.*: \([0-9.]*\) .*/\1/p')
        echo "$(basename "$unit"): $level, goal $goal"
        python3 -c "import sys; sys.exit(float('$level') > float('$goal'))"
    done
else
    echo "left out: systemd-analyze is not here"
fi

echo "== flags"
"$wardround" serve --help >help
for unit in "$root"/deploy/*.service; do
    for flag in $(sed -n 's/^ExecStart=//p' "$unit" | grep -o -- '--[a-z-]*'); do
        grep -qE -- "^ +(-., )?$flag( |\$)" help || {
            echo "$(basename "$unit"): serve has no $flag" >&2
            exit 1
        }
    done
done
for flag in $(sed -n 's/^# *wardround serve //p' "$root/deploy/Containerfile" | grep -o -- '--[a-z-]*'); do
    grep -qE -- "^ +$flag( |\$)" help
done
echo "all are there"

echo "== system calls"
if have strace && have systemd-analyze; then
    [ -d llama ] || "$wardround" models synth llama llama >/dev/null
    "$wardround" keys add keys ward >key
    rm -f address calls
    strace -f -qq -o calls "$wardround" serve llama --port 0 --offline --sandbox require --kv-tokens 32768 --keys keys --audit audit >address 2>stderr &
    tracer=$!
    trap 'kill -9 "$tracer" 2>/dev/null || true' EXIT
    until [ -s address ]; do sleep 0.1; done
    python3 - "$(sed 's|.*//||' address)" "$(head -1 key)" <<'PY'
import http.client, json, sys, time
address, key = sys.argv[1:]
def ask(method, where, body=None):
    connection = http.client.HTTPConnection(address, timeout=600)
    connection.request(method, where, body and json.dumps(body), {"authorization": f"Bearer {key}", "content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()
for _ in range(1200):
    try:
        if ask("GET", "/health")[0] == 200:
            break
    except OSError:
        pass
    time.sleep(0.1)
chat = {"model": "llama", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
for body in [chat, {**chat, "stream": True}, {**chat, "response_format": {"type": "json_object"}}]:
    status, _ = ask("POST", "/v1/chat/completions", body)
    assert status == 200, status
assert ask("GET", "/metrics")[0] == 200
PY
    pkill -TERM -P "$tracer"
    wait "$tracer"
    grep -q 'files by Landlock' stderr
    for unit in "$root"/deploy/*.service; do
        python3 - "$unit" calls <<'PY'
import re, subprocess, sys
unit, calls = sys.argv[1:]
def expand(name):
    if not name.startswith("@"):
        return {name}
    text = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True).stdout
    names = [line.strip() for line in text.splitlines()[1:]]
    return set().union(*(expand(name) for name in names if name and not name.startswith("#")))
allowed = set()
for line in open(unit):
    if not line.startswith("SystemCallFilter="):
        continue
    value = line.split("=", 1)[1].strip()
    names = set().union(*(expand(name) for name in value.lstrip("~").split()))
    allowed = allowed - names if value.startswith("~") else allowed | names
made = set(re.findall(r"^\d+ +([a-z_0-9]+)\(", open(calls).read(), re.M))
denied = sorted(made - allowed)
print(f"{unit.rsplit('/', 1)[1]}: {len(made)} kinds of calls were made; denied: {', '.join(denied) or 'none'}")
sys.exit(bool(denied))
PY
    done
else
    echo "left out: strace or systemd-analyze is not here"
fi

echo "== nftables"
if [ "$(id -u)" = 0 ] && have nft && have unshare && have ip; then
    # Mounts and the network are this process's own; the control group is removed again.
    unshare -m -n bash -euo pipefail -s "$root/deploy/wardround.nft" <<'BASH'
mount -t cgroup2 none /sys/fs/cgroup
group=/sys/fs/cgroup/system.slice/wardround.service
if [ -d $group ]; then
    echo "left out: the service runs here" && exit 0
fi
slice=$([ -d /sys/fs/cgroup/system.slice ] || echo /sys/fs/cgroup/system.slice)
mkdir -p $group
tidy() { sleep 0.3; rmdir $group; if [ -n "$slice" ]; then rmdir "$slice"; fi; }
trap tidy EXIT
ip link set lo up
nft -c -f "$1"
nft -f "$1"
# Once more: a service that was started again.
nft -f "$1"
cat >/tmp/wardround-nft.$$.py <<'PY'
import socket, sys
listening = socket.create_server(("127.0.0.1", 8000))
print("listening", flush=True)
connection, _ = listening.accept()
connection.sendall(connection.recv(10))
sent = []
for kind, call in [(socket.SOCK_DGRAM, lambda s: s.sendto(b"x", ("127.0.0.1", 9))), (socket.SOCK_STREAM, lambda s: s.connect(("127.0.0.1", 9000)))]:
    with socket.socket(socket.AF_INET, kind) as out:
        out.settimeout(1.5)
        try:
            call(out)
            sent.append(kind)
        except OSError as error:
            print("refused:", error)
sys.exit(bool(sent))
PY
python3 -c 'import socket,time; s = socket.create_server(("127.0.0.1", 9000)); time.sleep(20)' &
open=$!
( echo $BASHPID >$group/cgroup.procs; exec python3 /tmp/wardround-nft.$$.py ) >said &
service=$!
until grep -q listening said 2>/dev/null; do sleep 0.1; done
python3 -c 'import socket; s = socket.create_connection(("127.0.0.1", 8000), 5); s.sendall(b"ask"); assert s.recv(10) == b"ask"; print("a client is answered")'
wait $service
cat said
kill $open
rm -f /tmp/wardround-nft.$$.py said
packets=$(nft list counter inet wardround egress | sed -n 's/.*packets \([0-9]*\).*/\1/p')
echo "$packets packets dropped"
[ "$packets" -ge 2 ]
BASH
elif have nft; then
    echo "left out: nft checks rules as root alone"
else
    echo "left out: nft is not here"
fi
