"""The attacks of attacks.sh on a running server: `attacks.py URL PID WARDROUND NAME...`; run in the folder of its keys."""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

from attacks_common import Program, done, pipe_at, said

url, pid, wardround, *names = sys.argv[1:]
host, port = urlsplit(url).hostname, urlsplit(url).port
KEYS = {name: pathlib.Path(f"key-{name}").read_text().strip() for name in ("ward", "lab")}
JSON = {"content-type": "application/json"}
MIB = 1 << 20


def ask(method, path, body=None, headers=None, key="ward"):
    """The status, headers and body of a response; a connection that the server closed is status 0."""
    connection = http.client.HTTPConnection(host, port, timeout=120)
    try:
        connection.putrequest(method, path, skip_host="host" in (headers or {}))
        own = dict(headers or {})
        if key:
            own.setdefault("authorization", f"Bearer {KEYS[key]}")
        for name, value in own.items():
            connection.putheader(name, value)
        data = body.encode() if isinstance(body, str) else body or b""
        connection.putheader("content-length", str(len(data)))
        connection.endheaders()
        try:
            connection.send(data)
        except OSError:
            pass  # Refused by its head.
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return 0, {}, ""
    finally:
        connection.close()


def post(path, value, **more):
    more.setdefault("headers", JSON)
    return ask("POST", path, value if isinstance(value, (str, bytes)) else json.dumps(value), **more)


def memory():
    """Resident memory of the server in MiB."""
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / MIB


