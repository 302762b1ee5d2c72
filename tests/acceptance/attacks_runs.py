"""The attacks of attacks.sh by run directories, plans and recipes from elsewhere: `attacks_runs.py WARDROUND NAME...`; run in a folder of its own."""

import http.server
import json
import os
import pathlib
import sys
import threading

from attacks_common import Program, done, fresh, link_at, pipe_at, try_each

path, *names = sys.argv[1:]
program = Program(path)
QUESTION = '{"id": "a", "question": "Which vitamin is retinol?", "options": {"A": "A", "B": "D"}, "answer": "A"}\n'
DATA = ("--data", "q.jsonl", "--format", "mcq", "--set", "max_tokens=8")
QUICK = ("--offline", "--threads", "1", "--kv-tokens", "8192")
RECIPE = """title = "One"
text = "x"
runs = 1
decoding = "grammar"
panel = ["PANEL"]
analyses = []
[[dataset]]
name = "own"
label = "Own"
file = "q.jsonl"
format = "mcq"
[[method]]
name = "round"
label = "Round"
group = "g"
system = "zero-shot"
settings = { max_tokens = 8 }
"""
# Hosts that are none of this machine's, though some begin as if they were.
HOSTS = ("models.invalid", "127.0.0.1.models.invalid", "localhost.models.invalid", "sk@models.invalid", "localhost@models.invalid", "models.invalid:443")


def prepare():
    if not pathlib.Path("q.jsonl").exists():
        pathlib.Path("q.jsonl").write_text(QUESTION)
        program.must("models", "synth", "qwen3", "qwen3")
        program.must("run", "zero-shot", *DATA, *QUICK, "--panel", "./qwen3", "--quiet", "--out", "honest")


class Listener(http.server.ThreadingHTTPServer):
    """An endpoint of this machine, and a proxy to every other: it answers for all of them, and keeps each request's key."""

    def __init__(self):
        self.keys, self.moved_to = [], None
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def arrived(self):
        """The keys that came since it was asked last."""
        keys, self.keys = [key for key in self.keys if key], []
        return keys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer({"data": [{"id": "tiny"}]})

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        message = {"message": {"content": "A"}, "finish_reason": "stop"}
        self.answer({"model": "tiny", "choices": [message], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})

    def do_CONNECT(self):
        # What goes through the tunnel is this connection's next request.
        self.send_response(200)
        self.end_headers()

    def answer(self, value):
        body = json.dumps(value).encode()
        is_moved = self.server.moved_to and not self.path.startswith(self.server.moved_to)
        if not is_moved:
            self.server.keys.append(self.headers.get("authorization"))
        self.send_response(307 if is_moved else 200)
        if is_moved:
            self.send_header("location", self.server.moved_to + "/v1/chat/completions")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def plans():
    """A plan or a recipe from elsewhere does not choose who gets the user's key."""
    listener = Listener()
    near = f"http://127.0.0.1:{listener.server_port}"
    own = f"openai:tiny@{near}/v1"
    environment = {"WARDROUND_API_KEY": "sk-hush", "WARDROUND_PROXY": near}
    again = lambda *more: ("run", "--plan", "hostile/plan.toml", "--quiet", "--out", f"again-{len(os.listdir())}", *more)
    if not pathlib.Path("remote").exists():
        program.must("run", "zero-shot", *DATA, "--panel", own, "--quiet", "--out", "remote")
    listener.arrived()
    plan = pathlib.Path("remote/plan.toml").read_text()
    endpoint = plan[plan.index("openai:tiny@") :].split('"')[0]

    def hostile(url):
        (fresh("remote", "hostile") / "plan.toml").write_text(plan.replace(endpoint, f"openai:tiny@{url}/v1"))
        pathlib.Path("hostile.toml").write_text(RECIPE.replace("PANEL", f"openai:tiny@{url}/v1"))
        # As if it had broken off: whoever resumes it asks for the rest.
        for log in ("calls.jsonl", "items.jsonl"):
            pathlib.Path("hostile", log).write_text("")
        pathlib.Path("hostile/results.json").unlink()

    for scheme in ("https", "http"):
        for host in HOSTS:
            hostile(f"{scheme}://{host}")
            recipe = ("recipe", "hostile.toml", "--data-dir", ".", "--quiet", "--out", f"recipe-{len(os.listdir())}")
            for command in (("resume", "hostile"), again(), recipe, ("replay", "hostile")):
                problem = program.refuses(command, environment=environment)
                keys = listener.arrived()
                yield f"{command[0]} to {scheme}://{host}", f"{keys} arrived" if keys else problem
    # An endpoint that was named sends its client elsewhere.
    listener.moved_to = "http://models.invalid"
    program.run("run", "zero-shot", *DATA, "--panel", own, "--quiet", "--out", f"moved-{len(os.listdir())}", "--remote-attempts", "1", environment=environment)
    keys = listener.arrived()
    yield "an endpoint that leads elsewhere", f"{keys} arrived" if keys else ""
    listener.moved_to = None
    # The attack proves something only if a key that is sent is seen: the host's own variable sends one.
    hostile("http://models.invalid")
    program.run(*again(), environment=environment | {"WARDROUND_API_KEY_MODELS_INVALID": "sk-own"})
    yield "the host's own key, to see that one is seen", "" if "Bearer sk-own" in listener.arrived() else "it did not arrive: nothing above proves anything"


