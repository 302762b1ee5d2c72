"""Drives the program."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .reading import Run, RunError, read


def run(
    system: str | Path,
    *,
    data: str | Path,
    format: str,
    panel: Sequence[str] = (),
    out: str | Path,
    settings: Mapping[str, object] | None = None,
    arguments: Sequence[str] = (),
    program: str | None = None,
) -> Run:
    """Runs a system over a file, as `wardround run` does, and reads what it wrote. A run that is there goes on.

    `settings` are `--set KEY=VALUE`, `arguments` any further flags, such as `["--limit", "100", "--device", "cuda"]`. Progress goes to stderr.
    Raises `RunError` where the program fails; where items failed, the run is read all the same and has them under `error`.
    """
    found = program or os.environ.get("WARDROUND_PROGRAM") or shutil.which("wardround")
    if found is None:
        raise RunError("there is no program `wardround` in PATH: install it, or name it by program=")
    command = [found, "run", str(system), "--data", str(data), "--format", format, "--out", str(out)]
    if panel:
        command += ["--panel", ",".join(panel)]
    for key, value in (settings or {}).items():
        command += ["--set", f"{key}={_word(value)}"]
    ended = subprocess.run([*command, *arguments], stdout=subprocess.DEVNULL, check=False).returncode
    # 1: it ended, and some items have errors or could not be read.
    if ended not in (0, 1) or not (Path(out) / "results.json").is_file():
        raise RunError(f"{' '.join(command[:3])} ended with exit code {ended}: what it said is on stderr")
    done = read(out)
    assert isinstance(done, Run)
    return done


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
