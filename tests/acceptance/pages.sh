#!/usr/bin/env bash
# Opens pages in headless Chromium at 1280 and 390 pixels, everything unfolded, and fails where an element leaves its parent, its text leaves
# it, or a heading breaks inside a word.
#
#     tests/acceptance/pages.sh PAGE...
#
# PAGE is the report.html of a run on questions or on notes, that of a recipe, or a page of `compare --out`. Needs chromium (CHROMIUM names
# it). What scrolls in a container of its own may be wider than it.
set -euo pipefail
[[ $# -gt 0 ]] || { sed -n 5p "$0" >&2; exit 2; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/look.html" <<'SCRIPT'
<script>
addEventListener("load", () => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  const found = new Set();
  const tell = (what, one) => found.add(`${what}: <${one.tagName.toLowerCase()} class="${one.className}"> ${one.textContent.trim().slice(0, 60)}`);
  for (const one of document.body.querySelectorAll("*")) {
    const style = getComputedStyle(one);
    const box = one.getBoundingClientRect();
    const scrolls = one.parentElement.closest(".scroll, pre, .unseen");
    const around = one.parentElement.getBoundingClientRect();
    // What is set in a place of its own stays beside what it belongs to.
    if (style.position === "absolute" && !one.matches(".skip, .unseen, input") && box.width > 0 && (box.top < around.top - 1 || box.top > around.bottom)) tell("is elsewhere than its parent", one);
    if (scrolls || ["absolute", "fixed"].includes(style.position) || box.width === 0 || one.tagName === "SCRIPT") continue;
    if (getComputedStyle(one.parentElement).display !== "inline" && (box.right > around.right + 1 || box.left < around.left - 1)) tell("leaves its parent", one);
    if (style.overflowX === "visible" && one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1) tell("its text leaves it", one);
  }
  for (const one of document.querySelectorAll("h1, h2, h3, th, .head span, .badge, .chip span")) {
    const words = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
    for (let text = words.nextNode(); text; text = words.nextNode()) {
      for (const word of text.data.matchAll(/[\p{L}\p{N}]+/gu)) {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        if (new Set(Array.from(range.getClientRects(), (line) => line.top)).size > 1) tell(`breaks in “${word[0]}”`, one);
      }
    }
  }
  parent.postMessage([`looked at ${innerWidth} pixels`, ...found].join("\n"), "*");
});
</script>
SCRIPT
failed=0
for page in "$@"; do
  # The page's own policy forbids every script but its own.
  sed -e 's/<meta http-equiv="Content-Security-Policy"[^>]*>//' -e "/<\/body>/{
r $scratch/look.html
}" "$page" >"$scratch/page.html"
  for width in 1280 390; do
    # Chromium's own window is not as narrow as a phone.
    cat >"$scratch/frame.html" <<FRAME
<body><script>addEventListener("message", (event) => { document.body.textContent = event.data; });</script>
<iframe src="page.html" width="$width" height="900" style="border: 0"></iframe></body>
FRAME
    said=$("${CHROMIUM:-chromium}" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$scratch/profile" --virtual-time-budget=10000 \
      --window-size=1400,1000 --dump-dom "file://$scratch/frame.html" 2>/dev/null | sed -n 's/.*<body>//; s/<\/body>.*//; /./p')
    echo "$page: $said"
    # Where nothing was found the width stands alone.
    [[ $said == *"looked at $width pixels" ]] || failed=1
  done
done
exit "$failed"