COMMANDS = (("verify", "hostile"), ("report", "hostile"), ("resume", "hostile"), ("replay", "hostile"), ("compare", "honest", "hostile"))


def pipes():
    """Pipes in the place of what a run directory, a recipe's, and folders of prompts and data hold: nobody waits for their other ends."""
    there = [name for name in sorted(os.listdir("honest")) if name != "report.html"]
    for file in [*there, "versions.json"]:
        pipe_at(fresh("honest", "hostile") / file)
        for command in COMMANDS:
            yield f"{file}, {command[0]}", program.survives(command)
    recipe = pathlib.Path("recipe-of-pipes")
    recipe.mkdir(exist_ok=True)
    for file in ("recipe.toml", "results.json"):
        (recipe / "recipe.toml").unlink(missing_ok=True)
        pipe_at(recipe / file)
        for command in (("report", recipe), ("resume", recipe)):
            yield f"{file} of a recipe, {command[0]}", program.survives(command)
    prompts = pathlib.Path("prompts/single_llm")
    prompts.mkdir(parents=True, exist_ok=True)
    pipe_at(prompts / "zero-shot.txt")
    yield "a prompt, run", program.survives(("run", "zero-shot", *DATA, *QUICK, "--panel", "./qwen3", "--prompts", "prompts", "--quiet", "--out", "prompted"))
    data = pathlib.Path("data")
    data.mkdir(exist_ok=True)
    pipe_at(data / "provenance.toml")
    for verb in ("verify", "ls"):
        yield f"provenance.toml of datasets, data {verb}", program.survives(("data", verb, data))


def links():
    """Links in run directories: no file outside is written, cut off or removed."""
    precious, zeros = pathlib.Path("precious"), bytes(4096)
    for file in ("calls.jsonl", "items.jsonl"):
        folder = fresh("honest", "hostile")
        # As if it had broken off; and zeros look like what a power cut leaves behind the last line, which `resume` cuts off.
        (folder / "results.json").unlink()
        (folder / "items.jsonl").write_text("")
        precious.write_bytes(zeros)
        link_at(folder / file, "../precious")
        program.run("resume", folder)
        yield f"{file}, resume", "" if precious.read_bytes() == zeros else f"a file outside has {precious.stat().st_size} of {len(zeros)} bytes"
    for file in ("report.html", "results.json", "versions.json", "plan.toml"):
        precious.write_text("precious")
        for name in (file, f".{file}.partial"):
            link_at(fresh("honest", "hostile") / name, "../precious")
            for command in COMMANDS[:3]:
                program.run(*command)
        yield f"{file}, verify, report, resume", "" if precious.read_text() == "precious" else "a file outside was written"


def strange_names():
    """Control characters in a plan, and names in a recipe's file that lead outside."""
    plan = pathlib.Path("honest/plan.toml").read_text()
    for old in ('agent = "solo"', 'name = "q"', 'backbone = "qwen3"', 'name = "vm"', 'version = "'):
        if old in plan:
            (fresh("honest", "hostile") / "plan.toml").write_text(plan.replace(old, old.split('"')[0] + '"\\u001b[2J\\u009b1m' + old.split('"')[1] + '"' * (old.count('"') - 1)))
            for command in COMMANDS:
                yield f"control characters in {old}, {command[0]}", program.survives(command)
    pathlib.Path("own.toml").write_text(RECIPE.replace("PANEL", "qwen3"))
    if not pathlib.Path("recipe").exists():
        program.must("recipe", "own.toml", "--data-dir", ".", *QUICK, "--quiet", "--out", "recipe")
    honest = pathlib.Path("recipe/recipe.toml").read_text()
    for old in ('name = "own"', 'name = "round"'):
        for name in ("../../honest", os.path.abspath("honest"), "..", "\\u001b[2J"):
            text = honest.replace(old, f'name = "{name}"')
            assert text != honest
            (fresh("recipe", "hostile-recipe") / "recipe.toml").write_text(text)
            for command in (("report", "hostile-recipe"), ("resume", "hostile-recipe")):
                yield f"{old} as {name[:20]!r}, {command[0]}", program.refuses(command, "recipe.toml", (2, 3))


prepare()
try_each("runs", globals(), names)
done()
