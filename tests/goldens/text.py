"""Writes text.json: matching blocks by CPython's difflib, ROUGE by rouge, rouge-score and rouge-chinese, stems by NLTK, Chinese
words by jieba, keywords and alignments made of them.

Real sentences are read from $WARDROUND_DATA/{medec,mederrbench}; of them only ids, figures and digests are written.
"""

import csv
import hashlib
import os
import re
from difflib import SequenceMatcher
from pathlib import Path

import jieba
import rouge
import rouge_chinese
from nltk.stem.porter import PorterStemmer
from rouge_score.rouge_scorer import RougeScorer

from files import write_records

# Letters drawn as often as they stand here: few, usual ones, other scripts, and enough of them for one to be popular.
ALPHABETS = [
    "ab",
    "abcd ",
    "the cancer is not here, it is there.",
    "أبتثجحخد ّ",
    "血氨升高患者的。，",
    "".join(chr(0x4E00 + i) for i in range(120)) + "的" * 30,
]
LENGTHS = [8, 40, 150, 600]
# The last of them gives no word of its own.
LATIN = """The the patient Patient's patients is was given giving aspirin, Aspirin aspirin. daily twice infections infection
infected relational generally happily 500 mg 0.5 . .. ... ! -- β-blocker الجرعة جرعة""".split() + [" ", "\n", "\u001d"]
CHINESE = "患者 血氨 升高 ， 。 ！ ？ ” ’ … …… ...... 应 限制 蛋白质 摄入 的 的 MRI 3.5 ; \n".split(" ")
WRITTEN = [
    ("", ""),
    ("", "abc"),
    ("abc", ""),
    ("abc", "abc"),
    ("abc", "xyz"),
    ("ab", "acab"),
    ("abxcd", "abcd"),
    ("qabxcd", "abycdf"),
    ("private Thread currentThread;", "private volatile Thread currentThread;"),
    ("The patient was given amoxicillin.", "The patient was given vancomycin."),
    ("tide", "diet"),
    ("diet", "tide"),
    ("aaaa", "aa"),
    ("x" * 5, "x" * 200),
    ("zx", "x" * 200),
    ("xxyx", "x" * 100 + "y" + "x" * 99),
    ("xxyx", "x" * 100 + "y" + "x" * 98),
    ("أُعطي المريض", "أعطي المريض"),
    ("血氨升高。", "血钾升高。"),
    ("é", "e\u0301"),
]
SENTENCES = [
    "患者血氨升高，应限制蛋白质摄入。",
    "男，45岁，因“发热3天”入院，体温39.5℃。",
    "给予阿莫西林0.5g口服，每日3次",
    "诊断为急性ST段抬高型心肌梗死（STEMI）。",
    "小明硕士毕业于中国科学院计算所",
    "Hb 85.5g/L，pH7.35-7.45，IL-6升高10.5%，v1.2.3，COVID-19_a，AT&T",
    " 空格  和\n换行 ",
    "",
]
DATASETS = {
    "medec": "medec/MEDEC-MS-TestSet-with-GroundTruth-and-ErrorType.csv",
    "english": "mederrbench/reviewed_data_EN_test.csv",
    "chinese": "mederrbench/reviewed_data_CN_test.csv",
    "arabic": "mederrbench/reviewed_data_ARA_test.csv",
}


def make(folder: Path) -> None:
    jieba.setLogLevel("WARNING")
    records = [*written(), *drawn(), *stems(), *segmented(), *drawn_rouges(), *notes()]
    header = {"alphabets": ALPHABETS, "lengths": LENGTHS, "latin": LATIN, "chinese": CHINESE}
    write_records(folder / "text.json", header, "cases", records)
    print(f"text: {len(records)}")


