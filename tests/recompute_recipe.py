"""Recomputes the figures of a recipe's folder from the logs of its cells alone, and compares them to the last digit.

    python3 tests/recompute_recipe.py FOLDER

Shares no code with the program. From each cell's plan.toml, items.jsonl and calls.jsonl it computes accuracies, their means and
deviations, the intervals by the documented generator, NetGain in both readings, paired differences, their adjusted P-values and what they could
have shown, samples at a debate's price, agreement, and the counts of calls
and tokens, how replies were read; the answers of every item are also looked up in the records of its calls. `results.json` must say the same. Similarity,
which needs an encoder, is not recomputed. Exits 1 with the first difference. Python 3.11 or later, standard library only.
"""

import json
import math
import statistics
import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

from health import parse_health, warnings

RESAMPLES, SEED = 10_000, 42
SINGLE = "SingleLLM_"
MULTI = {"medagents", "mdagents", "reconcile", "medmad", "no-debate"}


class Difference(Exception):
    pass


def expect(where, found, expected):
    if found != expected:
        raise Difference(f"{where}: found {found!r}, recomputed {expected!r}")


# The statistics.


def split_mix(seed):
    mask = (1 << 64) - 1
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        mixed = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
        yield mixed ^ (mixed >> 31)


def below(random, bound):
    biased = (1 << 64) % bound
    while True:
        drawn = next(random)
        if drawn >= biased:
            return drawn % bound


def quantile(ordered, share):
    place = (len(ordered) - 1) * share
    at = math.floor(place)
    start, end = ordered[at], ordered[min(at + 1, len(ordered) - 1)]
    step = place - at
    return end - (end - start) * (1 - step) if step >= 0.5 else start + (end - start) * step


_draws = {}


def draws(count):
    """The questions of every resample; the same for every figure over as many questions."""
    if count not in _draws:
        random = split_mix(SEED)
        _draws[count] = [[below(random, count) for _ in range(count)] for _ in range(RESAMPLES)]
    return _draws[count]


def total(chosen):
    result = 0.0
    for value in chosen:
        result += value
    return result


def estimate(values, units):
    """Units are lists of places, which are drawn together. Equal ones have no interval."""
    sums, sizes = [total(values[place] for place in unit) for unit in units], [len(unit) for unit in units]
    means = [one / size for one, size in zip(sums, sizes)]
    low = high = None
    if max(means) - min(means) > 1e-12:
        drawn = sorted(total(sums[unit] for unit in sample) / sum(sizes[unit] for unit in sample) for sample in draws(len(units)))
        low, high = quantile(drawn, 0.025), quantile(drawn, 0.975)
    return {"mean": total(values) / len(values), "low": low, "high": high, "n_questions": len(values), "n_units": len(units)}


def check_accuracy(where, found, values, units):
    """All right, or none: Clopper and Pearson's interval, whose bound is raised to a power, which differs in the last bit."""
    expected, bound = estimate(values, units), 0.025 ** (1 / len(units))
    if expected["low"] is None and expected["mean"] in (0.0, 1.0):
        low, high = (bound, 1.0) if expected["mean"] == 1.0 else (0.0, 1.0 - bound)
        if not (math.isclose(found["low"], low, abs_tol=1e-15) and math.isclose(found["high"], high, rel_tol=1e-14)):
            raise Difference(f"{where}: found {found!r}, recomputed {low} to {high}")
        expected |= {"low": found["low"], "high": found["high"], "exact": True}
    expect(where, found, expected)


def resampled(count, units, statistic):
    """Of a statistic that is taken anew from the questions of each resample; those without one are left out."""
    of = lambda sample: statistic([place for unit in sample for place in units[unit]])
    values = sorted(value for value in map(of, draws(len(units))) if value is not None)
    low, high = (quantile(values, 0.025), quantile(values, 0.975)) if values[-1] - values[0] > 1e-12 else (None, None)
    found = {"mean": statistic(range(count)), "low": low, "high": high, "n_questions": count, "n_units": len(units)}
    return found, len(values)


def run_means(runs):
    return [sum(run[question] for run in runs) / len(runs) for question in range(len(runs[0]))]


