#!/usr/bin/env bash
# How a release was built (SLSA provenance) and an advisory that does not concern it (OpenVEX), read by readers that are not ours.
#
#     tests/acceptance/provenance.sh OUT
#
# OUT gets both, and a venv with in-toto-attestation and vexipy unless READERS names one. Takes the release binary where it is built, else the
# debug one; WARDROUND names another.
set -euo pipefail

if [ $# -ne 1 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
wardround=${WARDROUND:-$target/release/wardround}
[ -x "$wardround" ] || wardround=$target/debug/wardround
readers=${READERS:-$out/venv}
if [ ! -x "$readers/bin/python" ]; then
    python3 -m venv "$readers"
    "$readers/bin/pip" install -q in-toto-attestation==0.9.3 vexipy
fi
python=$readers/bin/python

commit=$(git -C "$root" rev-parse HEAD)
BUILDER=https://builder.example "$root/tools/provenance.py" "$wardround" "$root" "$commit" --features serve,airgap >"$out/provenance.json"
printf '[advisories]\nignore = [{ id = "RUSTSEC-2020-0001", reason = "what it is about is never called" }]\n' >"$out/deny.toml"
SOURCE_DATE_EPOCH=1700000000 "$root/tools/vex.py" "$out/deny.toml" 0.1.0 >"$out/openvex.json"
"$python" -P -W ignore - "$out" "$commit" <<'PY'
import pathlib, sys
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from vexipy import Document
out, commit = pathlib.Path(sys.argv[1]), sys.argv[2]
statement = json_format.Parse((out / "provenance.json").read_text(), statement_pb2.Statement())
Statement.copy_from_pb(statement).validate()
provenance = json_format.ParseDict(json_format.MessageToDict(statement.predicate), provenance_pb2.Provenance())
needed = provenance.build_definition.resolved_dependencies
assert needed[0].digest["gitCommit"] == commit
print(f"SLSA provenance: by {provenance.run_details.builder.id}, of {len(needed)} materials")
(said,) = Document.from_json((out / "openvex.json").read_text()).statements
print(f"OpenVEX: {said.vulnerability.name} {said.status}: {said.impact_statement}")
PY
