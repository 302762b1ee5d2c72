"""Searches of a corpus beside numpy's order of the same products; `tests/numbers/corpus.rs` has it bit for bit.

    corpus_search.py queries CORPUS COUNT        texts of chunks, one a line, whose vectors are rows of the corpus
    corpus_search.py check CORPUS FOUND.jsonl    what `corpus search --queries` found for them

Its encoder reads queries as it reads documents: the vector of a query is a row, which is rounded to f16.
"""

import json
import struct
import sys
import tomllib
from pathlib import Path

import numpy as np

# Of numbers below one that are rounded to f16, over vectors of length 1.
TOLERANCE = 2e-3


class Corpus:
    def __init__(self, path):
        self.path = Path(path)
        self.manifest = tomllib.loads((self.path / "corpus.toml").read_text())
        texts = (self.path / "texts.bin").read_bytes()
        self.records = list(struct.iter_unpack("<QIIIHH8s", (self.path / "chunks.bin").read_bytes()))
        self.texts = [texts[record[0] : record[0] + record[1]].decode() for record in self.records]
        head = (self.path / "vectors.bin").read_bytes()[:64]
        magic, _version, kind, dims, rows = struct.unpack_from("<8sIIIxxxxQ", head)
        assert (magic, kind, rows) == (b"WRVECTOR", 0, len(self.texts)), head
        numbers = np.fromfile(self.path / "vectors.bin", "<f2", offset=64)
        self.rows = numbers.reshape(rows, -1)[:, :dims].astype(np.float32)
        self.documents = list(self.read_documents())

    def read_documents(self):
        """The ids, in order."""
        data, at = (self.path / "documents.bin").read_bytes(), 0
        while at < len(data):
            fields = []
            for _ in range(4):
                (length,) = struct.unpack_from("<I", data, at)
                fields.append(data[at + 4 : at + 4 + length])
                at += 4 + length
            yield fields[0].decode()

    def name(self, chunk):
        _offset, _length, document, paragraph, source, _flags, _sum = self.records[chunk]
        label = self.manifest["source"][source]["description"]["label"]
        return f"{label}/{self.documents[document]}#{paragraph}"


def queries(corpus, count):
    is_line = lambda text: text == text.strip() and len(text.splitlines()) == 1
    texts = list(dict.fromkeys(text for text in corpus.texts if is_line(text)))
    for text in texts[:: len(texts) // count][:count]:
        print(text)


def check(corpus, path):
    first = {}
    for chunk, text in enumerate(corpus.texts):
        first.setdefault(text, chunk)
    numbers = {corpus.name(chunk): chunk for chunk in range(len(corpus.texts))}
    searches = 0
    for line in open(path):
        found = json.loads(line)
        scores = corpus.rows @ corpus.rows[first[found["query"]]]
        hits = [(hit["score"], scores[numbers[hit["chunk"]]]) for hit in found["retrieved"]]
        assert hits and all(abs(ours - theirs) < TOLERANCE for ours, theirs in hits), (found["query"], hits)
        assert [ours for ours, _ in hits] == sorted((ours for ours, _ in hits), reverse=True), hits
        assert hits[-1][1] > np.sort(scores)[-len(hits)] - 2 * TOLERANCE, (found["query"], hits)
        searches += 1
    print(f"{searches} searches of {len(corpus.rows)} vectors are numpy's within {TOLERANCE}")
    assert searches > 0


verb, directory, argument = sys.argv[1:]
if verb == "queries":
    queries(Corpus(directory), int(argument))
else:
    check(Corpus(directory), argument)
