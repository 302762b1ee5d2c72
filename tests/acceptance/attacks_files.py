"""The attacks of attacks.sh by models, corpora and data from elsewhere, and on the sandbox: `attacks_files.py WARDROUND ENCODER NAME...`; run in
a folder of its own. ENCODER is a directory that `corpus build` takes."""

import json
import os
import pathlib
import sys

from attacks_common import NotTried, Program, done, fresh, link_at, pipe_at, try_each

path, encoder, *names = sys.argv[1:]
program = Program(path)
MODEL = pathlib.Path("qwen3")
BILLION = 10**9
LANDLOCK = "this kernel has no Landlock of ABI 3, so that only the list of system calls holds"
NOTE = "Fever for two days. Malaria is treated with aspirin.\n"
QUESTION = {"id": "a", "question": "Which vitamin is retinol?", "options": {"A": "A", "B": "D"}, "answer": "A"}
QUICK = ("--offline", "--threads", "1", "--kv-tokens", "8192", "--set", "max_tokens=8")


def prepare():
    if not MODEL.exists():
        program.must("models", "synth", "qwen3", MODEL)
    pathlib.Path("note.txt").write_text(NOTE)
    pathlib.Path("q.jsonl").write_text(json.dumps(QUESTION) + "\n")


def hostile(file, content):
    """A copy of the model with this in the place of one of its files."""
    folder = fresh(MODEL, "hostile")
    (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def verify(folder):
    return ("models", "verify", f"./{folder}")


def generate(folder):
    return ("generate", "--model", f"./{folder}", "--prompt", "Fever", "--max-tokens", "4", "--offline", "--threads", "1")


def check(folder, *more):
    return ("check", "note.txt", "--panel", f"./{folder}", *QUICK, *more)


def has_landlock():
    """Whether this kernel has what `--sandbox require` asks for."""
    return "a sandbox is required" not in program.run(*check(MODEL, "--sandbox", "require"))[1]


# --- Checkpoints -----------------------------------------------------------------------------------------------------------------

GROWTH = [
    "ns.s + ns.s", "ns.s ~ ns.s", "ns.s.replace('x', 'xxxxxxxx')", "ns.s | replace('x', 'xxxxxxxx')", "[ns.s, ns.s, ns.s] | join(ns.s)",
    "ns.s | tojson", "ns.s | urlencode", "ns.s | e | string", "ns.s * 8", "ns.s.join(['a', 'b', ns.s])", "ns.s | indent(9999)", "'%s%s' | format(ns.s, ns.s)",
]
TEMPLATES = [
    *("{% set ns = namespace(s='\"xxxxxxx') %}{% for i in range(60) %}{% set ns.s = " + step + " %}{% endfor %}" for step in GROWTH),
    "{% set ns = namespace(s=['xxxxxxxx']) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
    "{{ 'x' | indent(99999999999) }}", "{{ '%999999999999d' | format(1) }}", "{{ 'x' * 999999999999 }}", "{{ 'x' | center(99999999999) }}",
    "{{ range(99999999999) | list }}", "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}", "{{ 10 ** 99999999 }}", "{% for m in messages * 99999999 %}{{ m.content }}{% endfor %}",
]


def templates():
    for template in TEMPLATES:
        yield f"{template[-70:]}", program.refuses(verify(hostile("chat_template.jinja", template)), "chat_template.jinja", codes=(3,))
    yield "to generate by", program.refuses(generate(hostile("chat_template.jinja", TEMPLATES[0])), "chat_template.jinja", codes=(2, 3))


def changed(file, change):
    value = json.loads((MODEL / file).read_text())
    change(value)
    return json.dumps(value)


def tokenizers():
    replace = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10}
    empty = {"type": "Replace", "pattern": {"Regex": ""}, "content": "a" * 10}
    prepend = {"type": "Prepend", "prepend": "a" * 100}
    sequence = lambda parts: {"type": "Sequence", "normalizers": parts}
    for label, normalizer in {
        "14 that replace": sequence([replace] * 14),
        "14 that fill in": sequence([empty] * 14),
        "14 that prepend": sequence([prepend] * 14),
        "sequences in a sequence": sequence([sequence([replace] * 7)] * 2),
    }.items():
        text = changed("tokenizer.json", lambda file: file.update(normalizer=normalizer))
        yield label, program.refuses(verify(hostile("tokenizer.json", text)), "its normalizers may make a text", codes=(3,))
    split = {"type": "Split", "pattern": {"Regex": "(a|a|aa)+b"}, "behavior": "Isolated", "invert": False}
    padding = {"strategy": {"Fixed": BILLION}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "a"}
    special = {"id": 4_000_000_000, "content": "<x>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    for label, change in {
        "a pattern that tries every way": lambda file: file.update(pre_tokenizer=split),
        "padding to a billion": lambda file: file.update(padding=padding),
        "a token of a far number": lambda file: file["added_tokens"].append(special),
        "a decoder that multiplies": lambda file: file.update(decoder={"type": "Sequence", "decoders": [replace] * 14}),
    }.items():
        folder = hostile("tokenizer.json", changed("tokenizer.json", change))
        for command in (verify(folder), ("generate", "--model", f"./{folder}", "--prompt", "a" * 5000, "--max-tokens", "4", "--offline", "--threads", "1")):
            yield f"{label}, {command[0]}", program.survives(command)