def over_runs(values):
    total = 0.0
    for value in values:
        total += value
    mean = total / len(values)
    squares = 0.0
    for value in values:
        # Not `** 2`: that is the platform's `pow`, whose last bit differs once in a thousand squares.
        squares += (value - mean) * (value - mean)
    return {"per_run": values, "mean": mean, "std": math.sqrt(squares / (len(values) - 1)) if len(values) > 1 else None}


def shares(runs):
    return over_runs([sum(run) / len(run) for run in runs])


# The logs.


class Cell:
    def __init__(self, directory):
        self.plan = tomllib.loads((directory / "plan.toml").read_text())
        # Lines end at "\n" alone: a text may hold other characters that Python takes for the end of one.
        lines = lambda name: [json.loads(line) for line in (directory / name).read_text().split("\n") if line]
        self.calls = lines("calls.jsonl")
        self.last = {(item["run"], item["item"]): item for item in lines("items.jsonl")}
        runs = range(1, self.plan["runs"] + 1)
        expect(f"{directory}: items", len(self.last), len(self.plan["dataset"]["items"]) * len(runs))
        self.questions = [q for q in self.plan["dataset"]["items"] if all(self.last[run, q]["gold"] is not None for run in runs)]
        self.runs = [[self.last[run, question] for question in self.questions] for run in runs]
        groups, texts = {}, {text["item"]: text for text in lines("dataset.jsonl")}
        for place, question in enumerate(self.questions):
            text = texts[question]
            asked = text["question"].lower().split()
            groups.setdefault((tuple(asked), text["image"]), []).append(place)
        self.units = list(groups.values())
        self.check_answers(directory)

    def check_answers(self, directory):
        """What a round says was answered must be what the calls of that round were read as."""
        said = defaultdict(list)
        for call in self.calls:
            if call["stage"] in ("initial", "round", "final"):
                said[call["run"], call["item"], call["stage"], call["round"]].append(str(call["record"].get("answer", "")))
        for (run, item), record in self.last.items():
            for round in record["rounds"]:
                answers = said[run, item, round["stage"], round["round"]]
                expect(f"{directory}: {item}, run {run}, round {round['round']}", Counter(round["answers"]), Counter(answers))

    def verdicts(self):
        return [[item["error"] is None and item["answer"] == item["gold"] for item in run] for run in self.runs]

    def round0(self):
        return [[bool(item["rounds"]) and item["rounds"][0]["aggregate"] == item["gold"] for item in run] for run in self.runs]

    def trajectories(self, last):
        def answers(item):
            rounds = [round for round in item["rounds"] if round["stage"] in ("initial", "round")]
            if not last:
                rounds = [round for round in rounds if round["stage"] == "initial"][:1]
            return rounds[-1]["answers"] if rounds else []

        return [[(answers(item), item["gold"]) for item in run] for run in self.runs]


def agree(answers):
    return len(answers) > 1 and answers[0] != "" and len(set(answers)) == 1


def check(folder):
    recipe = tomllib.loads((folder / "recipe.toml").read_text())["recipe"]
    results = json.loads((folder / "results.json").read_text())
    cells = {}
    for dataset in recipe["dataset"]:
        for method in recipe["method"]:
            cells[method["name"], dataset["name"]] = Cell(folder / "cells" / f"{method['name']}-{dataset['name']}")
    expect("cells", [(cell["method"], cell["dataset"]) for cell in results["cells"]], list(cells))
    for result in results["cells"]:
        check_cell(result, cells[result["method"], result["dataset"]])
    poor = warnings([parse_health(cell.calls) for cell in cells.values()])
    named = sum(warning.count(" %)") for warning in results.get("warnings", []))
    expect("cells warned of", named, poor)
    for row in results.get("netgain", []):
        check_net_gain(row, cells[row["method"], row["dataset"]])
    for row in results.get("paired", []):
        left, right = cells[row["method"], row["dataset"]], cells[row["baseline"], row["dataset"]]
        check_paired(row, left.verdicts(), right.verdicts(), left.units)
    check_adjusted(results.get("paired", []))
    check_choices(results, recipe)
    for row in results.get("collapse", []):
        check_agreement(row, cells[row["method"], row["dataset"]])
    return len(cells), sum(len(cell.calls) for cell in cells.values())


