#!/usr/bin/env bash
# What is linked into a release, for scanners: a list of parts (SBOM), their licences, the advisories of the day, and a binary that
# carries its own list.
#
#     tools/sbom.sh OUT [CARGO FLAGS…]      such as tools/sbom.sh out --no-default-features --features serve,airgap
#
# | file of OUT | by | install |
# | sbom/wardround.cdx.json | cargo-cyclonedx | cargo install --locked cargo-cyclonedx@0.5.9 |
# | licences/THIRD-PARTY.html | cargo-about | cargo install --locked cargo-about@0.9.3 --features cli |
# | sbom/advisories.json | cargo-audit | cargo install --locked cargo-audit |
# | bin/wardround, of the commit | tools/release.sh, by cargo-auditable | cargo install --locked cargo-auditable@0.7.7 |
#
# What is not installed is left out, said, and makes the exit code 3. Models are no part of this list.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,13s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
mkdir -p "$out/sbom" "$out/licences" "$out/bin"
# Lists and binary are the same whenever they are made.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
missing=0
have() { # have SUBCOMMAND FILE
    if cargo "$1" --version >/dev/null 2>&1; then
        echo "== $2, by cargo $1"
    else
        echo "left out: $2, since cargo-$1 is not installed" >&2
        missing=3
        return 1
    fi
}

if have cyclonedx sbom/wardround.cdx.json; then
    # It writes beside Cargo.toml, and knows version 1.5 of the format at most; what it writes is of version 1.6 too.
    cargo cyclonedx --format json --spec-version 1.5 --override-filename wardround.cdx "$@"
    python3 - wardround.cdx.json "$out/sbom/wardround.cdx.json" <<'PY'
import json, sys
sbom = json.load(open(sys.argv[1]))
sbom["specVersion"] = "1.6"
sbom["$schema"] = "http://cyclonedx.org/schema/bom-1.6.schema.json"
with open(sys.argv[2], "w") as out:
    json.dump(sbom, out, indent=2)
    out.write("\n")
PY
    rm wardround.cdx.json
fi
if have about licences/THIRD-PARTY.html; then
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    # The licences that deny.toml allows, in its order.
    python3 - >"$scratch/about.toml" <<'PY'
import tomllib
licences = tomllib.load(open("deny.toml", "rb"))["licenses"]
allowed = licences["allow"] + [name for one in licences.get("exceptions", []) for name in one["allow"]]
print("accepted = [" + ", ".join(f'"{name}"' for name in allowed) + "]")
PY
    cat >"$scratch/about.hbs" <<'HBS'
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Third-party licences</title></head><body>
<h1>Third-party licences</h1>
{{#each licenses}}
<h2>{{name}}</h2>
<ul>{{#each used_by}}<li>{{crate.name}} {{crate.version}}</li>{{/each}}</ul>
<pre>{{text}}</pre>
{{/each}}
</body></html>
HBS
    cargo about generate --config "$scratch/about.toml" --output-file "$out/licences/THIRD-PARTY.html" "$@" "$scratch/about.hbs"
fi
if have audit sbom/advisories.json; then
    # Advisories are told in the file; that there are some is no reason to stop.
    cargo audit --json >"$out/sbom/advisories.json" || true
    python3 -m json.tool "$out/sbom/advisories.json" >/dev/null
fi
if have auditable bin/wardround; then
    built=$(mktemp -d)
    trap 'rm -rf "$built" "${scratch:-}"' EXIT
    tools/release.sh "$built" "$@"
    cp "$built/wardround" "$out/bin/"
fi
(cd "$out" && find . -type f ! -name SHA256SUMS | sort | xargs sha256sum | tee SHA256SUMS)
exit $missing
