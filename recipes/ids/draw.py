#!/usr/bin/env python3
"""Draws the lists of 100 ids that the recipes run by default, as MedAgentBoard draws its samples: random.seed(42), random.sample.

    python3 recipes/ids/draw.py DATA     # a directory with medqa/, pubmedqa/ and mmlu_pro/

The papers' own lists are not public. Ids are written in the order of their files.
"""

import json
import random
import sys
from pathlib import Path


def main():
    data, here = Path(sys.argv[1]), Path(__file__).parent
    medqa = (data / "medqa/us_5opt_test.jsonl").read_text().splitlines()
    pubmedqa = json.loads((data / "pubmedqa/ori_pqal.json").read_text())
    test = json.loads((data / "pubmedqa/test_ground_truth.json").read_text())
    mmlu_pro = (data / "mmlu_pro/professional_medicine.jsonl").read_text().splitlines()
    write(here / "medqa-100.txt", [f"medqa_mc_{number:03}" for number in range(1, 1 + len(medqa))])
    write(here / "pubmedqa-100.txt", [f"pubmedqa_mc_{pmid}" for pmid in pubmedqa if pmid in test])
    write(here / "mmlu-pro-100.txt", [f"mmlu_pro_{json.loads(line)['question_id']}" for line in mmlu_pro])


def write(path, ids):
    random.seed(42)
    chosen = set(random.sample(range(len(ids)), 100))
    lines = [f"# 100 of {len(ids)}: random.seed(42), random.sample; drawn by draw.py"]
    lines += [identifier for index, identifier in enumerate(ids) if index in chosen]
    path.write_text("\n".join(lines) + "\n")


main()
