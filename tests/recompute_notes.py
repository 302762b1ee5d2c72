"""Recomputes runs on notes, one or a recipe's folder of them, from their logs alone, and compares to the last digit.

    python3 tests/recompute_notes.py OUT

Shares no code with the program. From plan.toml, the texts in calls.jsonl and the sentences of the data file that the plan names, it
computes each note's outcome again: labels, confidences, who agreed and who settled it, sentences by likeness, corrections. From items.jsonl
it computes every figure of notes in results.json: detection, localisation, correction, consensus, confidence, the cost of each stage,
intervals, and what a method gains over another. A check that lacks something says so: the data file, for Chinese words the package jieba,
for BERTScore and BLEURT their models. Exits 1 with the first difference. Python 3.11 or later; else the standard library only.
"""

import json
import math
import re
import sys
import tomllib
from array import array
from collections import Counter
from functools import cache, reduce
from hashlib import sha256
from operator import add, mul
from pathlib import Path

import note_reflex as reflex
import note_texts as texts
from health import parse_health, warnings
from note_outcomes import Checked, left_out, notes_of, same
from recompute_recipe import RESAMPLES, SEED, Difference, below, over_runs, quantile, split_mix

SOURCES = ["single", "agreement", "arbitration", "vote"]
STAGES = ["detection", "localisation", "correction"]
PLAIN = ["rouge1", "rouge2", "rougeL", "rouge1_recall"]
STEMMED = ["rouge1_stemmed", "rouge2_stemmed", "rougeL_stemmed", "rouge1_stemmed_recall"]
# Chinese is written without white space: each of its letters is a word.
WORD = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]|[^\s\u3400-\u4dbf\u4e00-\u9fff]+")
LEARNED = {"bertscore", "bertscore_multilingual", "bleurt", "aggregate", "kpcs"}


def total(values):
    """One after the other: Python's own sum rounds once, at the end."""
    return reduce(add, values, 0.0)


def mean(values):
    return total(values) / len(values)


# A run directory.


class Run:
    def __init__(self, directory):
        self.directory = directory
        self.plan = tomllib.loads((directory / "plan.toml").read_text())
        # Lines end at "\n" alone: a text may hold other characters that Python takes for the end of one.
        lines = lambda name: [json.loads(line) for line in (directory / name).read_text().split("\n") if line]
        self.calls = lines("calls.jsonl")
        self.searches = reflex.check_chain(directory, self.plan) if "corpus" in self.plan else []
        self.last = {(item["run"], item["item"]): item for item in lines("items.jsonl")}
        self.dataset = self.plan["dataset"]
        runs = range(1, self.plan["runs"] + 1)
        planned = {(run, item) for run in runs for item in self.dataset["items"]}
        same(f"{directory}: notes", sorted(self.last), sorted(planned))
        self.check_outcomes()
        graded = [item for item in self.dataset["items"] if all(self.last[run, item]["gold"] is not None for run in runs)]
        self.runs = [[self.last[run, item] for item in graded] for run in runs]
        self.graded = graded

    def check_courses(self):
        """Of a system that searches: each note from its calls and searches."""
        put = {one["item"]: one for one in map(json.loads, filter(None, (self.directory / "dataset.jsonl").read_text().split("\n")))}
        for (run, name), item in self.last.items():
            if item["error"] is not None:
                continue
            own = lambda lines: [line for line in lines if (line["run"], line["item"]) == (run, name)]
            note = reflex.Course(item, own(self.calls), own(self.searches), put[name]["text"], put[name]["sentences"], self.plan)
            outcome = note.outcome()
            same(f"{self.directory}: item {name}, run {run}", {key: item[key] for key in outcome}, outcome)
            same(f"{self.directory}: item {name}, run {run}: calls", (item["calls"], sorted(note.used)), (len(note.used), sorted(note.calls)))

    def check_outcomes(self):
        if self.plan["system"] in ("medreflex", "medreact"):
            return self.check_courses()
        # Plans of earlier versions have the path beside the sum.
        path = self.plan["asked"]["data"] if "asked" in self.plan else self.dataset["path"]
        notes = notes_of(path, self.dataset["format"], self.dataset["sha256"])
        by_note = {}
        for call in self.calls:
            made = by_note.setdefault((call["run"], call["item"]), {})
            same(f"{self.directory}: call {call['seq']} comes twice", (call["agent"], call["sample"]) in made, False)
            made[call["agent"], call["sample"]] = call
        for (run, name), item in self.last.items():
            where = f"{self.directory}: item {name}, run {run}"
            sentences, gold = (notes or {}).get(name, (None, None))
            if gold is not None:
                same(f"{where}: gold", item["gold"], gold)
            if item["error"] is not None:
                continue
            note = Checked(item, by_note.get((run, name), {}), sentences, self.plan["settings"])
            if self.plan["system"] == "medguards":
                note.medguards()
            elif sentences is not None:
                note.base_llm()
            else:
                continue
            same(where, {key: item[key] for key in note.outcome}, note.outcome)
            same(f"{where}: calls", (item["calls"], sorted(note.calls)), (len(note.used), sorted(note.used)))

    def units(self):
        """Each graded note's unit: notes that share three fifths of their words are one."""
        places = list(range(len(self.graded)))
        lines = (self.directory / "dataset.jsonl").read_text().split("\n")
        texts = {one["item"]: one["text"] for one in map(json.loads, filter(None, lines))}
        bags = [Counter(WORD.findall(texts[item])) for item in self.graded]
        for later, bag in enumerate(bags):
            for earlier in range(later):
                both = bags[earlier].total() + bag.total()
                if both and 20 * (bags[earlier] & bag).total() >= 6 * both:
                    ends = places[earlier], places[later]
                    places = [min(ends) if place == max(ends) else place for place in places]
        return places

    def near_duplicates(self):
        groups = {}
        for unit, item in zip(self.units(), self.graded):
            groups.setdefault(unit, []).append(item)
        return [groups[unit] for unit in sorted(groups) if len(groups[unit]) > 1]

    def each(self, of):
        return [[of(item) for item in run] for run in self.runs]


