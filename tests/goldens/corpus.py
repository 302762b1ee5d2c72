"""Texts and the chunks that LangChain's recursive splitter makes of them: corpus/split.json.

pip install langchain-text-splitters==0.0.1
"""

import json
import pathlib
import random

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


def main():
    numbers = random.Random(20240601)
    cases = []
    for index in range(500):
        size, overlap = SIZES[index % len(SIZES)]
        length = numbers.randrange(900, 3000) if size == 1000 else numbers.randrange(0, max(60, 5 * size))
        text = draw(numbers, length)
        splitter = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap)
        cases.append({"size": size, "overlap": overlap, "text": text, "chunks": splitter.split_text(text)})
    path = pathlib.Path(__file__).parent / "corpus" / "split.json"
    path.parent.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    path.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
