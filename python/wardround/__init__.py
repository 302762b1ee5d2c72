"""Runs of `wardround` as pandas data frames.

    import wardround

    run = wardround.read("DIR")       # a run directory, or a recipe's
    run.items                         # a row for each item and run
    run.calls                         # a row for each model call
    run.rounds                        # a row for each agent's answer in each round
    run.results                       # a row for each figure

    run = wardround.run("medmad", data="mine.jsonl", format="mcq", panel=["qwen3-4b"], out="mine")
    wardround.to_every_eval_ever(run, "OUT")
"""

from .every_eval_ever import to_every_eval_ever
from .reading import Recipe, Run, RunError, read
from .running import run

__all__ = ["Recipe", "Run", "RunError", "read", "run", "to_every_eval_ever"]
