"""Writes metrics.json: bootstraps, NetGain, McNemar's test and deviations as numpy, scipy and scikit-learn
have them, on small seeded runs.
"""

from pathlib import Path

import numpy
import scipy.stats
from sklearn.metrics import cohen_kappa_score

from files import write_records

RESAMPLES = 10_000
SEED = 42
# Two bootstraps of 10,000 resamples place a 2.5 % quantile of a normal distribution this many of its deviations apart at
# most: four standard errors of the difference, sqrt(2 q (1 - q) / B) / density.
APART = 4 * (2 * 0.025 * 0.975 / RESAMPLES) ** 0.5 / scipy.stats.norm.pdf(scipy.stats.norm.ppf(0.025))


def make(folder: Path) -> None:
    records = [*bootstraps(), *net_gains(), *mcnemars(), *deviations(), *kappas()]
    write_records(folder / "metrics.json", {"tolerance": 1e-12}, "cases", records)
    print(f"metrics: {len(records)}")


def text(runs: numpy.ndarray) -> list[str]:
    return ["".join(str(int(verdict)) for verdict in run) for run in runs]


def draw(index: int, runs: int, questions: int, share: float, spread: float) -> numpy.ndarray:
    """Verdicts [runs, questions]; questions differ in how hard they are, and keep that over runs."""
    hard = numpy.random.default_rng([0, questions]).normal(0, spread, questions)
    noise = numpy.random.default_rng([1, index]).normal(0, 1, (runs, questions))
    return noise + hard < scipy.stats.norm.ppf(share) * (1 + spread**2) ** 0.5


def splitmix64(count: int) -> numpy.ndarray:
    """The first numbers of the generator seeded SEED."""
    with numpy.errstate(over="ignore"):
        mixed = numpy.uint64(SEED) + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> numpy.uint64(31))


def interval(values: numpy.ndarray, units: list[int] | None) -> dict:
    """The mean and its percentile interval, summed in the order of the draws, as a loop would."""
    names = list(dict.fromkeys(units)) if units else list(range(len(values)))
    members = [[i for i in range(len(values)) if (units or names)[i] == name] for name in names]
    sums = numpy.array([values[place].cumsum()[-1] for place in members])
    sizes = numpy.array([len(place) for place in members])
    numbers = splitmix64(RESAMPLES * len(names))
    assert (numbers >= 2**64 % len(names)).all(), "a number to be thrown away: choose another size"
    drawn = (numbers % numpy.uint64(len(names))).astype(int).reshape(RESAMPLES, len(names))
    means = sums[drawn].cumsum(axis=1)[:, -1] / sizes[drawn].sum(axis=1)
    low, high = numpy.percentile(means, [2.5, 97.5])
    apart = APART * means.std() + 1e-12

    def statistic(index: numpy.ndarray) -> float:
        index = index.astype(int)
        return sums[index].sum() / sizes[index].sum()

    theirs = None
    if len(names) > 1:
        # One step of the discrete means may lie between two quantiles.
        apart += numpy.diff(numpy.unique(means.round(12))).min() if len(numpy.unique(means.round(12))) > 1 else 0
        scipys = scipy.stats.bootstrap(
            (numpy.arange(len(names)),),
            statistic,
            n_resamples=RESAMPLES,
            method="percentile",
            vectorized=False,
            rng=numpy.random.default_rng(7),
        ).confidence_interval
        assert abs(scipys.low - low) <= apart and abs(scipys.high - high) <= apart, (scipys, low, high, apart)
        theirs = {"low": float(scipys.low), "high": float(scipys.high), "tolerance": float(apart)}
    return {
        "mean": float(values.cumsum()[-1] / len(values)),
        # Of one unit there is no interval.
        "low": float(low) if len(names) > 1 else None,
        "high": float(high) if len(names) > 1 else None,
        "n_units": len(names),
        "scipy": theirs,
    }


