#!/usr/bin/env bash
# The array job of docs/machines.md on a Slurm of its own, one node of four slots: a recipe in four shards that share a store of calls. One
# is killed and queued again, one killed and its directory lost, one queued again while it runs; the run from their store equals the run in one go.
#
#     tests/acceptance/slurm.sh WARDROUND DATA OUT [RECIPE] [ITEMS]
#
# DATA is laid out as `recipe` wants it; OUT is made, and must not hold anything yet; RECIPE is table4, ITEMS 8 unless they are given. PANEL
# names other models than tiny ones, FLAGS what the recipe is run with. Needs Debian's slurm-wlm and munge, root or not, says «skipped:
# no Slurm» where they are missing, and leaves no process behind. Exits 0 when all is well.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
wardround=$(realpath "$1") data=$(realpath "$2") out=$3 recipe=${4:-table4} items=${5:-8}
root=$(cd "$(dirname "$0")/../.." && pwd)
PATH=$PATH:/usr/sbin
for program in munged slurmctld slurmd sbatch; do
    command -v $program >/dev/null || { echo "skipped: no Slurm ($program)"; exit 0; }
done
mkdir -p "$out"
[ -z "$(ls -A "$out")" ] || { echo "$out is not empty" >&2; exit 2; }
out=$(realpath "$out")
fail() { echo "$*" >&2; exit 1; }

# The cluster, under a directory whose path is short enough for a socket.
slurm=$(mktemp -d /tmp/slurm.XXXXXX)
down() {
    trap - EXIT INT TERM
    timeout 20 scancel --quiet --user "$(id -un)" --signal=KILL --full 2>/dev/null || true
    sleep 1
    for daemon in slurmd slurmctld munged; do
        [ ! -e "$slurm/$daemon.pid" ] || kill "$(cat "$slurm/$daemon.pid")" 2>/dev/null || true
    done
    for _ in $(seq 50); do
        ls "$slurm"/*.pid >/dev/null 2>&1 || break
        sleep 0.2
    done
    rm -rf "$slurm"
}
trap down EXIT
trap 'exit 130' INT TERM
chmod 711 "$slurm"
mkdir "$slurm/state" "$slurm/spool"
(umask 077 && head -c 1024 /dev/urandom >"$slurm/munge.key")
read -r controller node < <(python3 -c 'import socket
ports = [socket.socket() for _ in range(2)]
for port in ports: port.bind(("127.0.0.1", 0))
print(*(port.getsockname()[1] for port in ports))')
export SLURM_CONF=$slurm/slurm.conf
cat >"$SLURM_CONF" <<END
ClusterName=ward
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$slurm/munge.socket
SlurmctldPort=$controller
SlurmdPort=$node
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
KillWait=5
MinJobAge=86400
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
END
munged --key-file="$slurm/munge.key" --socket="$slurm/munge.socket" --pid-file="$slurm/munged.pid" \
    --log-file="$slurm/munged.log" --seed-file="$slurm/munged.seed"
slurmctld
slurmd
for _ in $(seq 100); do
    [ "$(sinfo --noheader --format=%T 2>/dev/null)" != idle ] || break
    sleep 0.2
done
[ "$(sinfo --noheader --format=%T)" = idle ] || { cat "$slurm"/*.log >&2; fail "the node did not come up"; }

# The script of the document, to the letter.
sed -n '/^#!\/bin\/bash$/,/^```$/{/^```$/!p}' "$root/docs/machines.md" >"$out/shard.sh"
mkdir "$out/bin"
ln -s "$wardround" "$out/bin/wardround"
export PATH=$out/bin:$PATH
cd "$out"
panel=${PANEL:-tiny-gemma3,tiny-llama,tiny-qwen3}
if [ -z "${PANEL:-}" ]; then
    for family in gemma3 llama qwen3; do
        wardround models synth $family tiny-$family >synth.log
    done
fi
read -ra flags <<<"${FLAGS:---decoding grammar --runs 2 --set record_chars=24}"
order=(recipe "$recipe" --data-dir "$data" --limit "$items" --panel "$panel" --offline "${flags[@]}")
job=$(sbatch --parsable --array=1-4 --job-name=part shard.sh "${order[@]}")

calls() { { cat "part-$1"/cells/*/calls.jsonl 2>/dev/null || true; } | wc -l; }
field() { scontrol --oneliner show job "${job}_$1" | grep -oP "(?<= $2=)[^ ]*"; }
# Once a task has made so many calls.
await() {
    until [ "$(calls "$1")" -ge "$2" ]; do
        [[ $(field "$1" JobState) =~ PENDING|RUNNING|CONFIGURING ]] || { cat slurm-"${job}_$1".out >&2; fail "task $1 ended with $(calls "$1") calls"; }
        sleep 0.1
    done
}
# Queued again, without the two minutes that Slurm waits.
again() {
    # A task that has just ended may still be completing.
    for _ in $(seq 50); do
        ! scontrol requeue "${job}_$1" 2>/dev/null || break
        sleep 0.2
    done
    until [ "$(field "$1" JobState)" = PENDING ]; do sleep 0.2; done
    scontrol update JobId="${job}_$1" StartTime=now
}
await 2 5
kill -9 "$(pgrep -f -- "^wardround recipe .* --out part-2$")"
echo "task 2 killed with $(calls 2) calls"
await 3 5
scancel --signal=KILL --full "${job}_3"
until [[ $(field 3 JobState) =~ FAILED|CANCELLED ]]; do sleep 0.2; done
echo "task 3 killed with $(calls 3) calls, its directory lost"
rm -r part-3
await 4 5
echo "task 4 queued again while it runs, with $(calls 4) calls"
for task in 4 2 3; do again $task; done
for task in 1 2 3 4; do
    while [[ $(field $task JobState) =~ PENDING|RUNNING|COMPLETING|CONFIGURING ]]; do sleep 0.5; done
    state="$(field $task JobState), exit code $(field $task ExitCode), $(field $task Restarts) restarts"
    echo "task $task: $state"
    [ "$(field $task ExitCode)" = 0:0 ] || { cat slurm-"${job}_$task".out >&2; fail "task $task: $state"; }
done
grep -h "store of calls" slurm-"${job}"_*.out || true

held() { find calls -name '*.call' | wc -l; }
kept=$(held)
rm -r part-1
wardround "${order[@]}" --quiet --out whole >whole.md
wardround "${order[@]}" --quiet --calls calls --out stored >stored.md 2>stored.log
! grep "not used" stored.log || fail "the store holds what is damaged"
[ "$(held)" = "$kept" ] || fail "the run in one go computed $(($(held) - kept)) calls that the shards had not kept"
python3 "$root/tests/acceptance/equal.py" whole stored
for cell in stored/cells/*; do
    wardround verify "$cell" >>verify.log
    cmp "$cell/dataset.jsonl" "whole/${cell#stored/}/dataset.jsonl"
done
echo "$(cat whole/cells/*/calls.jsonl | wc -l) logged calls, $kept in the store"
