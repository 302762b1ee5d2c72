#!/usr/bin/env bash
# Makes docs/report.png, the README's picture: a case on the page of the demonstration's run with a real model, in headless Chromium.
#
#     tools/picture.sh [RUN [CASE]]
#
# RUN is the directory of a run; without one the demonstration is run, which fetches the model unless it is there. CASE is an item of it,
# demo-7 unless it says otherwise. Needs chromium (CHROMIUM names it) and pngquant.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
run=${1:-$scratch/demo}
[[ -n ${1:-} ]] || cargo run --quiet --manifest-path "$here/Cargo.toml" -- demo --real --out "$run" --quiet >/dev/null
# One case open and no other shown, and of the sections those of the cases alone.
style='<style>section[aria-labelledby]:not(#cases), details.case:not([open]) { display: none }</style>'
sed -e "s/<details class=\"case\" id=\"[^\"]*${2:-demo-7}\"/& open/" -e "0,/<\/head>/s||$style</head>|" "$run/report.html" >"$scratch/report.html"
"${CHROMIUM:-chromium}" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-color-profile=srgb \
  --user-data-dir="$scratch/profile" --window-size=1180,1240 --screenshot="$scratch/page.png" \
  "file://$scratch/report.html" 2>/dev/null
pngquant --force --strip --speed 1 --output "$here/docs/report.png" 32 "$scratch/page.png"
ls -l "$here/docs/report.png"
