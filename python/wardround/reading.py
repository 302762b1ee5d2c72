"""Reads what `wardround` wrote: a run directory, or a recipe's."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

Line = dict[str, Any]


class RunError(Exception):
    """A directory that is no finished run, or a program that failed; says which and what to do."""


@dataclass(frozen=True)
class Run:
    """One run directory. Nothing is computed anew: what could not be read is missing here too, and counted wrong where there is gold."""

    directory: Path

    @cached_property
    def plan(self) -> Line:
        """What was resolved before the first call: system, models with checksums, data, seeds."""
        return tomllib.loads((self.directory / "plan.toml").read_text(encoding="utf-8"))

    @cached_property
    def figures(self) -> Line:
        """`results.json` as it is."""
        return _json(self.directory / "results.json")

    @cached_property
    def dataset(self) -> pd.DataFrame:
        """The items as they were put to the models, by `item`."""
        return pd.DataFrame(_lines(self.directory / "dataset.jsonl")).drop(columns=["schema", "hash"], errors="ignore").set_index("item")

    @cached_property
    def lines(self) -> list[Line]:
        """The lines of `items.jsonl`; of an item that was tried again the last."""
        last = {(line["run"], line["item"]): line for line in _lines(self.directory / "items.jsonl")}
        return list(last.values())

    @cached_property
    def call_lines(self) -> list[Line]:
        """The lines of `calls.jsonl`, in the order of their keys."""
        lines = list(_lines(self.directory / "calls.jsonl"))
        return sorted(lines, key=lambda line: [line[name] for name in KEY])

    @cached_property
    def items(self) -> pd.DataFrame:
        """A row for each item and run: the gold, what the system says, and whether it is right.

        `is_correct` is missing where there is no gold, and false where the system failed or its replies could not be read.
        Of notes it is about the flag; `is_sentence_correct` is about the sentence too.
        """
        return pd.DataFrame([_question(line) if line["kind"] == "question" else _note(line) for line in self.lines])

    @cached_property
    def calls(self) -> pd.DataFrame:
        """A row for each model call; `record` holds what was read of `text`, `parse` how."""
        rows = [{**line, **line.pop("usage")} for line in map(dict, self.call_lines)]
        return pd.DataFrame(rows).drop(columns=["schema", "seq", "prev", "hash", "usage"], errors="ignore")

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """Of questions, a row for each agent's answer in each round. An empty answer could not be read."""
        rows = []
        for line in self.lines:
            for one in line.get("rounds", []):
                for place, agent in enumerate(one["agents"]):
                    row = {"run": line["run"], "item": line["item"], "round": one["round"], "agent": agent}
                    row |= {"answer": one["answers"][place], "aggregate": one["aggregate"], "gold": line["gold"]}
                    for name in ("confidences", "weights"):
                        row[name[:-1]] = one[name][place] if one[name] else None
                    rows.append(row)
        return pd.DataFrame(rows)

    @cached_property
    def results(self) -> pd.DataFrame:
        """A row for each figure of `results.json`: its name, with dots between the names of what it is part of, and its value."""
        return pd.DataFrame(_figures(self.figures), columns=["figure", "value"])


@dataclass(frozen=True)
class Recipe:
    """A recipe's directory: a run for each cell."""

    directory: Path

    @cached_property
    def figures(self) -> Line:
        """`results.json` as it is."""
        return _json(self.directory / "results.json")

    @cached_property
    def cells(self) -> dict[str, Run]:
        """The finished runs by their names, method and dataset with a hyphen between."""
        folders = sorted((self.directory / "cells").iterdir())
        return {folder.name: Run(folder) for folder in folders if (folder / "results.json").is_file()}

    def _of_cells(self, frame: str) -> pd.DataFrame:
        frames: list[pd.DataFrame] = [getattr(run, frame).assign(cell=name) for name, run in self.cells.items()]
        if not frames:
            raise RunError(f"{self.directory} has no finished cell: `wardround resume {self.directory}` goes on with it")
        return pd.concat(frames, ignore_index=True)

    @property
    def items(self) -> pd.DataFrame:
        """As `Run.items`, with the column `cell`."""
        return self._of_cells("items")

    @property
    def calls(self) -> pd.DataFrame:
        """As `Run.calls`, with the column `cell`."""
        return self._of_cells("calls")

    @property
    def rounds(self) -> pd.DataFrame:
        """As `Run.rounds`, with the column `cell`."""
        return self._of_cells("rounds")

    @cached_property
    def results(self) -> pd.DataFrame:
        """A row for each figure of each cell."""
        rows = [
            (cell["method"], cell["dataset"], figure, value)
            for cell in self.figures["cells"]
            for figure, value in _figures(cell)
        ]
        return pd.DataFrame(rows, columns=["method", "dataset", "figure", "value"])


def read(directory: str | Path) -> Run | Recipe:
    """A run directory, or a recipe's.

    Raises `RunError` where there is neither, or it is not finished.
    """
    directory = Path(directory)
    is_recipe = (directory / "recipe.toml").is_file()
    if not is_recipe and not (directory / "plan.toml").is_file():
        raise RunError(f"{directory} is neither a run directory nor a recipe's: it has no plan.toml and no recipe.toml")
    if not (directory / "results.json").is_file():
        raise RunError(f"{directory} is not finished: `wardround resume {directory}` goes on with it")
    return Recipe(directory) if is_recipe else Run(directory)


KEY = ("dataset", "run", "item", "round", "agent", "purpose", "sample")


def _json(path: Path) -> Line:
    read: Line = json.loads(path.read_text(encoding="utf-8"))
    return read


def _lines(path: Path) -> Iterator[Line]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise RunError(f"{path}:{number}: {error}: `wardround verify` says what is damaged") from error


def _common(line: Line) -> Line:
    names = ("dataset", "run", "item", "calls", "error")
    return {name: line[name] for name in names}


def _question(line: Line) -> Line:
    is_graded, is_failed = line["gold"] is not None, line["error"] is not None
    row = {name: line[name] for name in ("gold", "answer", "team_confidence", "rounds_run", "tie", "rationale")}
    return _common(line) | row | {"is_correct": bool(line["correct"]) and not is_failed if is_graded else None}


def _note(line: Line) -> Line:
    gold, is_failed = line["gold"], line["error"] is not None
    row = {name: line[name] for name in ("flag", "sentence_id", "sentence", "correction", "confidence")}
    for name in ("flag", "sentence_id", "sentence", "correction", "type"):
        row[f"gold_{name}"] = gold[name] if gold else None
    is_right = not is_failed and gold is not None and line["flag"] == gold["flag"]
    is_placed = is_right and line["sentence_id"] == gold["sentence_id"]
    row |= {"is_correct": is_right, "is_sentence_correct": is_placed} if gold else {"is_correct": None, "is_sentence_correct": None}
    return _common(line) | row


def _figures(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Every number below a value; of a list of numbers each with its place, from 0."""
    if isinstance(value, bool) or isinstance(value, str) or value is None:
        return
    if isinstance(value, (int, float)):
        yield name, value
        return
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        yield from _figures(part, f"{name}.{key}" if name else str(key))
