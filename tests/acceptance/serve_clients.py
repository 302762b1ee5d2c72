"""What real clients get from a server: openai-python, lm-evaluation-harness, inspect_ai, LangChain, Chroma. See serve.sh."""

import asyncio
import concurrent.futures
import json
import math
import os
import random
import subprocess
import sys
import time

WORDS = "the patient has a fever and was given aspirin for pain in chest after two days of cough".split()


def refused(call, code, param=None):
    from openai import APIStatusError

    try:
        call()
    except APIStatusError as error:
        assert error.code == code and (param is None or error.param == param), error
        return
    raise AssertionError(f"{code} was not said")


def with_openai(url):
    from openai import AsyncOpenAI, OpenAI

    client = OpenAI(base_url=url + "/v1", api_key="none")
    schema = {"type": "object", "properties": {"answer": {"enum": ["A", "B"]}}, "required": ["answer"], "additionalProperties": False,
              "x-guidance": {"whitespace_flexible": False}}
    for model in [model.id for model in client.models.list()]:
        ask = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 12, "seed": 5}
        chat = client.chat.completions.create
        whole = chat(**ask, logprobs=True, top_logprobs=3)
        text = whole.choices[0].message.content
        said = bytes(byte for entry in whole.choices[0].logprobs.content for byte in entry.bytes)
        assert said.decode(errors="replace") == text
        parts = list(chat(**ask, stream=True, stream_options={"include_usage": True}))
        assert "".join(part.choices[0].delta.content or "" for part in parts if part.choices) == text
        assert parts[-1].usage == whole.usage or parts[-1].usage.completion_tokens == whole.usage.completion_tokens
        several = chat(**ask, n=3).choices
        assert len(several) == 3 and several[0].message.content == text
        record = chat(**{**ask, "max_tokens": 80}, response_format={"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": schema}})
        assert json.loads(record.choices[0].message.content)["answer"] in "AB"
        echoed = client.completions.create(model=model, prompt="Once", max_tokens=5, logprobs=2, echo=True, seed=1)
        assert echoed.choices[0].text.startswith("Once") and len(echoed.choices[0].logprobs.tokens) == echoed.usage.total_tokens
        first, second = (chat(**{**ask, "seed": None}) for _ in range(2))
        assert first.wardround["seed"] != second.wardround["seed"]
        refused(lambda: chat(model=model, messages=[{"role": "user", "content": "x " * 60000}]), "context_length_exceeded")
        refused(lambda: chat(**ask, tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}]), "unsupported_parameter", "tools")

        async def many():
            async with AsyncOpenAI(base_url=url + "/v1", api_key="none") as others:
                answers = await asyncio.gather(*[others.chat.completions.create(**ask) for _ in range(64)])
            return {answer.choices[0].message.content for answer in answers}

        assert asyncio.run(many()) == {text}
        print(f"openai {model}: chat, stream, n, schema, completions, seeds, errors, 64 at once")
    refused(lambda: client.chat.completions.create(model="nope", messages=[{"role": "user", "content": "a"}]), "model_not_found")


