"""What published.sh does: `published.py WARDROUND MODELS DEVICES OUT`. Each figure is kept as soon as it is there, and one that fails
leaves its error."""

import argparse
import gc
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benches"))
from peers_gpu import decode_rate, load, plain, prefill_rate  # noqa: E402

import torch  # noqa: E402
import transformers  # noqa: E402

NAMES = ["gemma3-4b", "llama3.2-3b", "qwen3-4b"]
PROMPTS = [
    "What are the commonest causes of fever after an operation? Answer in one sentence.",
    "A man of 70 kg is to have 15 mg of paracetamol per kg. How much is that?",
    "坏血病缺乏哪种维生素？",
]
GREEDY_TOKENS = 48
# Positions whose logits are compared: those of the first prompt, and of so many greedy tokens.
LOGIT_TOKENS = 16
# As a share of the row's largest logit: sums of f32 in another order, or some 150 roundings to bf16 in a row (benches/compare_logits.py).
BOUNDS = {"f32": 1e-4, "bf16": 0.05}
QUESTIONS = 10
# Two more than the demonstration has.
MORE = [
    {
        "id": "more-1",
        "question": "A child of four has a barking cough and stridor at rest at night. Which drug is given first?",
        "options": {"A": "Salbutamol", "B": "Dexamethasone", "C": "Amoxicillin", "D": "Cetirizine"},
        "answer": "B",
    },
    {
        "id": "more-2",
        "question": "A 34-year-old woman has a sudden, most severe headache, vomiting and a stiff neck. Which test comes first?",
        "options": {"A": "Lumbar puncture", "B": "Electroencephalogram", "C": "CT of the head without contrast", "D": "Carotid ultrasound"},
        "answer": "C",
    },
]


def main() -> None:
    wardround, models, devices, out = sys.argv[1], Path(sys.argv[2]), sys.argv[3].split(","), Path(sys.argv[4])
    found = [name for name in NAMES if (models / name).is_dir()]
    if not found:
        sys.exit(f"{models} has none of {', '.join(NAMES)}")
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    report = Report(out / "figures.json")
    for name in found:
        report.take(f"{name}: files", lambda: {"said": run([wardround, "models", "verify", models / name])})
        theirs = report.take(f"{name}: transformers", lambda: by_transformers(models / name))
        for device in devices:
            if theirs:
                report.take(f"{name} on {device}: beside transformers", lambda: beside(wardround, models / name, device, theirs))
            report.take(f"{name} on {device}: speed", lambda: speed(wardround, models / name, device))
    for device in devices:
        report.take(f"debate on {device}", lambda: debate(wardround, models, found, device, out))
    sys.exit(report.failed)


class Report:
    def __init__(self, path: Path):
        self.path, self.failed = path, False
        self.content = {"torch": torch.__version__, "transformers": transformers.__version__, "figures": {}}

    def take(self, name: str, measure) -> dict | None:
        started = time.perf_counter()
        try:
            figure = measure()
            self.failed |= figure.get("well") is False
        except Exception as error:  # of any kind: the next figure is worth trying
            self.failed, figure = True, {"error": f"{type(error).__name__}: {error}"[-2000:]}
        shown = {key: value for key, value in figure.items() if key != "logits"}
        self.content["figures"][name] = shown | {"seconds": round(time.perf_counter() - started, 1)}
        self.path.write_text(json.dumps(self.content, indent=1, ensure_ascii=False))
        print(f"{name}: {json.dumps(shown, ensure_ascii=False)[:400]}", flush=True)
        gc.collect()
        return None if "error" in figure else figure


def run(command: list) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[1:3]} ended with {done.returncode}: {done.stderr[-1500:]}")
    return done.stdout


@torch.no_grad()
def by_transformers(checkpoint: Path) -> dict:
    """In f32 on the CPU: the prompts' tokens by the template, greedy tokens, logits of the first."""
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(checkpoint)
    for path in (checkpoint / "chat_template.jinja", checkpoint / "chat_template.json"):
        if not tokenizer.chat_template and path.exists():
            text = path.read_text()
            tokenizer.chat_template = json.loads(text)["chat_template"] if path.suffix == ".json" else text
    model = load(argparse.Namespace(checkpoint=checkpoint, device="cpu")).float()
    embedding = model.get_input_embeddings()
    if hasattr(embedding, "embed_scale"):  # Gemma's, which is rounded to the type of the weights: here f32, as ours by --dtype f32
        embedding.embed_scale.fill_(embedding.scalar_embed_scale)
    prompts, greedy = [], []
    for prompt in PROMPTS:
        flags = {"add_generation_prompt": True, "enable_thinking": False, "tokenize": False}
        text = tokenizer.apply_chat_template([{"role": "user", "content": prompt}], **flags)
        ids = tokenizer.encode(text, add_special_tokens=False)
        mask = torch.ones(1, len(ids), dtype=torch.long)
        output = model.generate(torch.tensor([ids]), attention_mask=mask, generation_config=plain(GREEDY_TOKENS))
        prompts.append(ids)
        greedy.append(output[0, len(ids) :].tolist())
    tokens = prompts[0] + greedy[0][:LOGIT_TOKENS]
    logits = model(torch.tensor([tokens])).logits[0]
    texts = [tokenizer.decode(tokens) for tokens in greedy]
    return {"prompts": prompts, "greedy": greedy, "texts": texts, "logits": logits}


