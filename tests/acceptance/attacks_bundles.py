"""The attacks of attacks.sh on bundles: `attacks_bundles.py WARDROUND NAME...`; run in a folder of its own."""

import hashlib
import os
import pathlib
import shutil
import sys

from attacks_common import Program, done, fresh, link_at, pipe_at, try_each
from attacks_signer import Signer

path, *names = sys.argv[1:]
program = Program(path)
VENDOR, OTHER = Signer("vendor"), Signer("other")
WEIGHTS = "models/llama/model.safetensors"
CLEAR = "\x1b[2J\x9b1m\x07"


def bundle():
    """A signed bundle of a model and a program."""
    folder = pathlib.Path("ward")
    if not folder.exists():
        for place in ("models", "bin"):
            (folder / place).mkdir(parents=True)
        program.must("models", "synth", "llama", folder / "models/llama")
        pathlib.Path("stand-in").write_text("#!/bin/sh\n")
        os.chmod("stand-in", 0o755)
        shutil.copy("stand-in", folder / "bin")
        pathlib.Path("vendor.pub").write_text(f"untrusted comment: vendor\n{VENDOR.key()}\n")
        program.must("bundle", "create", folder)
    return VENDOR.sign(folder)


def hostile():
    return fresh(bundle(), "hostile")


def verify(folder):
    return ("bundle", "verify", folder, "--key", "vendor.pub")


def refused(folder, words=()):
    return program.refuses(verify(folder), words, (3,))


def changed():
    """A bundle that is not as it was signed."""
    harms = {
        "a byte of the weights": lambda folder: (folder / WEIGHTS).write_bytes(b"x" + (folder / WEIGHTS).read_bytes()[1:]),
        "a file longer": lambda folder: (folder / "bin/stand-in").open("a").write("#"),
        "a file of any length": lambda folder: os.truncate(folder / WEIGHTS, 1 << 43),
        "a file removed": lambda folder: (folder / WEIGHTS).unlink(),
        "a file more": lambda folder: (folder / "bin/more").write_text("x"),
        "a hidden file more": lambda folder: (folder / "bin/.more").write_text("x"),
        "an empty folder more": lambda folder: (folder / "more").mkdir(),
        "its program a link": lambda folder: link_at(folder / "bin/stand-in", os.path.abspath("stand-in")),
        "a folder that is a link": lambda folder: [(folder / "models").rename("elsewhere"), link_at(folder / "models", os.path.abspath("elsewhere"))],
        "a pipe for a file": lambda folder: pipe_at(folder / WEIGHTS),
        "a pipe more": lambda folder: pipe_at(folder / "more"),
        "a twin by case": lambda folder: (folder / "models/LLAMA").mkdir() or (folder / "models/LLAMA/config.json").write_text("{}"),
        "the sums changed": lambda folder: (folder / "SHA256SUMS").open("a").write("0" * 64 + "  bin/more\n"),
        "a pipe for the sums": lambda folder: pipe_at(folder / "SHA256SUMS"),
        "a pipe for the signature": lambda folder: pipe_at(folder / "SHA256SUMS.minisig"),
        "no signature": lambda folder: (folder / "SHA256SUMS.minisig").unlink(),
        "another's signature": lambda folder: OTHER.sign(folder),
        "a signature of something else": lambda folder: (folder / "SHA256SUMS.minisig").write_text(VENDOR.signature(b"other")),
        "another comment": lambda folder: (folder / "SHA256SUMS.minisig").write_text((folder / "SHA256SUMS.minisig").read_text().replace("attacks\n", "checked\n", 2)),
    }
    for label, harm in harms.items():
        shutil.rmtree("elsewhere", ignore_errors=True)
        folder = hostile()
        harm(folder)
        yield label, refused(folder)


def modes():
    for mode in (0o4755, 0o2755, 0o1755, 0o6777):
        folder = hostile()
        (folder / "bin/stand-in").chmod(mode)
        yield f"{mode:o}", refused(folder, f"its mode is {mode:o}")


def lists():
    """Lists that are signed, and lead outside or contradict themselves: of a sender that means harm, or whose machine somebody else has."""
    digest = hashlib.sha256(b"x").hexdigest()
    pathlib.Path("precious").write_text("x")
    for label, name in [
        ("a path upwards", "../precious"),
        ("a path upwards within", "models/../../precious"),
        ("an absolute path", os.path.abspath("precious")),
        ("a path with an empty part", "bin//stand-in"),
        ("itself", "SHA256SUMS"),
        ("a file twice", WEIGHTS),
        ("a twin by case", WEIGHTS.upper()),
        ("control characters", CLEAR),
        ("no file", "more"),
    ]:
        folder = hostile()
        (folder / "SHA256SUMS").open("a").write(f"{digest}  {name}\n")
        yield label, refused(VENDOR.sign(folder))
    for label, text in [("nothing", ""), ("no UTF-8", "\udcff"), ("no list", "[" * 100_000)]:
        folder = hostile()
        (folder / "SHA256SUMS").write_bytes(text.encode(errors="surrogateescape"))
        yield label, refused(VENDOR.sign(folder))


def terminals():
    """Control characters in names and comments reach no terminal, and make no line that the program did not say."""
    lie = "x\nsigned  all is well\nintact  ward\n"
    for label, put in {
        "the name of a file": lambda folder: (folder / CLEAR).write_text(""),
        "the name of a folder": lambda folder: (folder / CLEAR).mkdir(),
        "a name of several lines": lambda folder: (folder / lie.replace("/", "")).write_text(""),
    }.items():
        folder = hostile()
        put(folder)
        _, text = program.run(*verify(folder))
        yield label, refused(folder) or ("it says what it was told to" if "\nintact" in text or "all is well" in text.split("\n") else "")
    for comment in (CLEAR, "a\rintact", "\u202egpj"):
        yield f"a comment {comment!r}", program.survives(verify(VENDOR.sign(hostile(), comment)))


try_each("bundles", globals(), names)
done()
