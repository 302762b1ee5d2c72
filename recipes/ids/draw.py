#!/usr/bin/env python3
"""Draws the lists of 100 ids that the recipes run by default, as MedAgentBoard draws its samples: random.seed(42), random.sample.

    python3 recipes/ids/draw.py DATA     # a directory with medqa/, pubmedqa/, mmlu_pro/ and medec/

The 50 notes of MedReAct'N'MedReFlex are pandas' df.sample(50, random_state=42) of MEDEC's validation set in the order of its file.

The papers' own lists are not public. Ids are written in the order of their files.
"""

import csv
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
    with (data / "medec/MEDEC-MS-ValidationSet-with-GroundTruth-and-ErrorType.csv").open(newline="") as file:
        notes = [row["Text ID"] for row in csv.DictReader(file)]
    lines = [f"# 50 of {len(notes)}: pandas' df.sample(50, random_state=42), in its order; drawn by draw.py"]
    lines += [notes[index] for index in permutation(42, len(notes))[:50]]
    (here / "medec-val-50.txt").write_text("\n".join(lines) + "\n")


def permutation(seed, count):
    """numpy's RandomState(seed).permutation(count): the generator is Python's, its seeding and its way to a whole number are not."""
    state = [seed]
    for index in range(1, 624):
        state.append((1812433253 * (state[-1] ^ state[-1] >> 30) + index) % 2**32)
    twister = random.Random()
    twister.setstate((3, (*state, 624), None))
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        bits = last.bit_length()
        while (other := twister.getrandbits(32) % 2**bits) > last:
            pass
        order[last], order[other] = order[other], order[last]
    return order


def write(path, ids):
    random.seed(42)
    chosen = set(random.sample(range(len(ids)), 100))
    lines = [f"# 100 of {len(ids)}: random.seed(42), random.sample; drawn by draw.py"]
    lines += [identifier for index, identifier in enumerate(ids) if index in chosen]
    path.write_text("\n".join(lines) + "\n")


main()