def configurations():
    for field in ("num_hidden_layers", "hidden_size", "vocab_size", "num_attention_heads"):
        text = changed("config.json", lambda config: config.update({field: BILLION}))
        yield f"a billion of {field}", program.refuses(verify(hostile("config.json", text)), (field, str(BILLION)), codes=(3,))
    numbers = '{"layer_types": [' + "0," * (20 << 20) + "0]}"
    yield "twenty million numbers", program.refuses(verify(hostile("config.json", numbers)), "it is longer than", codes=(3,))
    for field, value in [
        ("num_key_value_heads", 0), ("num_attention_heads", 0), ("head_dim", 0), ("hidden_size", -1), ("max_position_embeddings", 1 << 62),
        ("rope_theta", 0), ("rms_norm_eps", -1), ("vocab_size", 1), ("intermediate_size", BILLION), ("head_dim", 1 << 40),
    ]:
        folder = hostile("config.json", changed("config.json", lambda config: config.update({field: value})))
        yield f"{field} of {value}", program.survives(verify(folder)) or program.survives(generate(folder))
    yield "nested a hundred thousand deep", program.refuses(verify(hostile("config.json", "[" * 100_000)), "config.json", codes=(3,))


def weights():
    whole = (MODEL / "model.safetensors").read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    name = next(name for name in header if name != "__metadata__")

    def with_header(change):
        value = json.loads(json.dumps(header))
        change(value)
        text = json.dumps(value).encode()
        return len(text).to_bytes(8, "little") + text + whole[8 + length :]

    cases = {
        "a byte short": whole[:-1], "four bytes": whole[:4], "none": b"", "half": whole[: len(whole) // 2],
        "a header of 2^63 bytes": b"\xff" * 8 + whole[8:], "a header beyond the end": len(whole).to_bytes(8, "little") + whole[8:],
        "no JSON": whole[:8] + b"\0" * length + whole[8 + length :],
        "a tensor beyond the end": with_header(lambda header: header[name].update(data_offsets=[0, 1 << 60])),
        "a tensor before its start": with_header(lambda header: header[name].update(data_offsets=[64, 0])),
        "a shape that overflows": with_header(lambda header: header[name].update(shape=[1 << 33, 1 << 33])),
        "two tensors in one place": with_header(lambda header: [one.update(data_offsets=[0, 64]) for key, one in header.items() if key != "__metadata__"]),
        "a type that nobody knows": with_header(lambda header: header[name].update(dtype="F9")),
    }
    for label, content in cases.items():
        yield label, program.refuses(generate(hostile("model.safetensors", content)), "model.safetensors", codes=(3,))
    for shard in ("../outside.safetensors", os.path.abspath("outside.safetensors"), "a/../../outside.safetensors"):
        pathlib.Path("outside.safetensors").write_bytes(whole)
        folder = hostile("model.safetensors.index.json", json.dumps({"weight_map": {name: shard}}))
        (folder / "model.safetensors").unlink()
        yield f"an index that names {shard[:30]}", program.refuses(generate(folder), "model.safetensors.index.json", codes=(3,))


def links():
    """Under `--sandbox require` a link in a model's folder leads only into the blobs of its own."""
    if not has_landlock():
        yield "out of a model's folder", NotTried(LANDLOCK)
        return
    pathlib.Path("elsewhere").mkdir(exist_ok=True)
    for file in ("config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors"):
        folder = fresh(MODEL, "hostile")
        (folder / file).replace(f"elsewhere/{file}")
        link_at(folder / file, f"../elsewhere/{file}")
        yield file, program.refuses(check(folder, "--sandbox", "require"), "Permission denied", codes=(2, 3))
    # Its grandparent's `blobs` may be a link too.
    fresh(MODEL, "elsewhere/whole")
    folder = fresh(MODEL, "hub/snapshots/rev")
    link_at("hub/blobs", "../elsewhere/whole")
    link_at(folder / "config.json", "../../blobs/config.json")
    yield "blobs that are a link", program.refuses(check(folder, "--sandbox", "require"), "Permission denied", codes=(2, 3))


def pipes():
    """A pipe in the place of any file of a model: nobody waits for its other end."""
    for file in sorted(one.name for one in MODEL.iterdir()) + ["provenance.toml", "model.safetensors.index.json", "chat_template.json"]:
        folder = fresh(MODEL, "hostile")
        if file == "model.safetensors.index.json":
            (folder / "model.safetensors").unlink()
        pipe_at(folder / file)
        yield file, program.survives(verify(folder)) or program.survives(generate(folder))
    link_at(fresh(MODEL, "hostile") / "config.json", "/dev/zero")
    yield "a link to /dev/zero", program.refuses(verify("hostile"), "config.json", codes=(2, 3))


def terminals():
    """Control characters of others' files reach no terminal."""
    clear = "\x1b[2J\x9b1m\x07"
    texts = {
        "config.json": changed("config.json", lambda config: config.update(architectures=[clear], model_type=clear)),
        "chat_template.jinja": "{{ raise_exception('" + clear + "') }}",
        "tokenizer.json": changed("tokenizer.json", lambda file: file["added_tokens"][1].update(content=clear)),
        "tokenizer_config.json": json.dumps({"bos_token": clear, "eos_token": clear, "chat_template": [{"name": clear, "template": clear}]}),
        f"{clear}.safetensors": "",
        "provenance.toml": f'repository = "{clear.encode("unicode_escape").decode().replace(chr(92) + "x", chr(92) + "u00")}"\nrevision = "a"\n\n[sha256]\n',
    }
    for file, text in texts.items():
        folder = hostile(file, text)
        yield repr(file), program.survives(verify(folder)) or program.survives(generate(folder))


# --- The sandbox -----------------------------------------------------------------------------------------------------------------


def widened():
    """What a corpus says of itself does not let the process read more: another's says that its encoder is the root directory."""
    if not has_landlock():
        yield "by a corpus", NotTried(LANDLOCK)
        return
    build_corpora()
    pathlib.Path("elsewhere").mkdir(exist_ok=True)
    folder = fresh(MODEL, "hostile")
    (folder / "config.json").replace("elsewhere/config.json")
    link_at(folder / "config.json", "../elsewhere/config.json")
    evil = fresh("other", "evil") / "corpus.toml"
    lines = [f"encoder = {json.dumps('/')}" if line.startswith("encoder = ") else line for line in evil.read_text().splitlines()]
    evil.write_text("\n".join(lines) + "\n")
    for label, corpora in (("two honest corpora", "corpus,other"), ("a corpus that names / as its encoder", "corpus,evil")):
        command = check(folder, "--sandbox", "require", "--system", "medreflex", "--set", "rerank=off", "--corpus", corpora)
        yield label, program.refuses(command, "Permission denied", codes=(2, 3))


# --- Corpora ---------------------------------------------------------------------------------------------------------------------


def describe(name, source="ward"):
    pathlib.Path(f"{name}.toml").write_text(
        f'name = "{name}"\n[[source]]\nlabel = "ward"\nformat = "folder"\npath = "{source}"\nlicence = "internal"\n'
    )
    return ("corpus", "build", f"{name}.toml", "--encoder", encoder, "--quiet", "--out", name)


def build_corpora():
    """Two of one encoder."""
    for name, text in (("corpus", "Malaria is treated with artesunate."), ("other", "Eclampsia is treated with magnesium.")):
        if not pathlib.Path(name).exists():
            pathlib.Path(f"ward-{name}").mkdir()
            pathlib.Path(f"ward-{name}/a.txt").write_text(text)
            program.must(*describe(name, f"ward-{name}"))


def corpora():
    build_corpora()
    search = ("corpus", "search", "hostile-corpus", "malaria")
    texts = fresh("corpus", "hostile-corpus") / "texts.bin"
    bytes_ = bytearray(texts.read_bytes())
    bytes_[3] ^= 1
    texts.write_bytes(bytes_)
    yield "a text changed in place", program.refuses(search, "texts.bin", codes=(3,))
    yield "the same, by verify", program.refuses(("corpus", "verify", "hostile-corpus"), "texts.bin", codes=(1, 3))
    for file in sorted(one.name for one in pathlib.Path("corpus").iterdir()):
        own = fresh("corpus", "hostile-corpus") / file
        whole = own.read_bytes()
        own.write_bytes(whole[: len(whole) // 2])
        yield f"half of {file}", program.refuses(search, codes=(2, 3))
        pipe_at(own)
        yield f"a pipe for {file}", program.refuses(search, codes=(2, 3))
        fresh("corpus", "hostile-corpus")
        own.write_bytes(b"\xff" * len(whole))
        yield f"{file} of 0xff", program.survives(search)
    for label, put in {
        "a link in a source": lambda folder: link_at(folder / "b.txt", "/etc/passwd"),
        "a link to a folder": lambda folder: link_at(folder / "more", "/etc"),
        "a pipe in a source": lambda folder: pipe_at(folder / "b.txt"),
    }.items():
        folder = fresh("ward-corpus", "hostile-ward")
        place = put(folder)
        yield label, program.refuses(describe("from-hostile", "hostile-ward"), f"{place.name} is ", codes=(2, 3))


# --- Data ------------------------------------------------------------------------------------------------------------------------

MEDEC = "Text ID,Text,Sentences,Error Flag,Error Type,Error Sentence ID,Error Sentence,Corrected Sentence,Corrected Text\n"


def data():
    def run(file, kind):
        system = "base-llm" if kind in ("medec", "notes") else "zero-shot"
        return ("run", system, "--data", file, "--format", kind, "--panel", f"./{MODEL}", *QUICK, "--quiet", "--out", "from-data")

    row = json.dumps(QUESTION)
    files = {
        "x.jsonl": [
            ("two answers under one key", "mcq", row.replace('"answer": "A"', '"answer": "A", "answer": "B"')),
            ("two options under one letter", "mcq", row.replace('"B": "D"', '"B": "D", "B": "C"')),
            ("an id twice", "mcq", f"{row}\n{row}\n"),
            ("an answer that no option has", "mcq", row.replace('"answer": "A"', '"answer": "C"')),
            ("two texts under one key", "notes", '{"text": "Fever.", "text": "Cough."}\n'),
            ("nested a hundred thousand deep", "mcq", '{"question": ' + "[" * 100_000),
        ],
        "x.csv": [
            ("a column twice", "mcq", "question,A,A,answer\nWhich?,this,that,A\n"),
            ("an error that is not its sentence", "medec", f'{MEDEC}ms-test-0,A. B.,"0 A.\r\n1 B.\r\n",1,diagnosis,1,A.,C.,A. C.\n'),
            ("a sentence's number twice", "medec", f'{MEDEC}ms-test-0,A. B.,"0 A.\r\n0 B.\r\n",1,diagnosis,0,A.,C.,A. C.\n'),
            ("no error, and its place", "medec", f'{MEDEC}ms-test-0,A. B.,"0 A.\r\n1 B.\r\n",0,NA,1,NA,NA,NA\n'),
            ("an error, and no place", "medec", f'{MEDEC}ms-test-0,A. B.,"0 A.\r\n1 B.\r\n",1,diagnosis,7,B.,C.,A. C.\n'),
            ("a sentence that is another", "notes", "id,text,flag,sentence_id,sentence,correction\na,He is ill. He is well.,1,1,He is ill.,He is not.\n"),
        ],
    }
    for file, cases in files.items():
        for label, kind, text in cases:
            pathlib.Path(file).write_text(text, newline="")
            yield label, program.refuses(run(file, kind), file, codes=(2, 3))
    pipe_at("x.jsonl")
    yield "a pipe", program.refuses(run("x.jsonl", "mcq"), "it is no file", codes=(2, 3, 70))
    pathlib.Path("x.jsonl").unlink()
    pathlib.Path("x.jsonl").write_text(row.replace('"id": "a"', '"id": "\\u001b[2J"').replace("optio", "opt\\u001b[2Jio"))
    yield "control characters", program.survives(run("x.jsonl", "mcq"))
    yield "nothing was made of them", "a run directory is there" if pathlib.Path("from-data").exists() else ""


prepare()
try_each("files", globals(), names)
done()