def with_embeddings(url, model, folder, texts, vectors):
    """Vectors of an encoder by the clients of three projects: sentence-transformers' to 1e-5, and those of a corpus of the same texts as f16."""
    import chromadb
    import numpy as np
    import tiktoken
    from chromadb.utils.embedding_functions import OpenAIEmbeddingFunction
    from langchain_openai import OpenAIEmbeddings
    from openai import AsyncOpenAI, BadRequestError, OpenAI
    from sentence_transformers import SentenceTransformer

    texts = [json.loads(line)["text"] for line in open(texts)]
    as_rows = lambda given: np.array(given, dtype=np.float32)  # noqa: E731
    place = {"base_url": url + "/v1", "api_key": "none"}
    client = OpenAI(**place)
    # Without an encoding_format the client asks for base64.
    own = as_rows([entry.embedding for entry in client.embeddings.create(model=model, input=texts).data])
    floats = client.embeddings.create(model=model, input=texts, encoding_format="float")
    assert np.array_equal(own, as_rows([entry.embedding for entry in floats.data]))
    theirs = SentenceTransformer(folder, device="cpu").encode(texts)
    apart = np.abs(own - theirs).max()
    assert apart < 1e-5, apart
    stored = open(vectors, "rb").read()
    assert stored[:8] == b"WRVECTOR"
    row = -(-2 * own.shape[1] // 64) * 64
    rows = [np.frombuffer(stored, "<f2", own.shape[1], 64 + row * number) for number in range(len(texts))]
    assert np.array_equal(own.astype(np.float16), np.array(rows)), "the corpus has other vectors"

    async def many():
        async with AsyncOpenAI(**place) as others:
            slices = [texts[at : at + size] for size in (1, 3, 7) for at in range(0, len(texts) - size, size)]
            answers = await asyncio.gather(*[others.embeddings.create(model=model, input=one) for one in slices])
        found = {text: entry.embedding for one, answer in zip(slices, answers) for text, entry in zip(one, answer.data)}
        assert all(np.array_equal(as_rows(found[text]), own[texts.index(text)]) for text in found)
        return len(slices)

    count = asyncio.run(many())
    refused(lambda: client.embeddings.create(model=model, input=["a", "fever " * 600]), "context_length_exceeded", "input[1]")
    refused(lambda: client.embeddings.create(model=model, input="a", dimensions=64), "invalid_value", "dimensions")
    refused(lambda: client.embeddings.create(model="nope", input="a"), "model_not_found")

    chain = OpenAIEmbeddings(model=model, check_embedding_ctx_length=False, **place)
    assert np.array_equal(as_rows(chain.embed_documents(texts)), own)
    assert np.array_equal(as_rows(chain.embed_query(texts[0])), own[0])
    # By default LangChain sends ids of OpenAI's tokenizer; here of one that has the bytes alone, all of them ids that the model has too.
    of_bytes = tiktoken.Encoding("bytes", pat_str=".", mergeable_ranks={bytes([byte]): byte for byte in range(256)}, special_tokens={})
    tiktoken.encoding_for_model = tiktoken.get_encoding = lambda name: of_bytes
    try:
        OpenAIEmbeddings(model=model, **place).embed_query("fever")
        raise AssertionError("the ids of another tokenizer were taken")
    except BadRequestError as error:
        assert "check_embedding_ctx_length" in str(error), error

    function = OpenAIEmbeddingFunction(api_key="none", api_base=url + "/v1", model_name=model)
    collection = chromadb.EphemeralClient().create_collection("ward", embedding_function=function, metadata={"hnsw:space": "cosine"})
    collection.add(ids=[str(number) for number in range(len(texts))], documents=texts)
    found = collection.query(query_texts=[texts[1]], n_results=1)
    assert found["ids"] == [["1"]] and abs(found["distances"][0][0]) < 1e-5, found
    print(f"embeddings {model}: {len(texts)} texts, {apart:.1e} from sentence-transformers, a corpus's bits; {count} requests at once; openai, LangChain, Chroma")


def with_lm_eval(url, model, wardround, folder):
    os.environ["OPENAI_API_KEY"] = ""
    from lm_eval.api.instance import Instance
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    random.seed(1)
    text = lambda count: " ".join(random.choice(WORDS) for _ in range(count))  # noqa: E731
    pairs = [(text(20 + number % 13), " " + text(1 + number % 5)) for number in range(200)]

    def score(**options):
        lm = LocalCompletionsAPI(base_url=url + "/v1/completions", model=model, tokenizer_backend="remote", max_length=2048, **options)
        encoded = [lm._encode_pair(*pair) for pair in pairs]
        return lm.loglikelihood([Instance("loglikelihood", {}, pair, number) for number, pair in enumerate(pairs)], disable_tqdm=True), encoded

    alone, encoded = score(batch_size=1, num_concurrent=1)
    assert alone == score(batch_size=8, num_concurrent=1)[0] == score(batch_size=1, num_concurrent=16)[0]
    for (total, _), (context, continuation) in list(zip(alone, encoded))[:10]:
        ids = context + continuation
        shown = subprocess.run([wardround, "generate", "--logits", "--model", folder, "--tokens", ",".join(map(str, ids)), "--offline"], check=True, capture_output=True, text=True)
        rows = json.loads(shown.stdout)["logits"][len(context) - 1 : -1]
        own = [row[id] - max(row) - math.log(math.fsum(math.exp(one - max(row)) for one in row)) for row, id in zip(rows, continuation, strict=True)]
        assert math.isclose(math.fsum(own), total, rel_tol=1e-5, abs_tol=1e-5), (own, total)
    print(f"lm-eval {model}: 200 log-likelihoods, equal at batch 1, batch 8 and concurrency 16; 10 as `wardround generate --logits` has them; sum {sum(one[0] for one in alone)}")


def with_inspect(url, model, logs):
    os.environ.update(WARDROUND_BASE_URL=url + "/v1", WARDROUND_API_KEY="none", INSPECT_LOG_DIR=logs, INSPECT_DISPLAY="none")
    from inspect_ai import Task, eval as run
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import choice
    from inspect_ai.solver import multiple_choice

    samples = [Sample(input=f"Question {number}?", choices=["one", "two", "three"], target="A") for number in range(4)]
    task = Task(dataset=samples, solver=multiple_choice(), scorer=choice())
    (log,) = run(task, model=f"openai-api/wardround/{model}", max_tokens=20, seed=1)
    assert log.status == "success", log.error
    print(f"inspect {model}: {len(log.samples)} samples, {log.stats.model_usage}")


def medqa(path, count):
    with open(path) as lines:
        return [json.loads(next(lines)) for _ in range(int(count))]


def with_inspect_system(url, system, logs, path, count="4"):
    """A system as the model: its answer is a letter of the question's."""
    os.environ.update(WARDROUND_BASE_URL=url + "/v1", WARDROUND_API_KEY="none", INSPECT_LOG_DIR=logs, INSPECT_DISPLAY="none")
    from inspect_ai import Task, eval as run
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import choice
    from inspect_ai.solver import multiple_choice

    items = medqa(path, count)
    samples = [Sample(input=item["question"], choices=list(item["options"].values()), target=item["answer_idx"]) for item in items]
    task = Task(dataset=samples, solver=multiple_choice(), scorer=choice())
    (log,) = run(task, model=f"openai-api/wardround/{system}", seed=1)
    assert log.status == "success", log.error
    answers = [sample.scores["choice"].answer for sample in log.samples]
    assert all(answer in item["options"] for answer, item in zip(answers, items)), answers
    print(f"inspect {system}: {len(log.samples)} questions, answers {' '.join(answers)}, {log.results.scores[0].metrics['accuracy'].value:.2f} right")


def with_autogen(url, model, path, count="20"):
    """A published multi-agent framework's own client and group chat, unchanged: three doctors take turns over a question, twice."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import MaxMessageTermination
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    info = {"vision": False, "function_calling": False, "json_output": False, "structured_output": False, "family": "unknown"}
    seats = ["internist", "surgeon", "pharmacist"]

    async def discuss(item):
        client = OpenAIChatCompletionClient(
            model=model, base_url=url + "/v1", api_key="none", model_info=info, temperature=0, seed=1, max_tokens=32
        )
        said = [f"You are the {seat} of a panel. Discuss the question briefly and name the letter you hold right." for seat in seats]
        agents = [AssistantAgent(seat, client, system_message=text) for seat, text in zip(seats, said)]
        team = RoundRobinGroupChat(agents, termination_condition=MaxMessageTermination(7))
        options = "\n".join(f"{letter}. {text}" for letter, text in item["options"].items())
        result = await team.run(task=f"{item['question']}\n{options}")
        await client.close()
        assert len(result.messages) == 7, result.stop_reason
        used = [message.models_usage for message in result.messages if message.models_usage]
        return sum(one.prompt_tokens for one in used), sum(one.completion_tokens for one in used)

    async def all_questions():
        used = []
        for item in medqa(path, count):
            used.append(await discuss(item))
        return used

    began = time.monotonic()
    used = asyncio.run(all_questions())
    seconds = time.monotonic() - began
    prompt, completion = (sum(part) for part in zip(*used))
    print(f"autogen {model}: {len(used)} questions, 6 calls each, {prompt} prompt and {completion} completion tokens in {seconds:.1f} s")


def with_streams(url, count="1000"):
    """So many streams of 32 tokens at once; standard library only."""
    port = port_of(url)
    body = json.dumps({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 32, "ignore_eos": True, "seed": 3, "stream": True})
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n"

    async def stream():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
        lines = (await reader.read(-1)).decode().splitlines()
        writer.close()
        chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        return "data: [DONE]" in lines, "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)

    async def all_at_once():
        return await asyncio.gather(*[stream() for _ in range(int(count))])

    started = time.monotonic()
    ended = asyncio.run(all_at_once())
    assert all(done for done, _ in ended) and len({text for _, text in ended}) == 1
    print(f"{count} streams at once: all whole, all equal, {time.monotonic() - started:.1f} s")


def port_of(url):
    return int(url.rsplit(":", 1)[1])


async def asked(url, path, patience):
    """Status and body of a GET."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(url))
    writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
    head, _, body = (await asyncio.wait_for(reader.read(-1), patience)).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split(" ")[1]), body


