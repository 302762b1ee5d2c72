#!/usr/bin/env bash
# Formats of the field, read by readers that are not ours: what `export` writes of runs.
#
#     tests/acceptance/formats.sh OUT [RUN…]
#
# RUN is the directory of a finished run; without one, the demo's is made. OUT gets the exports, and a venv with every-eval-ever, inspect-ai,
# in-toto-attestation, securesystemslib and vexipy unless READERS names one. Takes the release binary where it is built, else the debug one; WARDROUND
# names another. Needs openssl.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
wardround=${WARDROUND:-$target/release/wardround}
[ -x "$wardround" ] || wardround=$target/debug/wardround
readers=${READERS:-$out/venv}
if [ ! -x "$readers/bin/inspect" ]; then
    python3 -m venv "$readers"
    "$readers/bin/pip" install -q inspect-ai==0.3.285 in-toto-attestation==0.9.3 "securesystemslib[crypto]" vexipy jsonschema pydantic rich requests pyyaml
    # It asks for Python 3.12, for what converts; what validates runs on 3.11.
    "$readers/bin/pip" install -q --no-deps --ignore-requires-python every-eval-ever==0.3.0
fi
python=$readers/bin/python
runs=("$@")
if ((${#runs[@]} == 0)); then
    rm -rf "$out/demo"
    "$wardround" demo --out "$out/demo" --offline >"$out/demo.log" 2>&1
    runs=("$out/demo")
fi

rm -rf "$out/exports"
for run in "${runs[@]}"; do
    for form in every-eval-ever inspect in-toto; do
        "$wardround" export "$run" --as "$form" --out "$out/exports/$(basename "$run")/$form" >/dev/null
    done
    "$wardround" verify "$run" --attestation "$out/exports/$(basename "$run")"/in-toto/*.intoto.json | tail -3
    "$python" -P "$root/tests/acceptance/formats.py" "$run" "$out/exports/$(basename "$run")"
done

echo "== a statement, signed by openssl as docs/formats.md has it"
openssl ecparam -name prime256v1 -genkey -noout -out "$out/lab.pem" 2>/dev/null
openssl ec -in "$out/lab.pem" -pubout -out "$out/lab.pub" 2>/dev/null
type=application/vnd.in-toto+json file=$(find "$out/exports" -name '*.intoto.json' | head -1)
signature=$({ printf 'DSSEv1 %d %s %d ' ${#type} $type $(stat -c %s $file); cat $file; } | openssl dgst -sha256 -sign "$out/lab.pem" | base64 -w0)
printf '{"payloadType":"%s","payload":"%s","signatures":[{"keyid":"","sig":"%s"}]}\n' $type $(base64 -w0 $file) $signature >"$out/evaluation.dsse.json"
"$python" -P - "$out/evaluation.dsse.json" "$out/lab.pub" <<'PY'
import json, sys
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey
key = SSlibKey.from_crypto(load_pem_public_key(open(sys.argv[2], "rb").read()))
envelope = json.load(open(sys.argv[1]))
# It looks for keys by their names alone, which DSSE leaves to the signer.
envelope["signatures"][0]["keyid"] = key.keyid
verified = Envelope.from_dict(envelope).verify([key], 1)
print(f"securesystemslib: the envelope holds by {len(verified)} key")
PY

echo "== how a release was built, and an advisory that does not concern it"
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
echo "all formats were read"
