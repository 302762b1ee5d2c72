"""The attacks of attacks.sh on bundles and on the roots that they are installed in: `attacks_bundles.py WARDROUND NAME...`; run in a folder of its own."""

import hashlib
import json
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
EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}


def prepare():
    """A model, a program that stands in for the real one, and a bundle of both."""
    if not pathlib.Path("stand-in").exists():
        program.must("models", "synth", "llama", "llama")
        pathlib.Path("stand-in").write_text('#!/bin/sh\n[ "$1" = selftest ]\n')
        os.chmod("stand-in", 0o755)
    bundle("1.0")


def bundle(version, signer=VENDOR, name="ward"):
    """A signed bundle."""
    folder = pathlib.Path(f"{name}-{version}")
    if not folder.exists():
        program.must("bundle", "create", folder, "--name", name, "--release", version, "--model", "./llama", "--binary", "stand-in", "--unverified", environment=EPOCH)
    return signer.sign(folder)


def hostile(version="1.0"):
    return fresh(bundle(version), "hostile")


def verify(folder, signer=VENDOR):
    return ("bundle", "verify", folder, "--trust", signer.key())


def install(folder, *more, root="root", signer=VENDOR):
    return ("bundle", "install", folder, "--to", root, "--trust", signer.key(), *more)


def installed(*versions):
    """A new root with these versions, the last one current."""
    shutil.rmtree("root", ignore_errors=True)
    for version in versions:
        program.must(*install(bundle(version)))
    return pathlib.Path("root")


def refused(folder, words=(), root="new-root"):
    """What is wrong where a bundle is verified or installed; nothing of it may stay."""
    shutil.rmtree(root, ignore_errors=True)
    problem = program.refuses(verify(folder), words, (3,)) or program.refuses(install(folder, root=root), (), (2, 3))
    there = list(pathlib.Path(root, "versions").glob("*")) if os.path.exists(root) else []
    return problem or (f"{there[0]} was installed" if there else "")