# What is right of a note.


def is_read(item):
    return item["flag"] is not None and item["error"] is None


def is_detected(item):
    return is_read(item) and item["flag"] == item["gold"]["flag"]


def says_nan(place):
    said = [opinion == "NAN" for opinion in place["opinions"]]
    first = next((opinion for opinion in place["opinions"] if opinion), None)
    return sum(said) > 1 or first == "NAN" if place["source"] == "vote" else said[-1]


def says_no_sentence(item):
    """That no sentence is wrong was said: there is no error, or no sentence has it."""
    place = item["localisation"]
    return item["flag"] is False if place is None else says_nan(place)


def is_located(item, field="sentence_id"):
    speaks = item["sentence_id"] is not None or says_no_sentence(item)
    return is_read(item) and item[field] == item["gold"]["sentence_id"] and speaks


def is_located_exactly(item):
    return is_located(item, "exact_sentence_id") and item["sentence_id"] == item["exact_sentence_id"]


def sides(item):
    """Reference and candidate; () where neither side corrects, None where one alone does."""
    if not is_read(item):
        return None
    both = item["gold"]["correction"], item["correction"]
    return both if None not in both else () if both == (None, None) and says_no_sentence(item) else None


# The figures of notes.


def shares(runs):
    return over_runs([sum(run) / len(run) for run in runs]) if runs and all(runs) else None


def all_or_none(values):
    return over_runs(values) if values and None not in values else None


def detection(run):
    names = "true_positives false_positives true_negatives false_negatives unread_positives unread_negatives".split()
    tables = []
    for notes in run.runs:
        pairs = [(item["gold"]["flag"], item["flag"] if item["error"] is None else None) for item in notes]
        kinds = (True, True), (False, True), (False, False), (True, False), (True, None), (False, None)
        tables.append(dict(zip(names, (sum(pair == kind for pair in pairs) for kind in kinds))))
    precisions, recalls, fs = [], [], []
    for table in tables:
        right, flagged = table["true_positives"], table["true_positives"] + table["false_positives"]
        wrong = right + table["false_negatives"] + table["unread_positives"]
        precision, recall = (right / flagged if flagged else None), (right / wrong if wrong else None)
        both = None if None in (precision, recall) else precision + recall
        precisions.append(precision)
        recalls.append(recall)
        fs.append(both and 2.0 * precision * recall / both)
    kinds = [item["gold"]["type"] for item in run.runs[0]]
    by_type = []
    for kind in sorted({kind for kind in kinds if kind is not None}, key=str.encode):
        of_kind = [[item for item, other in zip(notes, kinds) if other == kind] for notes in run.runs]
        row = {"type": kind, "n": len(of_kind[0])}
        for name, is_right in (("detected", is_detected), ("located", is_located)):
            row[name] = shares([list(map(is_right, notes)) for notes in of_kind])
        by_type.append(row)
    return {
        "accuracy": shares(run.each(is_detected)),
        "accuracy_of_read": shares([[is_detected(item) for item in notes if is_read(item)] for notes in run.runs]),
        "confusion": {name: sum(table[name] for table in tables) for name in names},
        "precision": all_or_none(precisions),
        "recall": all_or_none(recalls),
        "f1": all_or_none(fs),
        "by_type": by_type,
    }