class SplitMix64:
    """wardround's own generator, so that drawn texts need not be written."""

    def __init__(self, seed: int):
        self.state = seed

    def next(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        mixed = (self.state ^ self.state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        return mixed ^ mixed >> 31

    def below(self, bound: int) -> int:
        drawn = self.next()
        while drawn < 2**64 % bound:
            drawn = self.next()
        return drawn % bound

    def choose(self, choices):
        return choices[self.below(len(choices))]


def draw_pair(seed: int) -> tuple[list[str], list[str]]:
    """Two sequences of characters: unrelated, or the second the first with single characters edited."""
    random = SplitMix64(seed)
    alphabet, longest = random.choose(ALPHABETS), random.choose(LENGTHS)
    a = [random.choose(alphabet) for _ in range(random.below(longest + 1))]
    if random.below(3) == 0:
        return a, [random.choose(alphabet) for _ in range(random.below(longest + 1))]
    b = list(a)
    for _ in range(random.below(len(a) // 4 + 1)):
        place, letter = random.below(len(b) + 1), random.choose(alphabet)
        gone, new = random.below(3), random.below(2)
        b[place : place + gone] = [letter] * new
    return a, b


def draw_text(seed: int, vocabulary: list[str]) -> tuple[str, str]:
    random = SplitMix64(seed)
    texts = [" ".join(random.choose(vocabulary) for _ in range(random.below(20))) for _ in range(2)]
    return texts[0], texts[1]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def blocks_and_opcodes(matcher: SequenceMatcher) -> str:
    """Without the block of no size at the end."""
    blocks = [f"{i},{j},{n}" for i, j, n in matcher.get_matching_blocks()[:-1]]
    opcodes = [",".join(map(str, opcode)) for opcode in matcher.get_opcodes()]
    return ";".join(blocks) + "|" + ";".join(opcodes)


def written() -> list[dict]:
    records = []
    for a, b in WRITTEN:
        matcher = SequenceMatcher(None, a, b)
        matched = blocks_and_opcodes(matcher)
        records.append({"figure": "written", "a": a, "b": b, "ratio": matcher.ratio(), "matched": matched})
    return records


def drawn() -> list[dict]:
    records = []
    for seed in range(800):
        a, b = draw_pair(seed)
        matcher = SequenceMatcher(None, a, b)
        record = {"figure": "drawn", "seed": seed, "ratio": matcher.ratio(), "matched": digest(blocks_and_opcodes(matcher))}
        records.append({**record, "lcs": lcs(a, b)})
    return records


def lcs(a: list[str], b: list[str]) -> int:
    lengths = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, left in enumerate(a):
        for j, right in enumerate(b):
            longer = max(lengths[i][j + 1], lengths[i + 1][j])
            lengths[i + 1][j + 1] = lengths[i][j] + 1 if left == right else longer
    return lengths[-1][-1]


def stems() -> list[dict]:
    """Beginnings of every shape with every ending that a rule knows, and words of drawn letters."""
    beginnings = "t cr o oy pl toy syz rel hop fall fil y abl hypot generali infect commun conflat".split()
    endings = """sses ies ied ss s eed ed ing ating abling izing y ational tional enci anci izer bli alli entli eli ousli
        ization ation ator alism iveness fulness ousness aliti iviti biliti fulli logi icate ative alize iciti ical ful
        ness al ance ence er ic able ible ant ement ment ent ion sion tion ou ism ate iti ous ive ize e ll lly es 1""".split()
    irregular = """sky skies dying lying tying news innings inning outings outing cannings canning howe proceed exceed
        succeed dies flies died spied enjoy 1000 b12s a is the""".split()
    random = SplitMix64(1)
    letters = ["".join(random.choose("aeiouybdglnstz") for _ in range(1 + random.below(9))) for _ in range(900)]
    words = [*irregular, *(left + right for left in beginnings for right in endings), *letters]
    stemmer = PorterStemmer()
    chunks = [words[start : start + 100] for start in range(0, len(words), 100)]
    return [
        {"figure": "stems", "words": " ".join(chunk), "stems": " ".join(map(stemmer.stem, chunk))} for chunk in chunks
    ]


def segmented() -> list[dict]:
    return [{"figure": "words", "text": text, "words": jieba.lcut(text)} for text in SENTENCES]


def by_rouge(hypothesis: str, reference: str) -> list[float] | None:
    return by_package(rouge.Rouge(), hypothesis, reference)


def by_rouge_chinese(hypothesis: str, reference: str) -> list[float] | None:
    hypothesis, reference = (" ".join(jieba.cut(text)) for text in (hypothesis, reference))
    return by_package(rouge_chinese.Rouge(), hypothesis, reference)


def by_package(scorer, hypothesis: str, reference: str) -> list[float] | None:
    """Nothing where the package refuses the texts."""
    try:
        scores = scorer.get_scores(hypothesis, reference)[0]
    except ValueError:
        return None
    return [scores[name][part] for name in ("rouge-1", "rouge-2", "rouge-l") for part in "prf"]


def by_rouge_score(hypothesis: str, reference: str) -> list[float]:
    names = ["rouge1", "rouge2", "rougeL"]
    scores = RougeScorer(names, use_stemmer=True).score(reference, hypothesis)
    return [float(part) for name in names for part in scores[name]]


def drawn_rouges() -> list[dict]:
    records = []
    for seed in range(150):
        hypothesis, reference = draw_text(seed, LATIN)
        scores = {"rouge": by_rouge(hypothesis, reference), "rouge_score": by_rouge_score(hypothesis, reference)}
        chinese = by_rouge_chinese(*draw_text(seed, CHINESE))
        records.append({"figure": "rouge", "seed": seed, **scores, "rouge_chinese": chinese})
    return records


def notes() -> list[dict]:
    """One record for each wrong note."""
    records = []
    for name, path in DATASETS.items():
        with open(Path(os.environ["WARDROUND_DATA"]) / path, encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["Error Flag"] == "1"]
        found = [note(name, row) for row in rows]
        if name == "medec":
            assert len(rows) == 311
            golds = [int(row["Error Sentence ID"]) for row in rows]
            hits = [sum(g == record["aligned"][i] for g, record in zip(golds, found, strict=True)) for i in range(2)]
            assert hits == [307, 283], hits
        records += found
    return records


def note(name: str, row: dict) -> dict:
    text, error, corrected = row["Text"], row["Error Sentence"], row["Corrected Sentence"]
    whole = (list(text), list(row["Corrected Text"]))
    if name != "chinese":
        whole = (text.split(), row["Corrected Text"].split())
    matchers = [SequenceMatcher(None, a, b) for a, b in ((error, corrected), (error, text), whole)]
    record = {
        "figure": "note",
        "dataset": name,
        "id": row["Text ID"],
        "matched": [[matcher.ratio(), digest(blocks_and_opcodes(matcher))] for matcher in matchers],
        "aligned": [aligned(sentences(name, row), opinion, name) for opinion in (error, corrected)],
        "keywords": digest(" ".join(keywords(error, corrected))),
    }
    if name == "chinese":
        record["words"] = digest("/".join(jieba.cut(text)))
        return {**record, "rouge_chinese": by_rouge_chinese(error, corrected)}
    if name != "arabic":
        record["rouge_score"] = by_rouge_score(error, corrected)
    return {**record, "rouge": by_rouge(error, corrected)}


def sentences(name: str, row: dict) -> list[str]:
    """MEDEC's as MedGuards' code cuts them, so that a place is an id; the others' simply."""
    if name == "medec":
        pieces = row["Sentences"].split("\r\n")
        pieces = pieces if len(pieces) > 1 else row["Sentences"].split(". ")
        return [piece.split(" ", 1)[-1] for piece in pieces]
    return row["Text"].split("。" if name == "chinese" else ".")


def aligned(sentences: list[str], opinion: str, name: str) -> int | None:
    best, place = 0.0, None
    for index, sentence in enumerate(sentences):
        ratio = alike(sentence, opinion, name)
        if ratio > best:
            best, place = ratio, index
    return place


def alike(sentence: str, opinion: str, name: str) -> float:
    if name == "chinese":
        left, right = set(jieba.cut(sentence)), set(jieba.cut(opinion))
        return len(left & right) / len(left | right) if left | right else 0.0
    if name == "arabic":
        sentence, opinion = spelt(sentence), spelt(opinion)
    return SequenceMatcher(None, sentence, opinion).ratio()


def spelt(text: str) -> str:
    text = re.sub("[\u064b-\u0652]", "", text)
    for letters, letter in (("آأإ", "ا"), ("ى", "ي"), ("ؤ", "و"), ("ئ", "ي"), ("ة", "ه")):
        text = re.sub(f"[{letters}]", letter, text)
    return re.sub(r"\s+", " ", text).strip()


def keywords(error: str, corrected: str) -> list[str]:
    left, right = error.split(), corrected.split()
    opcodes = SequenceMatcher(None, left, right).get_opcodes()
    words = [word for tag, _, _, start, end in opcodes if tag in ("replace", "insert") for word in right[start:end]]
    return list(dict.fromkeys(words))
