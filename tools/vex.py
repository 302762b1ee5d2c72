#!/usr/bin/env python3
"""OpenVEX (0.2.0) of the advisories that deny.toml ignores, each with its reason, on stdout: why a scanner's find is none.

    tools/vex.py DENY_TOML VERSION

VERSION is the program's. AUTHOR names who says so; without it the document says that it is not stated. Its time is SOURCE_DATE_EPOCH. An
entry without a reason is an error. Where nothing is ignored there is no document, for one without a statement is not valid: exit code 4.
"""

import datetime
import hashlib
import json
import os
import sys
import tomllib

NOTHING_IGNORED = 4


def statement(entry, product):
    if isinstance(entry, str) or not entry.get("reason"):
        sys.exit(f"{entry if isinstance(entry, str) else entry.get('id')}: deny.toml gives no reason; write {{ id = \"…\", reason = \"…\" }}")
    return {
        "vulnerability": {"name": entry["id"]},
        "products": [{"@id": product}],
        "status": "not_affected",
        "impact_statement": entry["reason"],
    }


def main(deny, version):
    with open(deny, "rb") as file:
        ignored = tomllib.load(file).get("advisories", {}).get("ignore", [])
    # A crate whose release was withdrawn is no vulnerability.
    ignored = [entry for entry in ignored if isinstance(entry, str) or "id" in entry]
    if not ignored:
        print("deny.toml ignores no advisory", file=sys.stderr)
        sys.exit(NOTHING_IGNORED)
    statements = [statement(entry, f"pkg:cargo/wardround@{version}") for entry in ignored]
    time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    name = hashlib.sha256(json.dumps([version, statements]).encode()).hexdigest()
    document = {
        "@context": "https://openvex.dev/ns/v0.2.0",
        "@id": f"https://openvex.dev/docs/wardround-{name}",
        "author": os.environ.get("AUTHOR") or "not stated",
        "timestamp": time.isoformat().replace("+00:00", "Z"),
        "version": 1,
        "statements": statements,
    }
    print(json.dumps(document, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