def localisation(run):
    of_errors = [[is_located(item) for item in notes if item["gold"]["flag"]] for notes in run.runs]
    return {
        "accuracy": shares(run.each(is_located)),
        "accuracy_exact": shares(run.each(is_located_exactly)),
        "of_errors": shares(of_errors),
    }


@cache
def rouges(reference, candidate, language, stemmed):
    """ROUGE-1, -2 and -L; None for what a language has not, or for want of jieba."""
    if stemmed:
        return texts.rouge_of_stems(candidate, reference) if language == "english" else None
    if language == "chinese":
        if not texts.jieba:
            left_out.add("ROUGE of Chinese, for want of jieba")
            return None
        return texts.rouge_of_chinese(candidate, reference)
    return texts.rouge(candidate, reference)


def parts(run, measure):
    """Each note's score and whether it is a pair: 1 where neither side corrects, 0 where one alone does. None without a score."""
    stemmed = measure in STEMMED
    place = (STEMMED if stemmed else PLAIN).index(measure)
    scores = []
    for notes in run.runs:
        scores.append([])
        for item in notes:
            both = sides(item)
            found = rouges(*both, item["language"], stemmed) if both else None
            if both and found is None:
                return None
            scores[-1].append((found[place] if both else float(both == ()), bool(both)))
    return scores


def check_keyword_files(files):
    """Each file of keywords that a recipe's results name must still be the one that was used."""
    for file in files:
        path = Path(file["path"])
        if not path.is_file():
            left_out.add(f"keywords of {path.name}, which is not at hand")
            continue
        data = path.read_bytes()
        same(f"{path.name}: sha256", file["sha256"], sha256(data).hexdigest())
        same(f"{path.name}: notes", file["notes"], len(json.loads(data)))


def check_correction(where, found, run, files):
    kinds = run.each(sides)
    same(f"{where}.n_pairs", found["n_pairs"], [sum(bool(one) for one in notes) for notes in kinds])
    same(f"{where}.n_correct_na", found["n_correct_na"], [notes.count(()) for notes in kinds])
    keywords = [item["gold"]["keywords"] for notes in run.runs for item in notes]
    is_given = any(file["notes"] for file in files)
    same(f"{where}.keywords_are_changed_words", found["keywords_are_changed_words"], not is_given and not any(keywords))
    languages = {item["language"] for notes in run.runs for item in notes}
    of_pairs = {item["language"] for notes in run.runs for item in notes if sides(item)}
    stemmed = STEMMED if "english" in languages and of_pairs <= {"english"} else []
    expected = PLAIN[:3] + stemmed[:3] + PLAIN[3:] + stemmed[3:]
    names = [one["measure"] for one in found["measures"]]
    same(f"{where}.measures", [name for name in names if name not in LEARNED], expected)
    for one in found["measures"]:
        scores = parts(run, one["measure"]) if one["measure"] not in LEARNED else None
        if one["measure"] in LEARNED:
            left_out.add("BERTScore, BLEURT and what takes them")
        if scores is None:
            continue
        pairs = [[score for score, is_pair in notes if is_pair] for notes in scores]
        subset = all_or_none([mean(notes) if notes else None for notes in pairs])
        composite = over_runs([mean([score for score, _ in notes]) for notes in scores])
        expected = {"measure": one["measure"], "subset": subset, "composite": composite}
        same(f"{where}.{one['measure']}", one, expected)


def consensus(run):
    rows = []
    for stage, is_right in (("detection", is_detected), ("localisation", is_located)):
        seen = [(item[stage]["source"], is_right(item)) for notes in run.runs for item in notes if item[stage] is not None]
        settled = []
        for source in SOURCES:
            right = [one for other, one in seen if other == source]
            if right:
                n = len(right)
                counts = {"source": source, "n": n, "n_right": sum(right)}
                settled.append(counts | {"share": n / len(seen), "accuracy": sum(right) / n})
        if seen:
            rows.append({"stage": stage, "n": len(seen), "settled": settled})
    return rows


