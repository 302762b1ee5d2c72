#!/usr/bin/env bash
# Makes docs/report.png, the README's picture: a case on the page of the demonstration's run, in headless Chromium.
#
#     tools/picture.sh [RUN]
#
# RUN is the directory of a run; without one the demonstration is run. Needs chromium (CHROMIUM names it) and pngquant.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
run=${1:-$scratch/demo}
[[ -n ${1:-} ]] || cargo run --quiet --manifest-path "$here/Cargo.toml" -- demo --out "$run" --quiet >/dev/null
# The first case open, and of the sections those of the cases alone.
style='<style>section[aria-labelledby]:not(#cases) { display: none }</style>'
sed -e '0,/<details class="case"/s//<details open class="case"/' -e "0,/<\/head>/s||$style</head>|" "$run/report.html" >"$scratch/report.html"
"${CHROMIUM:-chromium}" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-color-profile=srgb \
  --user-data-dir="$scratch/profile" --window-size=1180,1240 --screenshot="$scratch/page.png" \
  "file://$scratch/report.html" 2>/dev/null
pngquant --force --strip --speed 1 --output "$here/docs/report.png" 32 "$scratch/page.png"
ls -l "$here/docs/report.png"
