"""Writes models/<case>/: a tiny random checkpoint laid out as published ones are, and what transformers makes of it."""

import copy
import json
import math
import os
import shutil
import tempfile
from pathlib import Path

import numpy
import torch
import transformers

from cases import CASES, Case, Mistake
from files import significant, write_json, write_records, write_tensors

GREEDY_TOKENS = 64
SEEDS = 400
# f32 rounding stays five times under this; every mistake in cases.py shows as at least five times it.
TOLERANCE_OF_LARGEST_LOGIT = 5e-5
MARGIN = 5.0
# A greedy step is only a test where the runner-up is out of reach of rounding.
GAP_OF_LARGEST_LOGIT = 2e-3
# A greedy text that sticks to a few tokens would hide a wrong position or a wrong cache.
DISTINCT_TOKENS = 20


def make(folder: Path) -> None:
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    models = folder / "models"
    shutil.rmtree(models, ignore_errors=True)
    models.mkdir()
    write_records(
        models / "index.json", {"greedy_tokens": GREEDY_TOKENS}, "cases", [make_case(c, models) for c in CASES]
    )


def make_case(case: Case, models: Path) -> dict:
    """Tries seeds until the greedy text is decisive, whatever is rounded; returns the case's line of index.json."""
    folder = models / case.name
    for seed in range(SEEDS):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        prompt = write_checkpoint(case, folder, seed)
        logits, greedy = generate(load(case, folder), prompt)
        largest = logits.abs().max().item()
        gap = smallest_gap(logits[len(prompt) - 1 :])
        if gap <= GAP_OF_LARGEST_LOGIT * largest or len(set(greedy)) < DISTINCT_TOKENS:
            continue
        tolerance = significant(TOLERANCE_OF_LARGEST_LOGIT * largest, 2)
        noise = rounding_noise(case, folder, prompt, greedy, logits)
        if noise * MARGIN <= tolerance:
            break
        print(f"{case.name}: rounding alone moves a logit of seed {seed} by {noise:.2g}, tolerance {tolerance:.2g}")
    else:
        raise SystemExit(f"{case.name}: no seed below {SEEDS} gives a decisive greedy text")
    positions = checked_positions(case)
    traps = []
    for mistake in case.mistakes:
        wrong, _ = generate(load(case, folder, mistake), prompt, forced=greedy)
        difference = (wrong - logits)[positions].abs().max().item()
        if difference < MARGIN * tolerance:
            raise SystemExit(f"{case.name}: '{mistake.what}' moves a logit by {difference:.2g} only")
        traps.append({"number": mistake.trap, "mistake": mistake.what, "moves_logits_by": significant(difference)})

    write_tensors(folder / "expected.safetensors", {"logits": logits[positions]})
    expected = {
        "prompt": prompt,
        "greedy": greedy,
        "positions": positions,
        "tolerance": tolerance,
        "smallest_gap": significant(gap),
    }
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")
    print(f"{case.name}: seed {seed}, largest logit {largest:.3g}, noise {noise:.2g}, tolerance {tolerance:.2g}")
    return {
        "name": case.name,
        "family": case.family,
        "description": case.description,
        "stored": str(case.stored).removeprefix("torch."),
        "seed": seed,
        "tolerance": tolerance,
        "smallest_gap": significant(gap),
        "traps": traps,
    }