def beside(wardround: str, checkpoint: Path, device: str, theirs: dict) -> dict:
    kept = "bf16" if "cuda" in device else "f32"
    on = ["--model", checkpoint, "--device", device, "--dtype", kept, "--offline"]
    tokens = theirs["prompts"][0] + theirs["greedy"][0][:LOGIT_TOKENS]
    said = run([wardround, "generate", "--logits", *on, "--tokens", ",".join(map(str, tokens))])
    ours = torch.tensor(json.loads(said)["logits"])
    expected = theirs["logits"][:, : ours.shape[1]]
    apart = ((ours - expected).abs().amax(1) / expected.abs().amax(1)).max().item()
    likeliest = int((ours.argmax(1) == expected.argmax(1)).sum())
    templates, equal = [], []
    for prompt, ids, greedy in zip(PROMPTS, theirs["prompts"], theirs["greedy"]):
        flags = ["--max-tokens", GREEDY_TOKENS, "--temperature", "0", "--json"]
        by_text = json.loads(run([wardround, "generate", *on, "--prompt", prompt, *flags]))
        by_ids = json.loads(run([wardround, "generate", *on, "--tokens", ",".join(map(str, ids)), *flags]))
        templates.append(by_text["tokens"] == by_ids["tokens"] and by_text["usage"]["prompt_tokens"] == len(ids))
        # Ours end where the model ends its turn.
        same = [ours == other for ours, other in zip(by_ids["tokens"], greedy)]
        equal.append(f"{same.index(False) if False in same else len(same)} of {len(same)}")
    whole = all(first == last for first, _, last in (each.split() for each in equal))
    well = apart <= BOUNDS[kept] and all(templates) and (whole or kept == "bf16")
    return {
        "well": well, "dtype": kept, "logits_apart": apart, "allowed": BOUNDS[kept], "likeliest_equal": f"{likeliest} of {len(tokens)}",
        "templates_equal": templates, "greedy_tokens_equal": equal,
    }  # fmt: skip


def speed(wardround: str, checkpoint: Path, device: str) -> dict:
    """Both in bf16; transformers by `generate`, with drawing."""
    on = ["--model", checkpoint, "--device", device, "--dtype", "bf16", "--offline"]
    told = run([wardround, "bench", *on, "-p", "512", "-n", "24", "--batch", "1", "-r", "3", "--format", "json", "--quiet"])
    place = "cuda" if "cuda" in device and torch.cuda.is_available() else "cpu"
    arguments = argparse.Namespace(checkpoint=checkpoint, device=place, new_tokens=24, repetitions=2)
    model = load(arguments)
    theirs = {"decode": decode_rate(model, 1, arguments), "prefill": prefill_rate(model, arguments, 512)}
    return {"wardround": json.loads(told)["results"], "transformers": theirs}


def debate(wardround: str, models: Path, found: list[str], device: str, out: Path) -> dict:
    questions = out / "questions.jsonl"
    lines = (Path(__file__).parents[2] / "src/data/demo.jsonl").read_text().splitlines()
    lines += [json.dumps(question) for question in MORE]
    questions.write_text("\n".join(lines[:QUESTIONS]) + "\n")
    to = out / f"debate-{device.replace(':', '-')}"
    panel = ",".join(str(models / name) for name in (found if len(found) == 3 else found[:1]))
    on = ["--device", device, "--offline", "--quiet"]
    said = run([wardround, "run", "medmad", "--data", questions, "--format", "mcq", "--panel", panel, "--set", "record=short", "--out", to, *on])
    verified = run([wardround, "verify", to])
    figure = {"said": said[-1500:], "verified": verified[-500:]}
    if not device.startswith("candle"):
        figure["replayed"] = run([wardround, "replay", to, "--items", "demo-1,more-2", *on])
    return figure


if __name__ == "__main__":
    main()