def confidence(run):
    pairs = []
    for item in (item for notes in run.runs for item in notes):
        record = item["detection"]
        stated = record["confidences"][:2] if record else []
        if len(stated) == 2 and None not in stated:
            flags = record["flags"]
            pairs.append((stated, flags[0] is not None and flags[0] == flags[1], is_detected(item)))
    agreed = [(stated, is_right) for stated, agrees, is_right in pairs if agrees]

    def means(taken):
        return [mean([stated[agent] for stated in taken]) for agent in (0, 1)] if taken else None

    def low(bound):
        these = [(agrees, is_right) for stated, agrees, is_right in pairs if max(stated) < bound]
        counts = {"n_agreed": sum(agrees for agrees, _ in these), "n_right": sum(is_right for _, is_right in these)}
        return {"below": bound, "n": len(these)} | counts

    return pairs and {
        "n_agreed": len(agreed),
        "all": means([stated for stated, _ in agreed]),
        "right": means([stated for stated, is_right in agreed if is_right]),
        "wrong": means([stated for stated, is_right in agreed if not is_right]),
        "low": [low(bound) for bound in (0.90, 0.85, 0.80)],
    } or None


def stages(run):
    notes = float(len(run.dataset["items"]) * run.plan["runs"])
    place = lambda purpose: (STAGES.index(purpose) if purpose in STAGES else len(STAGES), purpose)
    rows = []
    for purpose in sorted({call["purpose"] for call in run.calls}, key=place):
        calls = [call for call in run.calls if call["purpose"] == purpose]
        row = {"stage": purpose, "calls": len(calls)}
        for name in ("prompt_tokens", "cached_tokens", "completion_tokens"):
            row[name] = total(call["usage"][name] / notes for call in calls)
        longest = {}
        for call in calls:
            step = call["sample"] if purpose == "step" else 0
            key = call["item"], call["run"], call["round"], call["stage"] == "initial", step
            longest[key] = max(longest.get(key, 0), call["elapsed_ms"])
        rows.append(row | {"latency_seconds": sum(longest.values()) / 1000.0 / notes})
    if rows:
        sums = {name: total(row[name] for row in rows) for name in rows[0] if name not in ("stage", "calls")}
        rows.append({"stage": "all", "calls": len(run.calls)} | sums)
    return rows


def check_stages(where, found, expected):
    same(f"{where}: names", [row["stage"] for row in found], [row["stage"] for row in expected])
    for row, other in zip(found, expected):
        for name, value in other.items():
            # Whether each call is divided by the notes or their sum is, the last bits differ.
            if not isinstance(value, float) or not math.isclose(row[name], value, rel_tol=1e-12):
                same(f"{where}: {name} of {row['stage']}", row[name], value)


def check_notes(where, found, run, files=()):
    same(f"{where}.n_graded", found["n_graded"], len(run.graded))
    if run.graded:
        same(f"{where}.detection", found["detection"], detection(run))
        same(f"{where}.localisation", found["localisation"], localisation(run))
        check_correction(f"{where}.correction", found["correction"], run, files)
    else:
        same(where, [found[name] for name in STAGES], [None] * 3)
    same(f"{where}.consensus", found["consensus"], consensus(run))
    same(f"{where}.confidence", found["confidence"], confidence(run))
    check_stages(f"{where}.stages", found["stages"], stages(run))
    if "corpus" in run.plan:
        same(f"{where}.search", found["search"], reflex.figures(run))


# Recipes: intervals, and what a method gains.


@cache
def draws(count):
    random = split_mix(SEED)
    return [array("I", (below(random, count) for _ in range(count))) for _ in range(RESAMPLES)]


def estimate(values, units):
    """The mean with its interval, and the P-values that it is 0, and that it is 0 or less. Values of a unit are drawn together."""
    groups = {}
    for unit, value in zip(units, values, strict=True):
        groups.setdefault(unit, []).append(value)
    sums, sizes = [total(group) for group in groups.values()], [len(group) for group in groups.values()]

    def resampled(sample):
        return total(map(sums.__getitem__, sample)) / sum(map(sizes.__getitem__, sample))

    means = sorted(map(resampled, draws(len(sums))))
    tails = sum(one <= 0.0 for one in means), sum(one >= 0.0 for one in means)
    by_unit = [one / size for one, size in zip(sums, sizes)]
    # Equal units have no interval.
    ends = [quantile(means, share) if max(by_unit) - min(by_unit) > 1e-12 else None for share in (0.025, 0.975)]
    interval = {"mean": mean(values), "low": ends[0], "high": ends[1]}
    least = 2.0 ** -sum(abs(one) > 1e-12 for one in sums)
    two_sided = min(2.0 * max(least, (1 + min(tails)) / (1 + RESAMPLES)), 1.0)
    return interval | {"n_questions": len(values), "n_units": len(sums)}, two_sided