def with_gone(url, count="100"):
    """So many streams whose clients go away in the middle: within a second nothing runs and no page is held."""
    body = json.dumps({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3000, "ignore_eos": True, "stream": True})
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()

    async def figures():
        _, text = await asked(url, "/metrics", 5)
        lines = [line.removeprefix("wardround:") for line in text.splitlines() if line.startswith("wardround:")]
        of = lambda name: sum(float(line.split(" ")[-1]) for line in lines if line.startswith(name + "{"))  # noqa: E731
        return of("num_requests_running"), of("num_requests_waiting"), of("kv_cache_usage_perc")

    async def come_and_go():
        streams = [await asyncio.open_connection("127.0.0.1", port_of(url)) for _ in range(int(count))]
        for _, writer in streams:
            writer.write(request)
        await asyncio.gather(*[reader.readuntil(b"data: ") for reader, _ in streams])
        running = (await figures())[0]
        assert running > 0
        started = time.monotonic()
        for _, writer in streams:
            writer.transport.abort()
        while any(await figures()):
            assert time.monotonic() - started < 1, await figures()
        print(f"{count} clients gone in the middle, {running:.0f} running: nothing runs and no page is held after {time.monotonic() - started:.2f} s")

    asyncio.run(come_and_go())


def with_slow(url, trickling="200", silent="50", limit="8"):
    """Slow and silent connections are closed within the limit, and honest ones are answered within two seconds throughout. Printed is what a short
    chat takes alone and among them."""
    ask = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 24, "ignore_eos": True, "seed": 5}

    async def chats(count):
        times = []
        for _ in range(count):
            before = time.monotonic()
            assert (await posted(url, "/v1/chat/completions", ask))[0] == 200
            times.append(time.monotonic() - before)
        return sorted(times)

    alone = asyncio.run(chats(20))
    started = time.monotonic()

    async def one(is_silent):
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(url))
        while time.monotonic() - started < 60:
            try:
                if not is_silent:
                    writer.write(b"x")
                    await writer.drain()
                if await asyncio.wait_for(reader.read(1000), 0.25) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        return time.monotonic() - started

    async def honest(done):
        slowest = 0
        while not done.is_set():
            before = time.monotonic()
            assert (await asked(url, "/health", 2))[0] == 200
            slowest = max(slowest, time.monotonic() - before)
            await asyncio.sleep(0.05)
        return slowest

    async def all_at_once():
        done = asyncio.Event()
        watching = asyncio.create_task(honest(done))
        asking = asyncio.create_task(chats(20))
        ends = await asyncio.gather(*[one(index < int(silent)) for index in range(int(trickling) + int(silent))])
        done.set()
        slowest, among = await watching, await asking
        assert max(ends) < float(limit), max(ends)
        print(f"{trickling} trickling and {silent} silent connections: the last closed after {max(ends):.1f} s, /health in {slowest * 1000:.0f} ms at most")
        middle, most = alone[10] * 1000, alone[-1] * 1000
        print(f"20 chats of 24 tokens, median and longest: alone {middle:.0f} and {most:.0f} ms, among them {among[10] * 1000:.0f} and {among[-1] * 1000:.0f} ms")

    asyncio.run(all_at_once())


