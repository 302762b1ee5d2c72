"""Texts and the chunks that LangChain's recursive splitter makes of them: corpus/split.json.

The best rows of a matrix by numpy: corpus/order.json. article.jsonl is what MedRAG's statpearls.py makes of article.nxml.

pip install langchain-text-splitters==0.0.1 numpy
"""

import json
import pathlib
import random

import numpy as np
from langchain_text_splitters import RecursiveCharacterTextSplitter

WORDS = """fever cough the patient was given aspirin 500 mg twice a day and then discharged home with
amoxicillin-clavulanate because of otitis media; however pneumonia (left lower lobe) had not been excluded by X-ray
肺炎 発熱 حمى Grüße naïve 38.5 °C q.i.d. hydroxychloroquine electroencephalographically""".split()
GAPS = [" "] * 12 + ["\n"] * 3 + ["\n\n"] * 2 + ["\n\n\n", "  ", "\u00a0", "\r\n", "\t", "\u2003", "\x1c", "", "\n \n"]
SIZES = [(1000, 200)] * 2 + [(100, 20)] * 4 + [(10, 3)] * 4 + [(7, 6)] * 4 + [(5, 0)] * 4 + [(1, 0), (60, 59)]


def draw(numbers, length):
    text = ""
    while len(text) < length:
        text += numbers.choice(WORDS) + numbers.choice(GAPS)
    start = numbers.choice(["", "", "\n\n", " ", "\u00a0"])
    return start + text


FOLDER = pathlib.Path(__file__).parent / "corpus"


def mix(values):
    """SplitMix64 of an array of unsigned numbers."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def order(rows=20_000, dims=256, queries=20, count=50):
    """The best rows of a matrix of eighths, whose products are exact, ties to the lower row."""
    numbers = np.arange(rows + queries)
    numbers = np.where(numbers % 100 == 99, numbers - 50, numbers).astype(np.uint64)
    places = numbers[:, None] * np.uint64(dims) + np.arange(dims, dtype=np.uint64)
    matrix = ((mix(places) >> np.uint64(60)).astype(np.float64) - 8) / 8
    scores = matrix[rows:] @ matrix[:rows].T
    best = [np.argsort(-row, kind="stable")[:count].tolist() for row in scores]
    write("order.json", {"rows": rows, "dims": dims, "best": best})



def write(name, value):
    (FOLDER / name).write_text(json.dumps(value, ensure_ascii=False) + "\n", encoding="utf-8")


def main():
    FOLDER.mkdir(exist_ok=True)
    order()
    numbers = random.Random(20240601)
    cases = []
    for index in range(500):
        size, overlap = SIZES[index % len(SIZES)]
        length = numbers.randrange(900, 3000) if size == 1000 else numbers.randrange(0, max(60, 5 * size))
        text = draw(numbers, length)
        splitter = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap)
        cases.append({"size": size, "overlap": overlap, "text": text, "chunks": splitter.split_text(text)})
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    (FOLDER / "split.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
