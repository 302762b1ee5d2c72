"""How the attacks of attacks.sh run the program, and how each says what came of it."""

import os
import pathlib
import resource
import shutil
import subprocess
import sys

# What a command may take: as much memory as tests/hostile/ceilings.rs gives it.
MEMORY = 3 << 30
# Signs of a process that did not end by its own word.
CRASHES = ("memory allocation of", "panicked at", "stack overflow")
through = []


class NotTried(str):
    """Why a case was not tried."""


def said(name, held, what):
    print(f"{'held' if held else 'GOT THROUGH'}: {name}: {what}", flush=True)
    if not held:
        through.append(name)


def not_tried(name, why):
    print(f"not tried: {name}: {why}", flush=True)


def try_each(kind, attacks, names):
    """Tries attacks that yield their cases: a label, and what got through, nothing where it held, or a `NotTried`."""
    for name in names:
        held, found, shown = 0, [], f"{kind} {name}"
        for label, problem in attacks[name]():
            if isinstance(problem, NotTried):
                not_tried(f"{shown}, {label}", problem)
            elif problem:
                found.append(f"{label}: {problem}")
            else:
                held += 1
        if found:
            said(shown, False, f"{len(found)} of {held + len(found)}: " + "; ".join(found))
        elif held:
            said(shown, True, f"all of {held}")


def done():
    """Ends the process: with 1 if something got through."""
    sys.exit(1 if through else 0)


def clean():
    """The environment without what the user set for this program, for hubs and for proxies."""
    own = ("WARDROUND_", "HF_", "OPENAI_")
    return {name: value for name, value in os.environ.items() if not name.startswith(own) and "proxy" not in name.lower()}


class Program:
    """The binary under attack, run in this process's folder."""

    def __init__(self, path):
        self.path = path
        # A debug build is some ten times slower than a release; what computes until its ceiling takes half a minute.
        self.patience = 600 if "debug" in path else 60

    def run(self, *arguments, environment=None):
        """Its exit code, `None` where it did not end, and all that it said."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            ended = subprocess.run(
                [self.path, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env=clean() | (environment or {}), timeout=self.patience, preexec_fn=limit,
            )
            return ended.returncode, ended.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as late:
            return None, (late.stdout or b"").decode(errors="replace")

    def must(self, *arguments, **more):
        """Runs what prepares an attack, and has to succeed; gives what it said."""
        code, text = self.run(*arguments, **more)
        assert code == 0, f"{arguments}: exit code {code}: {text}"
        return text

    def survives(self, arguments, **more):
        """What is wrong with a command that may succeed or fail, but by its own word and without control characters; nothing where it does."""
        return ended_wrong(*self.run(*arguments, **more))

    def refuses(self, arguments, words=(), codes=(2, 3), **more):
        """The same of a command that must be refused with these words and one of these codes."""
        code, text = self.run(*arguments, **more)
        return ended_wrong(code, text) or lacks(code, text, words, codes)


def ended_wrong(code, text):
    """What is wrong with how a process ended, whatever it was asked."""
    if code is None:
        return "it does not end"
    if code < 0 or code in (101, 134) or any(sign in text for sign in CRASHES):
        return f"it ended with {code}: {last_line(text)}"
    if any(ord(c) < 32 and c not in "\n\t" or 127 <= ord(c) < 160 for c in text):
        return f"control characters reach the terminal: {text!r:.200}"
    return ""


def lacks(code, text, words, codes):
    if code not in codes:
        return f"exit code {code}: {last_line(text)}"
    missing = [word for word in ([words] if isinstance(words, str) else words) if word not in text]
    return f"nothing is said of {missing[0]!r}: {last_line(text)}" if missing else ""


def last_line(text):
    lines = [line for line in text.strip().splitlines() if not line.startswith("hint: ")]
    return lines[-1][:300] if lines else "it said nothing"


def fresh(source, target):
    """A copy of a folder in the place of what was there."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
    return pathlib.Path(target)


def pipe_at(path):
    """A named pipe that nobody writes to, in the place of a file."""
    pathlib.Path(path).unlink(missing_ok=True)
    os.mkfifo(path, 0o600)
    return pathlib.Path(path)


def link_at(path, target):
    pathlib.Path(path).unlink(missing_ok=True)
    os.symlink(target, path)
    return pathlib.Path(path)