def run_means(runs: numpy.ndarray) -> numpy.ndarray:
    return runs.sum(axis=0) / len(runs)


def bootstraps() -> list[dict]:
    near_duplicates = [i // 2 if i < 80 else i for i in range(100)]
    cases = [
        ("three runs against three", (3, 0.60), (3, 0.57), 100, None),
        ("three runs against two", (3, 0.60), (2, 0.42), 100, None),
        ("one run each, few questions", (1, 0.7), (1, 0.5), 13, None),
        ("one question", (1, 1.0), (1, 0.0), 1, None),
        ("forty pairs and twenty alone", (3, 0.60), (3, 0.57), 100, near_duplicates),
        ("units of one to seven", (2, 0.5), (2, 0.6), 61, [i * i % 7 * 3 + i // 30 for i in range(61)]),
        ("many questions", (3, 0.76), (3, 0.77), 500, None),
    ]
    records = []
    for index, (name, left, right, questions, units) in enumerate(cases):
        left = draw(2 * index, left[0], questions, left[1], 1.0)
        right = draw(2 * index + 1, right[0], questions, right[1], 1.0)
        estimate = interval(run_means(left) - run_means(right), units)
        sides = {"left": text(left), "right": text(right), "units": units}
        records.append({"figure": "bootstrap", "case": name, **sides, **estimate})
    return records


def net_gains() -> list[dict]:
    records = []
    for index, (runs, questions) in enumerate([(3, 100), (1, 254)]):
        before, after = draw(100 + index, runs, questions, 0.45, 2.0), draw(200 + index, runs, questions, 0.56, 2.0)
        gained, lost = (after & ~before).sum(axis=1), (before & ~after).sum(axis=1)
        assert numpy.allclose((gained - lost) / questions, after.mean(axis=1) - before.mean(axis=1))
        estimate = interval(run_means(after) - run_means(before), None)
        flips = {"wrong_to_right": gained.tolist(), "right_to_wrong": lost.tolist()}
        case = {"figure": "net_gain", "case": f"{runs} runs", "round0": text(before), "last": text(after)}
        records.append({**case, **flips, **estimate})
    return records


def mcnemars() -> list[dict]:
    tables = [(0, 0), (0, 1), (1, 1), (5, 0), (2, 8), (10, 20), (33, 33), (48, 71), (150, 211), (400, 873), (1, 999)]
    p = [1.0 if b + c == 0 else scipy.stats.binomtest(b, b + c, 0.5).pvalue for b, c in tables]
    pairs = zip(tables, p, strict=True)
    return [{"figure": "mcnemar", "only_left": b, "only_right": c, "p_value": float(p)} for (b, c), p in pairs]


def deviations() -> list[dict]:
    """The ± of MED-MAD's Table 1: three runs, and two of them."""
    rows = [[0.58, 0.63], [0.76, 0.77], [0.57, 0.6, 0.62], [0.9, 0.91, 0.91], [0.85, 0.85, 0.85]]
    return [
        {"figure": "over_runs", "per_run": row, "mean": float(numpy.mean(row)), "std": float(numpy.std(row, ddof=1))}
        for row in rows
    ]


def kappas() -> list[dict]:
    """Two raters' scores of 0 to 3: the second repeats the first but for some, which are drawn anew."""
    records = []
    for index, (entries, kept) in enumerate([(80, 0.575), (80, 0.9), (80, 0), (20, 0.5), (7, 0.4), (300, 0.7)]):
        generator = numpy.random.default_rng([7, index])
        first = generator.choice(4, entries, p=[0.35, 0.2, 0.15, 0.3])
        second = numpy.where(generator.random(entries) < kept, first, generator.integers(0, 4, entries))
        records.append(
            {
                "figure": "kappa",
                "first": "".join(map(str, first)),
                "second": "".join(map(str, second)),
                "identical": int((first == second).sum()),
                "unweighted": float(cohen_kappa_score(first, second)),
            }
        )
    return records
