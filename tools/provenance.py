#!/usr/bin/env python3
"""SLSA provenance (v1, as an in-toto statement) of a binary that tools/release.sh built, on stdout. It is signed elsewhere.

    tools/provenance.py BINARY TREE COMMIT [CARGO FLAGS…]

TREE is the source that was built, COMMIT its name in git. BUILDER is a URI that names who built it, and SOURCE one where the source is had;
what is not given is said to be not stated, or left out. The crates are those that Cargo.lock names, whatever features were built.
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tomllib


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def version(tool):
    return subprocess.run([tool, "--version"], check=True, capture_output=True, text=True).stdout.strip()


def crate(package):
    name, number = package["name"], package["version"]
    return {"name": name, "uri": f"pkg:cargo/{name}@{number}", "digest": {"sha256": package["checksum"]}}


def main(binary, tree, commit, *flags):
    lock = pathlib.Path(tree) / "Cargo.lock"
    # Crates of the repository itself have no checksum: the commit covers them.
    crates = [crate(package) for package in tomllib.loads(lock.read_text())["package"] if "checksum" in package]
    source = {"name": "source", "digest": {"gitCommit": commit}}
    if os.environ.get("SOURCE"):
        source["uri"] = f"git+{os.environ['SOURCE']}@{commit}"
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": pathlib.Path(binary).name, "digest": {"sha256": sha256(binary)}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:wardround:tools/release.sh:1",
                "externalParameters": {"commit": commit, "flags": list(flags)},
                "internalParameters": {"sourceDateEpoch": os.environ.get("SOURCE_DATE_EPOCH", "")},
                "resolvedDependencies": [source, {"name": "Cargo.lock", "digest": {"sha256": sha256(lock)}}, *crates],
            },
            "runDetails": {
                "builder": {
                    "id": os.environ.get("BUILDER") or "urn:wardround:builder:not-stated",
                    "version": {tool: version(tool) for tool in ("rustc", "cargo")},
                },
            },
        },
    }
    print(json.dumps(statement, indent=2))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