def checked_positions(case: Case) -> list[int]:
    """The first ones, those where the window begins to bite, the prompt's last, and two that come out of the cache."""
    last = case.prompt_tokens - 1
    window = case.window
    return sorted(
        {0, 1, window - 1, window, window + 1, last // 2, last, last + GREEDY_TOKENS // 2, last + GREEDY_TOKENS - 1}
    )


# --- the checkpoint -------------------------------------------------------------------------------------------------


def write_checkpoint(case: Case, folder: Path, seed: int) -> list[int]:
    """Writes config.json, generation_config.json and the weights; returns the prompt drawn after them."""
    generator = numpy.random.default_rng(seed)
    model = architecture(case)(configuration(case.config))
    tensors = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        values = random_values(case.family, name, tuple(tensor.shape), generator)
        tensors[name_on_disk(case, name)] = torch.from_numpy(values).to(case.stored)
    write_json(folder / "config.json", case.config)
    write_json(folder / "generation_config.json", case.generation_config)
    write_weights(case, folder, tensors)
    vocabulary = model.get_input_embeddings().num_embeddings
    return generator.integers(0, vocabulary, case.prompt_tokens).tolist()


def random_values(family: str, name: str, shape: tuple[int, ...], generator: numpy.random.Generator) -> numpy.ndarray:
    """Far wider than a trained model's, so that every tensor weighs in the logits; the head norms sharpen attention."""
    centre, deviation = 0.0, 0.3
    if "norm" in name:
        deviation = 0.0 if name.endswith("bias") else 0.3
        is_less_one = family in ("gemma3", "qwen35") and not any(part in name for part in ("vision", "visual", "linear_attn"))
        centre = 0.0 if is_less_one else 1.0
        if "q_norm" in name or "k_norm" in name:
            # Gemma 4 divides no scores by the width of heads.
            centre += -0.5 if family == "gemma4" else 0.8
        elif family in ("gemma3", "gemma4") and "post_" in name:
            centre += 3.0
    if name.endswith("A_log"):
        centre, deviation = -2.0, 1.0  # from what is forgotten at once to what stays
    if name.endswith("layer_scalar"):
        centre, deviation = 0.8, 0.1
    values = centre + deviation * generator.standard_normal(shape)
    return values.astype(numpy.float32)


def name_on_disk(case: Case, name: str) -> str:
    for prefix, replacement in case.prefixes.items():
        if name.startswith(prefix):
            return replacement + name.removeprefix(prefix)
    return name


def write_weights(case: Case, folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    if case.shards == 1:
        write_tensors(folder / "model.safetensors", tensors)
        return
    names = list(tensors)
    size = math.ceil(len(names) / case.shards)
    weight_map = {}
    for shard in range(case.shards):
        file = f"model-{shard + 1:05}-of-{case.shards:05}.safetensors"
        inside = names[shard * size : (shard + 1) * size]
        write_tensors(folder / file, {name: tensors[name] for name in inside})
        weight_map |= {name: file for name in inside}
    total_size = sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": total_size}, "weight_map": dict(sorted(weight_map.items()))}
    write_json(folder / "model.safetensors.index.json", index)


# --- the reference --------------------------------------------------------------------------------------------------


def architecture(case: Case) -> type:
    return getattr(transformers, case.config["architectures"][0])


def configuration(config: dict) -> transformers.PretrainedConfig:
    """transformers keeps and edits the dictionaries it is given, so it gets its own."""
    return transformers.AutoConfig.for_model(**copy.deepcopy(config))


def load(
    case: Case, folder: Path, mistake: Mistake | None = None, dtype: torch.dtype = torch.float32
) -> torch.nn.Module:
    """The checkpoint through from_pretrained, as a user would load it, with every tensor accounted for."""
    with tempfile.TemporaryDirectory() as copied:
        for file in folder.iterdir():
            os.symlink(file.resolve(), Path(copied) / file.name)
        if mistake and mistake.config:
            Path(copied, "config.json").unlink()
            write_json(Path(copied, "config.json"), edited(case.config, mistake.config))
        model, info = architecture(case).from_pretrained(
            copied, dtype=dtype, attn_implementation="eager", output_loading_info=True
        )
    if any(info.values()):
        raise SystemExit(f"{case.name}: {info}")
    model.eval().requires_grad_(False)
    # A bf16 run multiplies by the scale in bf16; loading the same file in f32 would lose that, so it is put back.
    for module in model.modules():
        if hasattr(module, "embed_scale"):
            module.embed_scale.copy_(module.embed_scale.to(case.stored))
    if mistake and mistake.edit:
        mistake.edit(model)
    return model


def edited(config: dict, edits: dict) -> dict:
    config = copy.deepcopy(config)
    for path, value in edits.items():
        *parents, last = path.split(".")
        section = config
        for parent in parents:
            section = section[parent]
        section[last] = value
    return config


@torch.no_grad()
def generate(
    model: torch.nn.Module, prompt: list[int], forced: list[int] | None = None
) -> tuple[torch.Tensor, list[int]]:
    """One prefill, then one token at a time over the KV cache, never stopping at an end token.

    Returns the logits after each of the prompt's and the generated tokens but the last, [prompt + 63, vocabulary] in
    f32, and the 64 greedy tokens. `forced` feeds these instead of the greedy ones.
    """
    output = model(input_ids=torch.tensor([prompt]), use_cache=True)
    rows = [output.logits[0]]
    greedy = [int(output.logits[0, -1].argmax())]
    for step in range(GREEDY_TOKENS - 1):
        token = forced[step] if forced else greedy[-1]
        output = model(input_ids=torch.tensor([[token]]), past_key_values=output.past_key_values, use_cache=True)
        rows.append(output.logits[0])
        greedy.append(int(output.logits[0, -1].argmax()))
    return torch.cat(rows).float(), greedy


@torch.no_grad()
def rounding_noise(case: Case, folder: Path, prompt: list[int], greedy: list[int], logits: torch.Tensor) -> float:
    """How far the same logits lie when computed without a cache, and with f64 weights and matrix products."""
    tokens = torch.tensor([prompt + greedy[:-1]])
    uncached = load(case, folder)(input_ids=tokens, use_cache=False).logits[0]
    precise = load(case, folder, dtype=torch.float64)(input_ids=tokens, use_cache=False).logits[0]
    return max((other.double() - logits.double()).abs().max().item() for other in (uncached, precise))


def smallest_gap(rows: torch.Tensor) -> float:
    best = rows.topk(2).values
    return (best[:, 0] - best[:, 1]).min().item()
