"""Writes sampler.json: which tokens survive penalty, temperature, top-k, top-p and min-p, in that order, and with what
probability, as transformers' logits processors have it.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy
import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from files import significant, write_records

# No cut may fall nearer than this to the probability, or the share of one, that decides it.
MARGIN = 1e-3
SEEDS = 1000


@dataclass
class Case:
    """Settings at their neutral values are off, and are left out of the processors' list."""

    name: str
    size: int
    spread: float
    decimals: int = 3
    previous: int = 0  # tokens drawn before this one, with repetitions
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0


CASES = [
    Case("plain softmax", 50, 2.0),
    Case("temperature alone", 80, 3.0, temperature=0.6),
    Case("high temperature", 80, 3.0, temperature=1.8),
    Case("top-k alone", 120, 2.0, top_k=20),
    Case("top-k of one", 64, 2.0, top_k=1),
    Case("top-k beyond the vocabulary", 50, 2.0, top_k=1000),
    Case("top-p alone", 200, 2.5, top_p=0.9),
    Case("top-p below the best token", 100, 4.0, top_p=0.05),
    Case("min-p alone", 150, 2.5, min_p=0.08),
    Case("min-p of one", 64, 2.0, min_p=1.0),
    Case("penalty alone", 60, 2.0, previous=30, repetition_penalty=1.3),
    Case("penalty below one", 60, 2.0, previous=30, repetition_penalty=0.8),
    Case("as Gemma 3 ships", 300, 1.2, top_k=64, top_p=0.95),
    Case("as Llama 3.2 ships", 300, 2.0, temperature=0.6, top_p=0.9),
    Case("as Qwen3 ships, thinking", 300, 1.5, temperature=0.6, top_k=20, top_p=0.95),
    Case("as Qwen3 ships, not thinking", 300, 1.5, temperature=0.7, top_k=20, top_p=0.8),
    Case(
        "everything on",
        250,
        1.5,
        previous=80,
        repetition_penalty=1.15,
        temperature=0.9,
        top_k=40,
        top_p=0.92,
        min_p=0.03,
    ),
    Case("peaky", 100, 12.0, temperature=0.5, top_k=10, top_p=0.99),
    Case("ties, none at a cut", 200, 1.5, decimals=1, temperature=0.8, top_k=30, top_p=0.9),
    Case("ties, whole set kept", 90, 1.0, decimals=0, temperature=1.5),
]


def make(folder: Path) -> None:
    records = [golden(index, case) for index, case in enumerate(CASES)]
    write_records(folder / "sampler.json", {"probability_tolerance": 1e-5}, "cases", records)
    print(f"sampler: {len(records)}")


def golden(index: int, case: Case) -> dict:
    for seed in range(SEEDS):
        generator = numpy.random.default_rng([index, seed])
        # Few decimals: the JSON number, read as f32, is then exactly the f32 used here.
        logits = (case.spread * generator.standard_normal(case.size)).round(case.decimals).astype(numpy.float32)
        logits += 0.0  # no -0
        previous = generator.integers(0, case.size, case.previous).tolist()
        kept, probabilities, decisive = process(case, torch.from_numpy(logits), previous)
        if decisive:
            break
    else:
        raise SystemExit(f"{case.name}: no seed below {SEEDS} keeps clear of the cuts")
    return {
        "name": case.name,
        "logits": [float(str(logit)) for logit in logits],
        "previous": previous,
        "repetition_penalty": case.repetition_penalty,
        "temperature": case.temperature,
        "top_k": case.top_k,
        "top_p": case.top_p,
        "min_p": case.min_p,
        "kept": kept,
        "probabilities": [significant(probability, 8) for probability in probabilities],
    }


def process(case: Case, logits: torch.Tensor, previous: list[int]) -> tuple[list[int], list[float], bool]:
    """The kept ids, ascending, their renormalised probabilities, and whether every cut was clear."""
    processors = LogitsProcessorList()
    if case.repetition_penalty != 1.0:
        processors.append(RepetitionPenaltyLogitsProcessor(case.repetition_penalty))
    if case.temperature != 1.0:
        processors.append(TemperatureLogitsWarper(case.temperature))
    if case.top_k > 0:
        processors.append(TopKLogitsWarper(case.top_k))
    if case.top_p < 1.0:
        processors.append(TopPLogitsWarper(case.top_p))
    if case.min_p > 0.0:
        processors.append(MinPLogitsWarper(case.min_p))

    scores, decisive = logits[None], True
    for processor in processors:
        before = scores
        scores = processor(torch.tensor([previous], dtype=torch.long), scores)
        decisive &= cut_is_clear(case, processor, before[0], scores[0])
    kept = scores[0].isfinite().nonzero()[:, 0]
    probabilities = scores[0].double().softmax(-1)[kept]
    return kept.tolist(), probabilities.tolist(), decisive


def cut_is_clear(case: Case, processor: object, before: torch.Tensor, after: torch.Tensor) -> bool:
    """Ties across a cut are broken by sort order here and by lowest id elsewhere, so no golden may hold one."""
    kept = before[after.isfinite()].double()
    dropped = before[before.isfinite() & ~after.isfinite()].double()
    if len(dropped) > 0 and kept.min() <= dropped.max():
        return False
    probabilities = before.double().softmax(-1)
    match processor:
        case TopPLogitsWarper():
            sums = probabilities.sort(descending=True).values.cumsum(-1)
            return bool((sums - case.top_p).abs().min() > MARGIN)
        case MinPLogitsWarper() if case.min_p < 1.0:
            return bool((probabilities / probabilities.max() - case.min_p).abs().min() > MARGIN)
    return True
