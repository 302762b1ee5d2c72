"""Searches of a corpus beside numpy's order of the same products: scores bit for bit, ties by the number of the chunk.

    corpus_search.py queries CORPUS COUNT        texts of chunks, one a line, whose vectors are rows of the corpus
    corpus_search.py check CORPUS FOUND.jsonl    what `corpus search --queries` found for them

The corpus keeps its vectors as f32, sixteen numbers each: one step of the kernel's lanes, which numpy can repeat exactly.
Its encoder reads queries as it reads documents.
"""

import json
import struct
import sys
import tomllib
from pathlib import Path

import numpy as np

LANES = 16


class Corpus:
    def __init__(self, path):
        self.path = Path(path)
        self.manifest = tomllib.loads((self.path / "corpus.toml").read_text())
        texts = (self.path / "texts.bin").read_bytes()
        self.records = list(struct.iter_unpack("<QIIIHH8s", (self.path / "chunks.bin").read_bytes()))
        self.texts = [texts[record[0] : record[0] + record[1]].decode() for record in self.records]
        head = (self.path / "vectors.bin").read_bytes()[:64]
        magic, _version, kind, dims, rows = struct.unpack_from("<8sIIIxxxxQ", head)
        assert (magic, kind, dims, rows) == (b"WRVECTOR", 1, LANES, len(self.texts)), head
        self.rows = np.fromfile(self.path / "vectors.bin", "<f4", offset=64).reshape(rows, LANES)
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

    def scores(self, query):
        """Products, then halves added to halves, as the kernel's lanes are."""
        sums = self.rows * query
        width = LANES // 2
        while width:
            sums = sums[:, :width] + sums[:, width : 2 * width]
            width //= 2
        return sums[:, 0]


def queries(corpus, count):
    is_line = lambda text: text == text.strip() and len(text.splitlines()) == 1
    texts = list(dict.fromkeys(text for text in corpus.texts if is_line(text)))
    for text in texts[:: len(texts) // count][:count]:
        print(text)


def check(corpus, path):
    first = {}
    for chunk, text in enumerate(corpus.texts):
        first.setdefault(text, chunk)
    searches = ties = 0
    for line in open(path):
        found = json.loads(line)
        scores = corpus.scores(corpus.rows[first[found["query"]]])
        count = len(found["retrieved"])
        order = np.argsort(-scores, kind="stable")[:count]
        expected = [(corpus.name(chunk), scores[chunk]) for chunk in order]
        got = [(hit["chunk"], np.float32(hit["score"])) for hit in found["retrieved"]]
        assert count > 0 and got == expected, (found["query"], got, expected)
        ties += int(np.sum(scores[order][1:] == scores[order][:-1]))
        searches += 1
    print(f"{searches} searches of {len(corpus.rows)} vectors are numpy's, {ties} neighbours tied")
    assert searches > 0 and ties > 0


verb, directory, argument = sys.argv[1:]
if verb == "queries":
    queries(Corpus(directory), int(argument))
else:
    check(Corpus(directory), argument)
