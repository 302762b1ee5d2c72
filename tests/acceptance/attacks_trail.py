"""The attacks of attacks.sh on an audit trail: `attacks_trail.py WARDROUND NAME...`; run in a folder of its own."""

import hashlib
import hmac
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

from attacks_common import Program, clean, done, fresh, lacks, link_at, pipe_at, try_each

path, *names = sys.argv[1:]
program = Program(path)
HONEST, HOSTILE = pathlib.Path("honest"), pathlib.Path("hostile")
JOURNAL = pathlib.Path("journal")
ALL = tuple(map(str, range(1, 40)))
# What a trail that is not as it should be must end with, and 3 of `audit verify`; and no start.
WRONG = "is not as it was"


def serve(trail):
    return (
        "serve", "qwen3", "--port", "0", "--offline", "--threads", "1", "--kv-tokens", "8192", "--audit", trail, "--audit-content", "full",
    )


def verify(*more):
    return ("audit", "verify", HOSTILE, *more)


def prepare():
    """A trail of three servers that answered once each, and the heads that another machine's journal would have."""
    if HONEST.exists():
        return
    program.must("models", "synth", "qwen3", "qwen3")
    said = ""
    for number in range(3):
        server = subprocess.Popen(
            [path, *map(str, serve(HONEST))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean()
        )
        address = server.stdout.readline().split()[-1]
        ask(address, f"Fever for {number + 2} days. Malaria is treated with aspirin.")
        server.terminate()
        said += server.communicate()[1]
    JOURNAL.write_text([line for line in said.splitlines() if line.startswith("audit head")][-1].split()[-1])
    assert "intact" in program.must("audit", "verify", HONEST, "--head", JOURNAL.read_text())


def ask(address, prompt):
    """One completion, once the server is ready."""
    body = json.dumps({"prompt": prompt, "max_tokens": 8}).encode()
    request = urllib.request.Request(f"{address}/v1/completions", body, {"content-type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(600):
        try:
            return opener.open(request).read()
        except urllib.error.URLError:
            time.sleep(0.2)
    raise AssertionError("the server does not answer")


def lines(trail=HONEST):
    return (trail / "trail.jsonl").read_text().splitlines()


def write(changed, with_head=False):
    """A copy of the trail with these lines, and with the head of the last of them where that is asked for."""
    fresh(HONEST, HOSTILE)
    (HOSTILE / "trail.jsonl").write_text("".join(line + "\n" for line in changed))
    if with_head and changed:
        fields = json.loads(changed[-1])
        (HOSTILE / "trail.head").write_text(f"audit head {fields['seq']} {fields['hash']}\n")


def sealed(changed, first=0):
    """The lines with the hashes that they must have from one of them on, as who has the key makes them."""
    changed, prev = list(changed), None
    for index in range(first, len(changed)):
        fields = json.loads(changed[index])
        fields.pop("hash")
        fields["prev"] = prev or fields["prev"]
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        prev = hmac.new((HONEST / "key").read_bytes(), text.encode(), hashlib.sha256).hexdigest()
        changed[index] = f'{text[:-1]},"hash":"{prev}"}}'
    return changed


def forged(number, **more):
    """All lines, with these fields in one of them, and sealed again."""
    changed = lines()
    changed[number] = json.dumps({**json.loads(changed[number]), **more}, ensure_ascii=False, separators=(",", ":"))
    return sealed(changed, number)


def case():
    """The place of the first line that has a text, and the text's id."""
    return next((index, json.loads(line)["content"]) for index, line in enumerate(lines()) if '"content"' in line)


def kept(trail=HOSTILE):
    return trail / "content" / f"{case()[1]}.json"


def calls_it_intact(arguments):
    """Whether `verify` says so."""
    code, text = program.run(*arguments)
    return code == 0 or "\nintact" in f"\n{text}"


def starts(*more, words=(), codes=(3,)):
    """What is wrong with the commands that write a trail where they must be refused."""
    for command in (serve(HOSTILE), ("audit", "forget", HOSTILE, *ALL)):
        problem = program.refuses(command, words, codes)
        if problem:
            return f"{command[0]}: {problem}"
    return ""


def cut():
    whole = lines()
    for count in range(len(whole)):
        write(whole[:count])
        yield f"to {count} lines, verify", "" if not calls_it_intact(verify()) else "it says intact"
        yield f"to {count} lines, a start", starts(words=WRONG) if count else program.refuses(serve(HOSTILE), WRONG, (3,))
    fresh(HONEST, HOSTILE)
    (HOSTILE / "trail.jsonl").unlink()
    yield "deleted, a start", program.refuses(serve(HOSTILE), WRONG, (3,))


def rolled_back():
    """Where the head beside the trail is written again too, only heads of another machine tell; also of who has the key."""
    whole = lines()
    for count in (1, len(whole) // 2, len(whole) - 1):
        write(whole[:count], with_head=True)
        yield f"to {count} lines, by the journal", program.refuses(verify("--head", JOURNAL.read_text()), "was cut off", (3,))
    for number in (0, len(whole) // 2):
        write(forged(number, up_ms=1), with_head=True)
        yield f"written again from line {number + 1}, by the journal", program.refuses(verify("--head", JOURNAL.read_text()), "made anew", (3,))
    write(forged(len(whole) // 2, up_ms=1))
    yield "written again, with the old head", program.refuses(verify(), WRONG, (3,))
    yield "written again, a start", starts(words=WRONG)


def changed():
    whole = lines()
    for index, line in enumerate(whole):
        for place in range(0, len(line), 37):
            other = "1" if line[place] == "0" else "0"
            write([*whole[:index], line[:place] + other + line[place + 1 :], *whole[index + 1 :]])
            yield f"byte {place} of line {index + 1}", "it says intact" if calls_it_intact(verify()) else ""
        write([*whole[:index], *whole[index + 1 :]])
        yield f"without line {index + 1}", "it says intact" if calls_it_intact(verify()) else ""
        write([*whole[: index + 1], *whole[index:]])
        yield f"line {index + 1} twice", "it says intact" if calls_it_intact(verify()) else ""
    write([whole[1], whole[0], *whole[2:]])
    yield "two swapped", "it says intact" if calls_it_intact(verify()) else ""


def texts():
    for label, change in {
        "changed": lambda text: text.replace("aspirin", "quinine"),
        "changed beside input and output": lambda text: text.replace('"salt":"', '"salt":"0', 1),
        "with a field more": lambda text: text[:-1] + ',"more":1}',
        "emptied": lambda text: "",
    }.items():
        fresh(HONEST, HOSTILE)
        text = kept().read_text()
        assert change(text) != text, label
        kept().write_text(change(text))
        yield label, program.refuses(verify(), codes=(1, 2, 3))
    fresh(HONEST, HOSTILE)
    kept().unlink()
    yield "removed", program.refuses(verify(), "missing, and no line says", (1,))


def key():
    fresh(HONEST, HOSTILE)
    (HOSTILE / "key").unlink()
    yield "removed, verify", program.refuses(verify(), "key is missing", (3,))
    yield "removed, a start", starts(words="key is missing")
    yield "removed, no other is made", "a key is there" if (HOSTILE / "key").exists() else ""
    (HOSTILE / "key").write_bytes(bytes(32))
    (HOSTILE / "key").chmod(0o600)
    yield "another, verify", program.refuses(verify(), WRONG, (3,))
    yield "another, a start", starts(words=WRONG)
    for file, mode in ((".", 0o777), (".", 0o705), ("key", 0o666), ("key", 0o604)):
        fresh(HONEST, HOSTILE)
        (HOSTILE / file).chmod(mode)
        yield f"mode {mode:o} of {file}", starts(words="has mode", codes=(2,))
    HOSTILE.chmod(0o700)


def outside():
    """Ids that lead out of the trail, in lines that are sealed again."""
    precious = pathlib.Path("precious.json")
    number, _ = case()
    for id in (os.path.abspath("precious"), "../../precious", "../../../precious", "..", "precious", "a" * 31 + "/", "\x1b[2J", "A" * 32):
        for name, value in (("content", id), ("forgotten", [id])):
            precious.write_text("{}")
            write(forged(number, **{name: value}), with_head=True)
            problem = program.survives(("audit", "forget", HOSTILE, *ALL)) or program.survives(verify())
            yield f"{name} {id[-20:]!r}", problem or ("" if precious.read_text() == "{}" else "a file outside was changed")


def links():
    """Links in the place of a trail's files and folders: nothing outside is overwritten, removed or written to."""
    precious, victim = pathlib.Path("precious.json"), pathlib.Path("victim")
    forget = ("audit", "forget", HOSTILE, *ALL)

    def unharmed():
        if not precious.exists() or precious.read_text() != "precious":
            return "a file outside was overwritten or removed"
        problem = program.survives(("audit", "verify", victim)) or lacks(*program.run("audit", "verify", victim), (), (0,))
        return f"another's trail was written to: {problem}" if problem else ""

    def begin():
        fresh(HONEST, HOSTILE)
        fresh(HONEST, victim)
        precious.write_text("precious")

    def folder_behind_link():
        shutil.rmtree(HOSTILE / "content")
        (HOSTILE / "content").symlink_to("../victim/content")

    def hard_link():
        kept().unlink()
        os.link(precious, kept())

    for label, put in {
        "the folder of texts": folder_behind_link,
        "a text": lambda: link_at(kept(), "../../precious.json"),
        "a text that has another name outside": hard_link,
        "the file of the lines": lambda: link_at(HOSTILE / "trail.jsonl", "../victim/trail.jsonl"),
        "the lines, head and key": lambda: [link_at(HOSTILE / name, f"../victim/{name}") for name in ("trail.jsonl", "trail.head", "key")],
        "the head": lambda: link_at(HOSTILE / "trail.head", "../victim/trail.head"),
        "a head that is being written": lambda: link_at(HOSTILE / ".trail.head.partial", "../precious.json"),
    }.items():
        begin()
        put()
        program.run(*forget)
        yield label, unharmed()


def pipes():
    for name in ("trail.jsonl", "trail.head", "key", f"content/{case()[1]}.json"):
        pipe_at(fresh(HONEST, HOSTILE) / name)
        for command in (verify(), ("audit", "show", HOSTILE), ("audit", "forget", HOSTILE, *ALL)):
            yield f"{name}, {' '.join(map(str, command[:2]))}", program.survives(command)


def terminals():
    """Control characters in the lines of a trail."""
    clear = "\x1b[2J\x9b1m\x07"
    for name in ("actor", "event", "status", "identity", "boot_id", "content", "why"):
        write(forged(case()[0], **{name: clear}), with_head=True)
        for command in (verify(), ("audit", "show", HOSTILE), ("audit", "forget", HOSTILE, *ALL)):
            yield f"{name}, {' '.join(map(str, command[:2]))}", program.survives(command)


prepare()
try_each("trail", globals(), names)
done()