def cpu():
    """Seconds that the server has computed."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ready():
    while ask("GET", "/health", key=None)[0] != 200:
        time.sleep(0.1)


# A debug build is some ten times slower than a release.
SLOW = 10 if "debug" in wardround else 1
WORST = ["a.", "a", "(", "[", "{", '"', "1", "1.", "7.1a", "\n", "- a\n", "e\u0301", "<b>&amp;", "aGVsbG8=", "患者。", "Dr. ", "A: ", " "]


def texts():
    slowest = ("", 0.0)
    for unit in WORST:
        text = unit * (8 * MIB // len(unit.encode()) - 200)
        for path, body, headers in [
            ("/v1/check", {"text": text[: len(text) // 3]}, JSON),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": text[: len(text) // 3]}]}, JSON),
            ("/v1/completions", {"prompt": text[: len(text) // 3]}, JSON),
            ("/tokenize", {"prompt": text[: len(text) // 3]}, JSON),
        ]:
            before = cpu()
            status, _, _ = post(path, body, headers=headers)
            taken = cpu() - before
            if taken > slowest[1]:
                slowest = (f"{unit!r} to {path} ({status})", taken)
            if status >= 500 or status == 0:
                slowest = (f"{unit!r} to {path} ({status})", float("inf"))
    said("texts", slowest[1] <= 2 * SLOW, f"8 MiB of the worst text took {slowest[1]:.1f} s of a core: {slowest[0]}")


def live():
    text = "a." * (4 * MIB - 200)
    threads = [threading.Thread(target=post, args=("/v1/check", {"text": text}), kwargs={"headers": JSON}) for _ in range(3)]
    for thread in threads:
        thread.start()
    slowest = 0.0
    while any(thread.is_alive() for thread in threads):
        began = time.monotonic()
        ask("GET", "/health", key=None)
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.01)
    said("live", slowest <= 0.05 * SLOW, f"beside three notes of 8 MiB /health took at most {1000 * slowest:.0f} ms")


def bodies():
    idle = memory()
    sockets = []
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {{}}\r\ncontent-type: application/json\r\ncontent-length: {8 * MIB}\r\n\r\n"
    most = idle
    for index in range(16):
        one = socket.create_connection((host, port))
        one.settimeout(2)
        try:
            one.sendall(head.format(KEYS["ward" if index % 2 else "lab"]).encode() + b" " * (8 * MIB - 1))
        except OSError:
            pass
        sockets.append(one)
        most = max(most, memory())
    for one in sockets:
        one.close()
    said("bodies", most - idle <= 256 * 1.1, f"sixteen unfinished bodies of 8 MiB took {most - idle:.0f} MiB")


def values():
    idle = memory()
    many = '{"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, "metadata": [' + "0," * (4 * MIB - 100) + "0]}"
    status, _, _ = post("/v1/chat/completions", many)
    said("values", status == 413 and memory() - idle < 64, f"four million JSON values: {status}, {memory() - idle:.0f} MiB")


def hosts():
    tries = ["evil.example", "[::1].evil.example", "[::1]evil", "localhost.evil.example", "127.0.0.1:80.evil.example", "[evil]"]
    through = [name for name in tries if ask("GET", "/health", headers={"host": name}, key=None)[0] == 200]
    said("hosts", not through, f"asked as {through or 'no other name'}")


def headers():
    body = {"prompt": "a", "max_tokens": 1, **{f"{number}{'z' * 80}": 1 for number in range(40_000)}}
    status, _, got = post("/v1/completions", body)
    size = len(got)
    said("headers", status == 200 and size < 10_000, f"a response to 40,000 unknown fields has {size} bytes ({status})")


def identity():
    body = {"prompt": "The patient of bed 7 has hepatitis and does not know it. " * 8, "max_tokens": 1}
    post("/v1/completions", body)
    old = KEYS["ward"]
    subprocess.run([wardround, "keys", "revoke", "keys", "ward"], check=True, stdout=subprocess.DEVNULL)
    made = subprocess.run([wardround, "keys", "add", "keys", "ward"], check=True, capture_output=True, text=True)
    KEYS["ward"] = made.stdout.split()[0]
    pathlib.Path("key-ward").write_text(KEYS["ward"])
    os.kill(int(pid), signal.SIGHUP)
    time.sleep(1)
    told = json.loads(post("/v1/completions", body)[2])["usage"]["prompt_tokens_details"]["cached_tokens"]
    lives = post("/v1/completions", body, headers=JSON | {"authorization": f"Bearer {old}"}, key=None)[0]
    said("identity", (told, lives) == (0, 401), f"after `ward` was made again: {told} tokens cached of the old one's, whose key gets {lives}")


def cached():
    body = {"prompt": "The patient of bed 4 has syphilis and does not know it. " * 8, "max_tokens": 1}
    def told(key):
        return json.loads(post("/v1/completions", body, key=key)[2])["usage"]["prompt_tokens_details"]["cached_tokens"]
    first, own, other = told("ward"), told("ward"), told("lab")
    said("cached", first == other == 0 and own > 0, f"cached tokens: {first}, the same key {own}, another key {other}")


def share():
    status, _, _ = post("/v1/completions", {"prompt": ["a"] * 256, "n": 16, "max_tokens": 1000, "ignore_eos": True})
    other = post("/v1/completions", {"prompt": "a", "max_tokens": 1}, key="lab")[0]
    said("share", (status, other) == (429, 200), f"256 prompts of 16 completions: {status}; another key meanwhile: {other}")


def logprobs():
    idle = memory()
    body = {"messages": [{"role": "user", "content": "a"}], "n": 16, "max_tokens": 1000, "ignore_eos": True, "logprobs": True, "top_logprobs": 20}
    status, _, _ = post("/v1/chat/completions", body)
    said("logprobs", status == 400 and memory() - idle < 64, f"16 × 1,000 tokens × 20 log-probabilities: {status}")


def connections():
    held = []
    for _ in range(60):
        one = socket.create_connection((host, port))
        one.sendall(b"GET /health HTTP/1.1\r\nhost: ")
        held.append(one)
    time.sleep(1)
    # Another address of loopback is another client.
    other = socket.create_connection((host, port), source_address=("127.0.0.2", 0))
    other.sendall(f"GET /health HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
    answer = other.recv(64).decode()
    for one in [*held, other]:
        one.close()
    said("connections", " 200 " in answer, f"sixty half-open connections of one address, and another's request: {answer.split(chr(13))[0]}")


def at_once(count, work):
    """Starts so many threads of `work`, which is given its number."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    return threads