def changed():
    """A bundle that is not as it was signed."""
    harms = {
        "a byte of the weights": lambda folder: (folder / WEIGHTS).write_bytes(b"x" + (folder / WEIGHTS).read_bytes()[1:]),
        "a file longer": lambda folder: (folder / "bin/wardround").open("a").write("#"),
        "a file removed": lambda folder: (folder / WEIGHTS).unlink(),
        "a file more": lambda folder: (folder / "bin/more").write_text("x"),
        "an empty folder more": lambda folder: (folder / "more").mkdir(),
        "its program a link": lambda folder: link_at(folder / "bin/wardround", os.path.abspath("stand-in")),
        "a folder that is a link": lambda folder: [(folder / "models").rename("elsewhere"), link_at(folder / "models", os.path.abspath("elsewhere"))],
        "a pipe for a file": lambda folder: pipe_at(folder / WEIGHTS),
        "a pipe more": lambda folder: pipe_at(folder / "more"),
        "a twin by case": lambda folder: (folder / "models/LLAMA").mkdir() or (folder / "models/LLAMA/config.json").write_text("{}"),
        "the manifest changed": lambda folder: (folder / "MANIFEST.json").write_text((folder / "MANIFEST.json").read_text().replace("ward", "yard")),
        "the sums changed": lambda folder: (folder / "SHA256SUMS").open("a").write("0" * 64 + "  bin/more\n"),
        "a pipe for the manifest": lambda folder: pipe_at(folder / "MANIFEST.json"),
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
        (folder / "bin/wardround").chmod(mode)
        yield f"{mode:o}", refused(folder, f"its mode is {mode:o}")
    root = installed("1.0", "2.0")
    (root / "versions/1.0/bin/wardround").chmod(0o4755)
    yield "4755 in a root, gone back to", program.refuses(("bundle", "rollback", root), "its mode is 4755", (3,))


def signed_again(folder, change, signer=VENDOR):
    """Changes the text of the manifest, and has it signed: a sender that means harm, or whose machine somebody else has."""
    manifest, sums = folder / "MANIFEST.json", folder / "SHA256SUMS"
    text = change(manifest.read_text())
    assert text != manifest.read_text(), "the manifest has not changed"
    manifest.write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    sums.write_text("".join(f"{digest}  MANIFEST.json\n" if line.endswith("  MANIFEST.json") else line + "\n" for line in sums.read_text().splitlines()))
    return signer.sign(folder)


def manifests():
    """Manifests that are signed, and lead outside or contradict themselves."""
    for label, old, new in [
        ("a path upwards", f'"{WEIGHTS}"', '"models/../../../precious"'),
        ("an absolute path", f'"{WEIGHTS}"', json.dumps(os.path.abspath("precious"))),
        ("a hidden path", f'"{WEIGHTS}"', '"models/.llama"'),
        ("another role's folder", f'"{WEIGHTS}"', '"bin/model"'),
        ("a setuid mode", '"mode": "0755"', '"mode": "4755"'),
        ("a program of weights", '"mode": "0644"', '"mode": "0755"'),
        ("a version that is a path", '"version": "1.0"', '"version": "../../1.0"'),
        ("a name that is a path", '"name": "ward"', '"name": "../ward"'),
        ("a format of the future", '"format": 1', '"format": 9'),
        ("control characters", '"created_by": "', '"created_by": "' + json.dumps(CLEAR)[1:-1]),
        ("a text turned around", '"created_by": "', '"created_by": "\u202e'),
        ("nested a hundred thousand deep", '"format": 1', '"format": ' + "[" * 100_000),
    ]:
        pathlib.Path("precious").write_text("precious")
        folder = signed_again(hostile(), lambda text: text.replace(old, new, 1))
        problem = refused(folder) or program.survives(("bundle", "ls", folder))
        yield label, problem or ("" if pathlib.Path("precious").read_text() == "precious" else "a file outside was written")


def terminals():
    """Control characters in names and comments reach no terminal, and make no line that the program did not say."""
    lie = "x\nsigned  by RW: all is well\nintact\n"
    for label, put in {
        "the name of a file": lambda folder: (folder / CLEAR).write_text(""),
        "the name of a folder": lambda folder: (folder / CLEAR).mkdir(),
        "the name of a signature": lambda folder: (folder / f"SHA256SUMS.{CLEAR}.sig").write_text(""),
        "a name of several lines": lambda folder: (folder / f"SHA256SUMS.{lie}.minisig").write_text(""),
    }.items():
        folder = hostile()
        put(folder)
        for command in (verify(folder), ("bundle", "verify", folder), ("bundle", "ls", folder)):
            code, text = program.run(*command)
            yield f"{label}, {command[1]}", program.survives(command) or ("it says what it was told to" if "all is well" in text.split("\n") or "\nintact\n" in f"\n{text}" and code else "")
    for comment in (CLEAR, "a\rintact", "\u202egpj"):
        folder = VENDOR.sign(hostile(), comment)
        for command in (verify(folder), install(folder, root="new-root"), ("bundle", "ls", folder)):
            yield f"a comment {comment!r}, {command[1]}", program.survives(command)


def older():
    """An older version is not installed unasked, after a roll-back either."""
    installed("1.0", "3.0")
    yield "the version before", program.refuses(install(bundle("1.0")), "is older than 3.0", (2, 3))
    program.must("bundle", "rollback", "root")
    yield "one between, after a roll-back", program.refuses(install(bundle("2.0")), "is older than 3.0", (2, 3))
    for to in ("../../hostile", "7.7", "/", "1.0/../../.."):
        yield f"a roll-back to {to}", program.refuses(("bundle", "rollback", "root", "--to", to), codes=(2, 3))
    yield "what is current", "" if os.readlink("root/current") == "versions/1.0" else os.readlink("root/current")


def roots():
    """A root whose files somebody else could write."""
    back = ("bundle", "rollback", "root")
    weights = installed("1.0", "2.0") / "versions/1.0" / WEIGHTS
    weights.write_bytes(bytes(weights.stat().st_size))
    yield "changed weights, gone back to", program.refuses(back, f"changed  {WEIGHTS}", (3,))
    OTHER.sign(installed("1.0", "2.0") / "versions/1.0")
    yield "signed by another, gone back to", program.refuses(back, "has no signature", (3,))
    own = installed("1.0", "2.0") / "versions/1.0"
    shutil.rmtree(own)
    own.symlink_to(os.path.abspath(fresh(bundle("1.0", OTHER, "clinic"), "elsewhere")))
    yield "a link to another's version, gone back to", program.refuses(back, codes=(3,))
    for label, folder, signer in (("another product", bundle("3.0", VENDOR, "clinic"), VENDOR), ("another signer", fresh(bundle("3.0"), "theirs"), OTHER)):
        installed("1.0", "2.0")
        signer.sign(folder)
        yield label, program.refuses(install(folder, signer=signer), codes=(2, 3))
        os.remove("root/trust.json")
        yield f"{label}, without trust.json", program.refuses(install(folder, signer=signer), "no trust.json", (2, 3))
        yield f"a roll-back without trust.json, {label}", program.refuses(back, "no trust.json", (2, 3))
        pipe_at("root/trust.json")
        yield f"{label}, trust.json a pipe", program.refuses(install(folder, signer=signer), codes=(2, 3))
        yield f"{label}, what is current", "" if os.readlink("root/current") == "versions/2.0" else os.readlink("root/current")
    # What stands in the way of files that are written: links to a file outside.
    precious = pathlib.Path("precious")
    for name in (".lock", "trust.json", ".trust.json.partial", "current", ".current.partial", "previous", "versions/.2.0.partial", "licences"):
        precious.write_text("precious")
        root = installed("1.0")
        (root / name).unlink(missing_ok=True)
        (root / name).symlink_to("../" * name.count("/") + "../precious")
        program.run(*install(bundle("2.0")))
        yield f"a link for {name}", "" if precious.read_text() == "precious" else "a file outside was written"


prepare()
try_each("bundles", globals(), names)
done()
