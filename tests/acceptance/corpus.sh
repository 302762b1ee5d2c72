#!/bin/bash
# A corpus of MedQuAD by a tiny encoder: killed twenty times and the same bytes; a hundred searches alone and at once, the same bytes
# and numpy's order; verified, damaged, found.
#
#   tests/acceptance/corpus.sh WARDROUND DATA [OUT]
#
# DATA is the directory of datasets. Minutes with an optimised binary. PYTHON [python3] has numpy.
set -euo pipefail
wardround=$(realpath "$1") data=$(realpath "$2") python=${PYTHON:-python3}
here=$(cd "$(dirname "$0")/../.." && pwd)
encoder=$here/tests/goldens/encoders/tiny-mean
out=${3:-$(mktemp -d)}
build=(corpus build medquad --data-dir "$data" --encoder "$encoder" --quiet)

start=$SECONDS
"$wardround" "${build[@]}" --threads 2 --out "$out/whole"
took=$((SECONDS - start))
echo "built in $took s"
"$wardround" corpus verify "$out/whole" | tee "$out/info.txt"
grep -Eq " 16407 +32092 " "$out/info.txt"

# Killed at twenty moments, on one thread.
"$wardround" "${build[@]}" --threads 1 --out "$out/killed" > "$out/killed.log" & pid=$!
kills=0
while [ "$kills" -lt 20 ] && [ ! -e "$out/killed/corpus.toml" ]; do
    sleep "$(awk -v took="$took" -v seed="$RANDOM" 'BEGIN { srand(seed); print 0.3 + rand() * took / 8 }')"
    kill -9 "$pid" 2>/dev/null || break
    wait "$pid" 2>/dev/null || true
    kills=$((kills + 1))
    "$wardround" "${build[@]}" --threads 1 --out "$out/killed" > "$out/killed.log" & pid=$!
done
wait "$pid"
echo "killed $kills times"
for file in texts.bin chunks.bin documents.bin vectors.bin; do
  cmp "$out/whole/$file" "$out/killed/$file"
done
diff <(sed '/^\[local\]/,$d' "$out/whole/corpus.toml") <(sed '/^\[local\]/,$d' "$out/killed/corpus.toml")
"$wardround" corpus verify "$out/killed"

# The same query twice.
search() { "$wardround" corpus search "$1" "hereditary spherocytosis treatment" --top-k 20 --rerank-top-k 5; }
took_out() { sed 's/"took":{[^}]*}//'; }
cmp <(search "$out/whole" | took_out) <(search "$out/killed" | took_out)

# A hundred searches, alone and at once.
"$wardround" corpus build medquad --data-dir "$data" --encoder "$encoder" --quiet --out "$out/hundred"
"$python" "$here/tests/acceptance/corpus_search.py" queries "$out/hundred" 100 > "$out/queries.txt"
start=$(date +%s%N)
"$wardround" corpus search "$out/hundred" --queries "$out/queries.txt" --top-k 50 --rerank-top-k 5 > "$out/found.jsonl"
echo "a hundred searches at once in $((($(date +%s%N) - start) / 1000000)) ms"
while IFS= read -r query; do
    "$wardround" corpus search --top-k 50 --rerank-top-k 5 "$out/hundred" -- "$query"
done < "$out/queries.txt" > "$out/alone.jsonl"
cmp <(took_out < "$out/found.jsonl") <(took_out < "$out/alone.jsonl")
"$python" "$here/tests/acceptance/corpus_search.py" check "$out/hundred" "$out/found.jsonl"

printf x | dd of="$out/killed/texts.bin" bs=1 seek=5000000 conv=notrunc status=none
if "$wardround" corpus verify "$out/killed" > "$out/damage.txt"; then echo "the damage was not found"; exit 1; fi
grep "texts.bin *has another sha256" "$out/damage.txt"
echo "all is well"