async def posted(url, path, body):
    """Status, headers and body of a POST on a connection of its own; chunks are joined."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(url))
    text = json.dumps(body)
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(text)}\r\n\r\n{text}".encode())
    head, _, answer = (await reader.read(-1)).decode().partition("\r\n\r\n")
    writer.close()
    lines = head.split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    return int(lines[0].split(" ")[1]), headers, answer


def with_turns(url, model):
    """One word to embed comes between the steps of another request's 40 long texts. Printed is what it takes alone and among them."""
    def ask(texts):
        before = time.monotonic()
        assert asyncio.run(posted(url, "/v1/embeddings", {"model": model, "input": texts}))[0] == 200
        return time.monotonic() - before

    long = ["the patient has fever and cough and was given aspirin " * 20] * 40
    alone = sorted(ask("fever") for _ in range(9))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, long)
        among = []
        while not waiting.done():
            among.append(ask("fever"))
            time.sleep(0.05)
        took = waiting.result()
    among.sort()
    assert among[-1] < took / 2, (among, took)
    middle = len(among) // 2
    print(f"a word to embed, median and longest: alone {alone[4] * 1000:.0f} and {alone[-1] * 1000:.0f} ms, beside 40 long texts of {took:.1f} s {among[middle] * 1000:.0f} and {among[-1] * 1000:.0f} ms")