def check_cell(result, cell):
    where = f"cell {result['method']}-{result['dataset']}"
    accuracy = shares(cell.verdicts())
    expect(f"{where}: accuracy", result["accuracy"], accuracy["per_run"])
    expect(f"{where}: mean", result["mean"], accuracy["mean"])
    expect(f"{where}: std", result["std"], accuracy["std"])
    check_accuracy(f"{where}: interval", result["interval"], run_means(cell.verdicts()), cell.units)
    expect(f"{where}: n_items", result["n_items"], len(cell.plan["dataset"]["items"]))
    expect(f"{where}: n_runs", result["n_runs"], cell.plan["runs"])
    expect(f"{where}: n_errors", result["n_errors"], sum(item["error"] is not None for item in cell.last.values()))
    expect(f"{where}: calls", result["cost"]["total"]["calls"], len(cell.calls))
    expect(f"{where}: parse_health", result["parse_health"], parse_health(cell.calls))
    tokens = sum(call["usage"]["completion_tokens"] for call in cell.calls)
    expect(f"{where}: completion_tokens", result["cost"]["total"]["completion_tokens"], tokens)


def check_net_gain(row, cell):
    where = f"NetGain of {row['method']}-{row['dataset']}"
    before, after = cell.round0(), cell.verdicts()
    pairs = list(zip(before, after))
    gained = [[not b and a for b, a in zip(*pair)] for pair in pairs]
    lost = [[b and not a for b, a in zip(*pair)] for pair in pairs]
    expect(f"{where}: wrong to right", row["wrong_to_right"], [sum(run) / len(run) for run in gained])
    expect(f"{where}: right to wrong", row["right_to_wrong"], [sum(run) / len(run) for run in lost])
    for run, (b, a) in enumerate(pairs):
        net = row["wrong_to_right"][run] - row["right_to_wrong"][run]
        if not math.isclose(net, sum(a) / len(a) - sum(b) / len(b), abs_tol=1e-12):
            raise Difference(f"{where}: run {run + 1} is not the gain in accuracy")
    expected = estimate([a - b for a, b in zip(run_means(after), run_means(before))], cell.units)
    expect(where, {key: row[key] for key in expected}, expected)
    check_conditional(f"{where}, conditional", row["conditional"], pairs, cell.units)


def conditional_rates(pairs, questions):
    """P(right at the end | wrong at round 0) and P(wrong at the end | right at round 0) of each run; None of no question."""
    share = lambda answers: sum(answers) / len(answers) if answers else None
    gained = [share([after[q] for q in questions if not before[q]]) for before, after in pairs]
    lost = [share([not after[q] for q in questions if before[q]]) for before, after in pairs]
    return gained, lost


def check_conditional(where, found, pairs, units):
    def mean(rates):
        total, known = 0.0, [rate for rate in rates if rate is not None]
        for rate in known:
            total += rate
        return total / len(known) if known else None

    def net(questions):
        gained, lost = map(mean, conditional_rates(pairs, questions))
        return None if gained is None or lost is None else gained - lost

    questions = range(len(pairs[0][0]))
    if net(questions) is None:
        return expect(where, found, None)
    gained, lost = conditional_rates(pairs, questions)
    expect(f"{where}: wrong to right", found["wrong_to_right"], gained)
    expect(f"{where}: right to wrong", found["right_to_wrong"], lost)
    expected, count = resampled(len(questions), units, net)
    expect(f"{where}: resamples", found["n_resamples"], count)
    expect(where, found["estimate"], expected)