def accuracy_of(found, values, units):
    """All right, or none: Clopper and Pearson's interval, whose bound is raised to a power, which differs in the last bit."""
    expected, _ = estimate(values, units)
    if expected["low"] is None and expected["mean"] in (0.0, 1.0):
        bound = 0.025 ** (1 / expected["n_units"])
        ends = (bound, 1.0) if expected["mean"] == 1.0 else (0.0, 1.0 - bound)
        is_close = all(math.isclose(a, b, rel_tol=1e-14) for a, b in zip((found["low"], found["high"]), ends))
        expected |= {"low": found["low"], "high": found["high"], "exact": True} if is_close else {}
    return expected


def over_notes(runs):
    """Each note's mean over the runs."""
    return [total(float(run[note]) for run in runs) / len(runs) for note in range(len(runs[0]))]


def columns(run):
    """Each column's values by note, and its mean over the pairs."""
    measure = "rouge1_stemmed" if run.dataset["format"] in ("medec", "medec-uw") else "rouge1"
    scores = parts(run, measure)
    found = {"detection": over_notes(run.each(is_detected)), "localisation": over_notes(run.each(is_located))}
    found = {name: (values, mean(values)) for name, values in found.items()}
    if scores:
        pairs = [[score for score, is_pair in notes if is_pair] for notes in scores]
        over_pairs = mean([mean(one) for one in pairs]) if all(pairs) else None
        found["rouge1"] = over_notes([[score for score, _ in notes] for notes in scores]), over_pairs
    return found


