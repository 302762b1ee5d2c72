#!/usr/bin/env bash
# Published chat templates, rendered by transformers and here: the same bytes, and chats that either refuses are refused by both.
#
#     tests/acceptance/templates.sh FOLDER
#
# FOLDER has templates, each a file *.jinja; the source package of llama-cpp-python has 70 (vendor/llama.cpp/models/templates). They are others'
# texts, and are not among the goldens. Each meets the chats of tests/goldens/templates/render.py, with thinking and without. Needs cargo, and
# transformers, jinja2 and tokenizers of the versions that render.py names: in a venv of its own unless CLIENTS names one.
set -euo pipefail

if [ $# -ne 1 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
clients=${CLIENTS:-$work/venv}
if [ ! -x "$clients/bin/python" ]; then
    python3 -m venv "$clients"
    grep -o 'transformers==[0-9.]* jinja2==[0-9.]* tokenizers==[0-9.]*' tests/goldens/templates/render.py |
        xargs "$clients/bin/pip" install -q
fi
mkdir "$work/templates"
cp "$folder"/*.jinja "$work/templates"
"$clients/bin/python" tests/goldens/templates/render.py "$work/templates"
WARDROUND_TEMPLATES=$work/templates cargo test --locked --test engine -- --ignored --nocapture with_templates_
