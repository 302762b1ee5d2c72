#!/usr/bin/env bash
# Makes docs/report.png, the README's picture: the page of the demonstration's run in headless Chromium.
#
#     tools/picture.sh [WARDROUND]
#
# Needs chromium (CHROMIUM names it) and pngquant; WARDROUND is the binary, built by cargo where it is not given.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [[ -n ${1:-} ]]; then demo=("$1"); else demo=(cargo run --quiet --); fi
"${demo[@]}" demo --out "$scratch/demo" --quiet >/dev/null
# Wide enough for the columns of the agents; high enough for a question, its first round and the vote.
"${CHROMIUM:-chromium}" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-color-profile=srgb \
  --user-data-dir="$scratch/profile" --window-size=1180,1100 --screenshot="$scratch/page.png" \
  "file://$scratch/demo/report.html" 2>/dev/null
pngquant --force --strip --speed 1 32 --output docs/report.png "$scratch/page.png"
ls -l docs/report.png