def student(t, degrees):
    """Two-sided P-value, by Simpson's rule over the angle: t is √degrees·tan, and the density cos^(degrees − 1)."""
    angle, steps = math.atan(abs(t) / math.sqrt(degrees)), 2000

    def area(end):
        weights = [1] + [4, 2] * (steps // 2 - 1) + [4, 1]
        density = [math.cos(end * place / steps) ** (degrees - 1) for place in range(steps + 1)]
        return sum(map(mul, weights, density)) * end / steps / 3

    return 1.0 - area(angle) / area(math.pi / 2)


def check_gain(row, own, base):
    where = f"{row['method']} over {row['baseline']} on {row['dataset']}"
    same(f"{where}: notes", own.graded, base.graded)
    units = own.units()
    own, base = columns(own), columns(base)
    missing = [name for name in row["columns"] if own.get(name) is None or base.get(name) is None]
    if missing:
        left_out.add(f"gains on {row['dataset']}, which take {', '.join(missing)}")
        return
    same(f"{where}: columns", row["columns"], [name for name in own if name in base])
    pairs = [(own[name][0], base[name][0]) for name in row["columns"]]
    check_means(f"{where}, composites", row["composites"], [(mean(a), mean(b)) for a, b in pairs])
    over_pairs = [(own[name][1], base[name][1]) for name in row["columns"]]
    if any(None in both for both in over_pairs):
        same(f"{where}, pairs", row["pairs"], None)
    else:
        check_means(f"{where}, pairs", row["pairs"], over_pairs)
    count = float(len(pairs))
    by_note = [total((a[note] - b[note]) / count for a, b in pairs) for note in range(len(pairs[0][0]))]
    difference, p_value = estimate(by_note, units)
    same(f"{where}: difference", row["difference"], difference)
    same(f"{where}: P-value of the bootstrap", row["p_value"], p_value)


def check_means(where, row, means):
    sums, count = [total(side) for side in zip(*means)], float(len(means))
    same(f"{where}: average", row["average"], [one / count for one in sums])
    same(f"{where}: Δ%", row["delta_percent"], 100.0 * (sums[0] / sums[1] - 1.0) if sums[1] > 0 else None)
    by_column = [a - b for a, b in means]
    spread = over_runs(by_column)["std"]
    # Equal differences are not tested, though rounding may part them in their last bits.
    if row["paired_t"] is None:
        same(f"{where}: paired t", bool(spread and spread > 1e-12 * abs(mean(by_column))), False)
    else:
        same(f"{where}: n", row["paired_t"]["n"], len(means))
        t = mean(by_column) / (spread / math.sqrt(count))
        same(f"{where}: t", row["paired_t"]["t"], t)
        p = student(t, len(means) - 1)
        # By another formula, of other roundings.
        if not math.isclose(row["paired_t"]["two_sided"], p, abs_tol=1e-12):
            raise Difference(f"{where}: p of the paired t-test: found {row['paired_t']['two_sided']}, recomputed {p}")


def check_cell(found, run, files):
    where = f"cell {found['method']}-{found['dataset']}"
    accuracy = shares(run.each(is_detected))
    expected = {
        "system": run.plan["system"],
        "accuracy": accuracy["per_run"] if accuracy else [],
        "mean": accuracy and accuracy["mean"],
        "std": accuracy and accuracy["std"],
        "interval": accuracy_of(found["interval"], over_notes(run.each(is_detected)), run.units()) if accuracy else None,
    }
    same(where, {key: found[key] for key in expected}, expected)
    same(f"{where}: parse_health", found["parse_health"], parse_health(run.calls))
    check_counts(where, found, run)
    total = found["cost"]["total"]
    same(f"{where}: calls", total["calls"], len(run.calls))
    same(f"{where}: completion_tokens", total["completion_tokens"], sum(call["usage"]["completion_tokens"] for call in run.calls))
    check_notes(f"{where}: notes", found["notes"], run, files)


def check_counts(where, found, run):
    expected = {
        "n_items": len(run.dataset["items"]),
        "n_runs": run.plan["runs"],
        "n_errors": sum(item["error"] is not None for item in run.last.values()),
    }
    same(where, {key: found[key] for key in expected}, expected)


def check_run(directory):
    run = Run(directory)
    results = json.loads((directory / "results.json").read_text())
    check_counts("results", results, run)
    same("results: calls", results["calls"], len(run.calls))
    same("results: accuracy", results["accuracy"], shares(run.each(is_detected)))
    for name in ("prompt", "cached", "completion", "forced"):
        same(f"results: tokens.{name}", results["tokens"][name], sum(call["usage"][f"{name}_tokens"] for call in run.calls))
    for how in ("ok", "repaired", "fallback", "refused", "unread"):
        same(f"results: parse.{how}", results["parse"][how], sum(call["parse"] == how for call in run.calls))
    same("results: near_duplicates", results.get("near_duplicates", []), run.near_duplicates())
    count = len(set(run.units()))
    same("results: n_units", results.get("n_units"), count if count < len(run.graded) else None)
    health = parse_health(run.calls)
    same("results: parse_health", results["parse_health"], health)
    same("results: warnings of replies", sum(one.count(" %)") for one in results.get("warnings", [])), warnings([health]))
    if results.get("notes"):
        check_notes("results: notes", results["notes"], run)
    return run


def check_recipe(folder):
    recipe = tomllib.loads((folder / "recipe.toml").read_text())["recipe"]
    results = json.loads((folder / "results.json").read_text())
    pairs = [(method, dataset["name"]) for dataset in recipe["dataset"] for method in recipe["method"]]
    runs = {(method["name"], dataset): check_run(folder / "cells" / f"{method['name']}-{dataset}") for method, dataset in pairs}
    same("cells", [(cell["method"], cell["dataset"]) for cell in results["cells"]], list(runs))
    files = results.get("keywords", [])
    check_keyword_files(files)
    for cell in results["cells"]:
        check_cell(cell, runs[cell["method"], cell["dataset"]], files)
    against = [(method["name"], method["against"], dataset) for method, dataset in pairs if method.get("against")]
    rows = results.get("improvements", [])
    same("gains", sorted((row["method"], row["baseline"], row["dataset"]) for row in rows), sorted(against))
    for row in rows:
        check_gain(row, runs[row["method"], row["dataset"]], runs[row["baseline"], row["dataset"]])
    return list(runs.values())


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    try:
        runs = check_recipe(out) if (out / "recipe.toml").is_file() else [check_run(out)]
    except Difference as difference:
        sys.exit(str(difference))
    notes, calls = sum(len(run.last) for run in runs), sum(len(run.calls) for run in runs)
    beside = f"; left out: {'; '.join(sorted(left_out))}" if left_out else ""
    print(f"{out}: {len(runs)} runs, {notes} notes, {calls} calls recomputed, equal to the last digit{beside}")


if __name__ == "__main__":
    main()