def check_paired(row, left, right, units):
    where = f"{row['method']} less {row['baseline']} on {row['dataset']}"
    differences = [a - b for a, b in zip(run_means(left), run_means(right))]
    expected = estimate(differences, units)
    expect(where, {key: row[key] for key in expected}, expected)
    sums = [math.fsum(differences[place] for place in unit) for unit in units]
    means = [math.fsum(sums[unit] for unit in sample) for sample in draws(len(units))]
    # A mean that is 0 but for rounding may count on either side.
    tails = [sum(sign * mean < 1e-12 for mean in means) for sign in (1, -1)]
    least = 2.0 ** (1 - sum(abs(one) > 1e-12 for one in sums))
    if abs(row["p_value"] - min(1.0, max(least, 2 * (1 + min(tails)) / (1 + RESAMPLES)))) > 2e-3:
        raise Difference(f"{where}: P-value: found {row['p_value']}, recomputed from tails of {tails}")
    count, centre = len(units), math.fsum(differences) / len(differences)
    residuals = [one - centre * len(unit) for one, unit in zip(sums, units)]
    error = math.sqrt(math.fsum(one**2 for one in residuals) * count / max(1, count - 1)) / len(differences)
    seen = (statistics.NormalDist().inv_cdf(0.975) + statistics.NormalDist().inv_cdf(0.8)) * error
    if not math.isclose(row["detectable"] or 0.0, seen, rel_tol=1e-6, abs_tol=1e-12):
        raise Difference(f"{where}: what could be seen: found {row['detectable']}, recomputed {seen}")


def check_adjusted(rows):
    """Over all rows."""
    adjusted, largest = {}, 0.0
    for rank, row in enumerate(sorted(rows, key=lambda row: row["p_value"])):
        largest = min(1.0, max(largest, row["p_value"] * (len(rows) - rank)))
        # Equal P-values have the first one's.
        expect(f"Holm's P-value of {row['method']} on {row['dataset']}", row["p_adjusted"], adjusted.setdefault(row["p_value"], largest))


def check_choices(results, recipe):
    """Which baselines MED-MAD is set against."""
    means = {(cell["method"], cell["dataset"]): cell["mean"] for cell in results["cells"]}
    systems = {cell["method"]: cell["system"] for cell in results["cells"]}
    named = {dataset: pair["baseline"] for dataset, pair in recipe["paper"].get("paired", {}).items()}
    if "paired-best" in recipe["analyses"]:
        for dataset in (dataset["name"] for dataset in recipe["dataset"]):
            rows = [row for row in results["paired"] if row["dataset"] == dataset and row["comparison"] in ("named", "best")]
            others = [m["name"] for m in recipe["method"] if systems[m["name"]] in MULTI and systems[m["name"]] != "medmad"]
            best = max(others, key=lambda name: means[name, dataset])
            expected = [("named", named[dataset])] if dataset in named else []
            expected += [("best", best)]
            expect(f"the baselines on {dataset}", [(row["comparison"], row["baseline"]) for row in rows], expected)
            for row in rows:
                paper = recipe["paper"]["paired"][dataset]["difference"] if row["comparison"] == "named" else None
                expect(f"the paper's difference on {dataset}", row["paper"], paper)
    for row in results.get("paired", []):
        if row["comparison"] == "first":
            expect("the method that others are set against", row["baseline"], recipe["method"][0]["name"])
        if row["comparison"] == "unified":
            single = sorted((systems[name], name) for name in systems if systems[name].startswith(SINGLE))
            score = lambda pair: sum(means[pair[1], d["name"]] for d in recipe["dataset"]) / len(recipe["dataset"])
            top = max(map(score, single))
            chosen = next(name for system, name in single if math.isclose(score((system, name)), top, abs_tol=1e-9))
            expect("the unified baseline", row["baseline"], chosen)


def check_agreement(row, cell):
    where = f"agreement of {row['method']}-{row['dataset']}"
    first, last = cell.trajectories(False), cell.trajectories(True)
    several = lambda runs: [[(answers, gold) for answers, gold in run if len(answers) > 1] for run in runs]
    lone = lambda runs: shares([[len(answers) < 2 for answers, _ in run] for run in runs])
    if not all(several(first)) or not all(several(last)):
        return expect(where, row["agreement"], None)
    wrong = lambda runs: shares([[agree(answers) and answers[0] != gold for answers, gold in run] for run in several(runs)])
    expected = {
        "agreement_at_0": shares([[agree(answers) for answers, _ in run] for run in several(first)]),
        "same_wrong_at_0": wrong(first),
        "same_wrong_at_final": wrong(last),
        "lone_at_0": lone(first),
        "lone_at_final": lone(last),
    }
    expect(where, row["agreement"], expected)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        cells, calls = check(Path(sys.argv[1]))
    except Difference as difference:
        sys.exit(str(difference))
    print(f"{sys.argv[1]}: {cells} cells, {calls} calls recomputed, equal to the last digit")


if __name__ == "__main__":
    main()