def with_queue(url, places="512", count="1000"):
    """More requests at once than there are places: the excess, less what came once a place was free again, is refused and told when to come back;
    with retries all succeed."""
    ask = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 400, "ignore_eos": True, "seed": 3}
    places, count = int(places), int(count)

    async def all_at_once():
        return await asyncio.gather(*[posted(url, "/v1/chat/completions", ask) for _ in range(count)])

    started = time.monotonic()
    answers = asyncio.run(all_at_once())
    refused = [headers for status, headers, _ in answers if status == 429]
    assert sum(status == 200 for status, _, _ in answers) == count - len(refused) and 0 < len(refused) <= count - places, len(refused)
    assert all(1 <= int(headers["retry-after"]) <= 60 for headers in refused)
    print(f"{count} at once for {places} places: {len(refused)} refused with Retry-After, {time.monotonic() - started:.1f} s")

    from openai import AsyncOpenAI

    async def with_retries():
        async with AsyncOpenAI(base_url=url + "/v1", api_key="none", max_retries=8, timeout=600) as client:
            create = client.chat.completions.create
            short = {"model": (await client.models.list()).data[0].id, "messages": ask["messages"], "max_tokens": 64, "seed": 3}
            return await asyncio.gather(*[create(**short) for _ in range(count)])

    started = time.monotonic()
    texts = {answer.choices[0].message.content for answer in asyncio.run(with_retries())}
    assert len(texts) == 1
    print(f"{count} at once by openai-python with 8 retries: all answered, all equal, {time.monotonic() - started:.1f} s")


def with_equal(url, sums, count="64"):
    """One request again and again, alone, 8 and 64 at a time, streamed and not, among others: equal texts and log-probabilities, and equal
    to those of an earlier server, whose sum the file has."""
    ask = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 24, "seed": 5, "temperature": 0.9, "logprobs": True, "top_logprobs": 3}
    random.seed(2)

    def said(answer, is_stream):
        if is_stream:
            lines = [line for line in answer.replace("\r\n", "\n").split("\n") if line.startswith("data: {")]
            choices = [json.loads(line[6:])["choices"][0] for line in lines]
            text = "".join(choice["delta"].get("content") or "" for choice in choices)
            entries = [entry for choice in choices if choice["logprobs"] for entry in choice["logprobs"]["content"]]
        else:
            (choice,) = json.loads(answer[answer.index("{") : answer.rindex("}") + 1])["choices"]
            text, entries = choice["message"]["content"], choice["logprobs"]["content"]
        return json.dumps([text, entries])

    async def ask_all(width, is_stream, is_mixed):
        gate = asyncio.Semaphore(width)

        async def one(body):
            async with gate:
                return await posted(url, "/v1/chat/completions", {**body, "stream": is_stream})

        def other(number):
            words = " ".join(random.choice(WORDS) for _ in range(1 + number % 40))
            return {**ask, "messages": [{"role": "user", "content": words}], "seed": number}

        others = [one(other(number)) for number in range(int(count) if is_mixed else 0)]
        same = [one(ask) for _ in range(int(count))]
        turns = [turn for pair in zip(others, same) for turn in pair] if is_mixed else same
        answers = await asyncio.gather(*turns)
        assert all(status == 200 for status, _, _ in answers)
        return {said(answer, is_stream) for _, _, answer in (answers[1::2] if is_mixed else answers)}

    found = set()
    for width in [1, 8, 64]:
        for is_stream in [False, True]:
            for is_mixed in [False, True]:
                found |= asyncio.run(ask_all(width, is_stream, is_mixed))
    (only,) = found
    known = open(sums).read() if os.path.exists(sums) else None
    assert known in (None, only), "another server said something else"
    with open(sums, "w") as file:
        file.write(only)
    print(f"{count} times one request at 1, 8 and 64 at once, streamed and not, alone and among others: all equal" + (", and to those before the restart" if known else ""))


if __name__ == "__main__":
    {"streams": with_streams, "queue": with_queue, "equal": with_equal, "gone": with_gone, "slow": with_slow, "openai": with_openai, "lm-eval": with_lm_eval, "inspect": with_inspect,
     "embeddings": with_embeddings, "turns": with_turns, "inspect-system": with_inspect_system, "autogen": with_autogen}[sys.argv[1]](*sys.argv[2:])
