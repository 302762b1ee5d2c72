"""Scores a MEDIQA-CORR 2024 submission by the shared task's rules, and makes the goldens of such scores.

    python3 tests/score_mediqa_corr.py RUN GOLD.csv     # prints the figures as JSON
    python3 tests/score_mediqa_corr.py --make DATA      # writes tests/goldens/mediqa_corr.json

Shares no code with the program. ROUGE is the package `rouge` 1.0.1 (pip install rouge==1.0.1), as in the task's own
scorer. DATA is the folder with medec/; the goldens are the scores of its submission file and of four copies that are
mangled as the goldens' `edits` say, so that the file itself need not be kept. BERTScore and BLEURT are not computed.
"""

import csv
import json
import re
import sys
import tempfile
from pathlib import Path

from rouge import Rouge

FORM = re.compile(r"[a-z0-9\-]+\s[0-9]+\s\-?[0-9]+\s.+")
SUBMISSION = "medec/mediqa_corr_baseline_run_1.txt"
GOLD = "medec/MEDEC-MS-ValidationSet-with-GroundTruth-and-ErrorType.csv"
GOLDENS = Path(__file__).parent / "goldens" / "mediqa_corr.json"


def read_gold(path):
    """Flag, sentence id and correction as texts, by id; only MEDEC-MS is read."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["Text ID"].startswith("ms-")]
    return {
        row["Text ID"]: (row["Error Flag"], row["Error Sentence ID"], row["Corrected Sentence"] or "NA") for row in rows
    }


def strip_quotes(text):
    for strip in (lambda t: t[1:] if t.startswith('"') else t, lambda t: t[:-1] if t.endswith('"') else t):
        while len(text) > 1 and strip(text) != text:
            text = strip(text)
    return text


def read_submission(path):
    """What the run says by id, and how many lines are invalid."""
    said, invalid = {}, 0
    with open(path, encoding="utf-8") as file:
        for line in map(str.strip, file):
            if not line:
                continue
            if not FORM.fullmatch(line):
                invalid += 1
                continue
            # The task's scorer has these arguments in this order: the line is the template, the text one blank.
            words = re.sub(r"\s+", line, " ").split()
            correction = "NA" if words[1] == "0" else strip_quotes(" ".join(words[3:]))
            said[words[0]] = (words[1], words[2], correction)
    return said, invalid


def score(submission, gold):
    said, invalid = submission
    found = [key for key in gold if key in said]
    right = lambda place: sum(said[key][place] == gold[key][place] for key in found)
    both = [(said[key][2], gold[key][2]) for key in found]
    correct_na = both.count(("NA", "NA"))
    pairs = [pair for pair in both if "NA" not in pair]
    rouge, scores = Rouge(), []
    for hypothesis, reference in pairs:
        if hypothesis.strip(".") and reference.strip("."):
            scores.append(rouge.get_scores(hypothesis, reference)[0])
        else:  # The package raises.
            scores.append({name: {"f": 0.0} for name in ("rouge-1", "rouge-2", "rouge-l")})
    figures = {"flag_accuracy": right(0) / len(gold), "sentence_accuracy": right(1) / len(gold)}
    for ours, theirs in (("rouge1", "rouge-1"), ("rouge2", "rouge-2"), ("rougeL", "rouge-l")):
        total = sum(one[theirs]["f"] for one in scores)
        figures[f"{ours}_subset"] = total / len(pairs) if pairs else None
        figures[f"{ours}_composite"] = (total + correct_na) / len(gold)
    for absent in ("bertscore", "bleurt", "aggregate"):
        figures |= {f"{absent}_subset": None, f"{absent}_composite": None}
    return figures | {
        "n_references": len(gold),
        "n_missing": len(gold) - len(found),
        "n_invalid_lines": invalid,
        "n_pairs": len(pairs),
        "n_correct_na": correct_na,
    }


# Copies of the submission: `lines` are set by their number from 1, those in `drop` (first, last) left out, `append`ed
# ones come last, and line ends become `line_end`.
EDITS = {
    "as_it_is": {},
    "malformed": {
        "lines": {
            "1": "\ufeffms-val-0 1 5 Culture tests indicate Trichomonas vaginalis.",
            "2": "MS-VAL-1 0 -1 NA",
            "3": "ms-val-2  1 10 Two blanks after the id.",
            "4": "ms-val-3 1 The sentence id is missing.",
            "5": "ms-val-4 0 -1",
            "6": "ms-val-5 yes 3 A word for the flag.",
            "7": "ms-val-6 1 3.0 A fraction for the sentence id.",
            "8": "ms-val-7 -1 3 A flag below zero.",
            "9": "ms-val-8,0,-1,NA",
            "10": "# ms-val-9 0 -1 NA",
            "11": "ms-val-10 1 --1 Two signs.",
            "12": "ms_val_11 0 -1 NA",
        },
        "append": ["", "   ", "The end."],
    },
    "missing_and_repeated": {
        "drop": [40, 140],
        "append": [
            "ms-val-0 0 -1 NA",
            "ms-val-0 1 5 Culture tests indicate Trichomonas vaginalis.",
            "ms-val-4 1 2 A correction where none is due.",
            "ms-val-4 0 -1 NA",
            "ms-val-574 0 -1 NA",
            "ms-train-3 1 3 Of another set.",
        ],
    },
    "quotes_and_flags": {
        "lines": {
            "1": 'ms-val-0 1 5 """Culture tests indicate "Trichomonas" vaginalis."""',
            "2": 'ms-val-1 1 5 "',
            "3": "ms-val-2 1 10 ...",
            "4": "ms-val-3 0 0 A correction under flag 0.",
            "5": "ms-val-4 00 -1 NA",
            "6": "ms-val-5 01 03 A flag and an id with zeros before.",
            "7": "ms-val-6 1 -1 NA",
            "8": 'ms-val-7 1 4 "NA"',
            "9": "ms-val-8 1 3 na",
            "10": 'ms-val-9 1 2 " Blanks inside the quotes. "',
        }
    },
    "blanks_and_line_ends": {
        "line_end": "\r\n",
        "lines": {
            "1": "\t ms-val-0\t1\u00a05  Culture\u2003tests   indicate\u001fTrichomonas\tvaginalis.  ",
            "2": "ms-val-1\u000b0\u000c-1 NA\u3000",
            "3": "",
            "4": "ms-val-3 1 0 A 4-year-old boy.\rms-val-4 1 0 Another line.",
            "5": "ms-val-5 1 0\u200bNo blank.",
        },
    },
}


def mangle(text, edits):
    lines = text.splitlines()
    for number, line in edits.get("lines", {}).items():
        lines[int(number) - 1] = line
    first, last = edits.get("drop", [0, -1])
    lines = [line for number, line in enumerate(lines, 1) if not first <= number <= last]
    end = edits.get("line_end", "\n")
    return end.join(lines + edits.get("append", [])) + end


def make(data):
    text, gold = (data / SUBMISSION).read_text(encoding="utf-8"), read_gold(data / GOLD)
    cases = []
    for name, edits in EDITS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.txt"
            path.write_bytes(mangle(text, edits).encode())
            cases.append({"name": name, "edits": edits, "figures": score(read_submission(path), gold)})
    goldens = {"submission": SUBMISSION, "gold": GOLD, "cases": cases}
    GOLDENS.write_text(json.dumps(goldens, indent=1, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "--make":
        make(Path(sys.argv[2]))
    else:
        print(json.dumps(score(read_submission(sys.argv[1]), read_gold(sys.argv[2])), indent=1))