def grammars():
    """Grammars whose every step takes the engine long, each another, so that none is known already."""
    def lark(number):
        ends = " | ".join(f'/[\\s\\S]/ s "{chr(97 + at % 26)}{at + number}"' for at in range(300))
        return f'start: s\ns: "" | {ends}'

    def honest():
        began = time.monotonic()
        post("/v1/completions", {"prompt": "a", "max_tokens": 16, "ignore_eos": True}, key="lab")
        return time.monotonic() - began

    idle = min(honest() for _ in range(3))
    body = {"prompt": "a", "max_tokens": 400}
    threads = at_once(12, lambda number: post("/v1/completions", body | {"structured_outputs": {"grammar": lark(1000 * number)}}))
    slowest = 0.0
    while any(thread.is_alive() for thread in threads):
        slowest = max(slowest, honest())
    said("grammars", slowest <= 5 * SLOW, f"beside twelve grammars of 300 alternatives another key waits {slowest:.1f} s; alone {idle:.2f} s")


def twice():
    tries = {
        "/v1/chat/completions": '{"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, "max_tokens": 2}',
        "/v1/completions": '{"prompt": "a", "prompt": "b", "max_tokens": 1}',
        "/tokenize": '{"prompt": "a", "prompt": "b"}',
        "/v1/check": '{"text": "Fever.", "text": "Cough."}',
        "/v1/chat/completions#": '{"messages": [{"role": "user", "content": "a", "content": "b"}], "max_tokens": 1}',
    }
    statuses = {path: post(path.strip("#"), body)[0] for path, body in tries.items()}
    said("twice", set(statuses.values()) == {400}, f"two values under one key: {statuses}")


def key_files():
    """Key files that others may write, and those that are none: no server starts with them."""
    program, text = Program(wardround), pathlib.Path("keys").read_text()
    serve = ("serve", "qwen3", "--port", "0", "--offline")
    for name, mode in (("others-keys", 0o666), ("groups-keys", 0o620)):
        pathlib.Path(name).write_text(text)
        os.chmod(name, mode)
    pipe_at("pipe-keys")
    tries = {name: ("--keys", name) for name in ("others-keys", "groups-keys", "pipe-keys")}
    taken = {name: problem for name, flags in tries.items() if (problem := program.refuses((*serve, *flags), codes=(2, 70)))}
    said("key_files", not taken, f"key files that others may write and that are none, taken: {taken or 'none'} of {len(tries)}")


def trail():
    return [json.loads(line) for line in pathlib.Path("audit/trail.jsonl").read_text().splitlines()]


def left():
    """A client that leaves a stream leaves a line of what was sent to it, of a model's as of a system's."""
    before = len(trail())
    for body in (
        {"model": "qwen3", "messages": [{"role": "user", "content": "a"}], "max_tokens": 900, "n": 16, "ignore_eos": True, "stream": True},
        {"model": "medguards", "messages": [{"role": "user", "content": "Fever. Malaria is treated with aspirin."}], "stream": True},
    ):
        text = json.dumps(body)
        one = socket.create_connection((host, port))
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {KEYS['ward']}\r\ncontent-type: application/json\r\n"
        one.sendall(f"{head}content-length: {len(text)}\r\n\r\n{text}".encode())
        read = b""
        while b"data: " not in read and (more := one.recv(256)):
            read += more
        one.close()
    until = time.monotonic() + 60
    told = []
    while len(told) < 2 and time.monotonic() < until:
        time.sleep(0.1)
        told = [line["event"] for line in trail()[before:] if line.get("sent_bytes")]
    said("left", told == ["request", "request"], f"lines of what was sent of two streams that were left: {told}")


def is_running():
    """Whether the server runs; one that has ended and was not waited for has no command line."""
    try:
        return bool(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return False


def behind():
    """A trail that is cut off under a running server takes no more lines; and as the server tells its head when it ends, none starts on it."""
    path = pathlib.Path("audit/trail.jsonl")
    whole = path.read_text().splitlines(keepends=True)
    os.truncate(path, sum(len(line.encode()) for line in whole[: len(whole) // 2]))
    statuses = {post("/v1/completions", {"prompt": "a", "max_tokens": 1})[0] for _ in range(3)}
    os.kill(int(pid), signal.SIGTERM)
    while is_running():
        time.sleep(0.1)
    started = Program(wardround).refuses(("serve", "qwen3", "--port", "0", "--offline", "--audit", "audit"), "is not as it was", (3,))
    said("behind", statuses == {503} and not started, f"requests on a trail that was cut off: {statuses}; another start: {started or 'refused'}")


for name in names:
    globals()[name]()
done()
