"""A run in the form of Every Eval Ever (https://github.com/evaleval/every_eval_ever), schema 0.3.0."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from .reading import Line, Run, RunError

SCHEMA = "0.3.0"
UNKNOWN = "unknown"
PROGRAM = "wardround"
MEANING = (
    "The share of items whose answer, or of notes whose flag, is the gold one, averaged over the runs; an item without an answer is wrong"
)


def to_every_eval_ever(run: Run, out: str | Path) -> Path:
    """Writes a run's figures and its samples below `out`, where the store of evaluations has them, and returns the figures' path.

    Raises `RunError` for a run without gold: a sample has a score there.
    """
    accuracy = run.figures.get("accuracy")
    if not accuracy or accuracy["mean"] is None:
        raise RunError(f"{run.directory} has no gold: Every Eval Ever wants a score of each sample")
    plan, figures = run.plan, run.figures
    dataset = plan["dataset"]
    name, identity = _model(plan)
    finished = _seconds(figures["finished_at"])
    evaluation = f"{dataset['name']}/{identity.replace('/', '_')}/{finished}"
    calls = defaultdict(list)
    for call in run.call_lines:
        calls[call["run"], call["item"]].append(call)
    right = {(row["run"], row["item"]): bool(row["is_correct"]) for row in run.items.to_dict("records")}
    asked = run.dataset.to_dict("index")
    graded = [line for line in run.lines if line["gold"] is not None]
    about = {"schema_version": SCHEMA, "evaluation_id": evaluation, "model_id": identity, "evaluation_name": dataset["name"]}
    samples = [
        about | _sample(line, asked[line["item"]], calls[line["run"], line["item"]], right[line["run"], line["item"]])
        for line in graded
    ]
    text = "".join(_one_line(sample) + "\n" for sample in samples)
    folder = "/".join(["data", _component(dataset["name"]), *map(_component, identity.split("/", 1))])
    stem = _uuid(figures["head"])
    log = {
        "schema_version": SCHEMA,
        "evaluation_id": evaluation,
        "evaluation_timestamp": _seconds(plan["created_at"]),
        "retrieved_timestamp": finished,
        "source_metadata": {
            "source_name": PROGRAM,
            "source_type": "evaluation_run",
            "source_organization_name": UNKNOWN,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": PROGRAM, "version": figures["version"]},
        "model_info": {
            "name": name,
            "id": identity,
            "developer": identity.split("/")[0],
            "additional_details": _details(plan),
        },
        "evaluation_results": [
            {
                "evaluation_result_id": "accuracy",
                "evaluation_name": dataset["name"],
                "source_data": {
                    "dataset_name": dataset["name"],
                    "source_type": "other",
                    "additional_details": {"format": dataset["format"], "sha256": dataset["sha256"]},
                },
                "metric_config": {
                    "evaluation_description": MEANING,
                    "metric_id": "accuracy",
                    "metric_name": "Accuracy",
                    "metric_kind": "accuracy",
                    "metric_unit": "proportion",
                    "lower_is_better": False,
                    "score_type": "continuous",
                    "min_score": 0.0,
                    "max_score": 1.0,
                },
                "score_details": {
                    "score": accuracy["mean"],
                    "details": {
                        "runs": str(figures["n_runs"]),
                        "accuracy_per_run": ", ".join(map(str, accuracy["per_run"])),
                        "items_without_gold": str(figures["n_without_gold"]),
                        "items_failed_and_counted_wrong": str(figures["n_errors"]),
                    },
                },
                "generation_config": {
                    "generation_args": {
                        "eval_plan": {
                            "name": plan["system"],
                            "config": {key: str(value) for key, value in plan.get("settings", {}).items()},
                        }
                    },
                    "additional_details": {"seed": str(plan["seed"]), "decoding": str(plan["decoding"])},
                },
            }
        ],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": f"{folder}/{stem}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(text.encode()).hexdigest(),
            "total_rows": len(samples),
        },
    }
    target = Path(out) / folder
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{stem}_samples.jsonl").write_text(text, encoding="utf-8")
    path = target / f"{stem}.json"
    path.write_text(json.dumps(log, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    return path


def _sample(line: Line, item: Mapping[Any, Any], calls: list[Line], is_correct: bool) -> Line:
    is_question = line["kind"] == "question"
    text = str(item["question"] if is_question else item["text"])
    gold = str(line["gold"]) if is_question else ("error" if line["gold"]["flag"] else "no error")
    said = line["answer"] if is_question else {True: "error", False: "no error", None: ""}[line["flag"]]
    messages: list[Line] = []
    for call in calls:
        for message in [*call["messages"], {"role": "assistant", "content": call["text"]}]:
            content = message["content"]
            content = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            messages.append({"turn_idx": len(messages), "role": message["role"], "content": content})
    tokens = {name: sum(call["usage"][name] for call in calls) for name in ("prompt_tokens", "cached_tokens", "completion_tokens")}
    is_single = len(calls) == 1
    place = "output.raw" if is_single else f"messages[{len(messages) - 1}].content"
    answer = {"turn_idx": 0 if is_single else len(messages) - 1, "source": place, "extracted_value": said, "is_terminal": True}
    return {
        "evaluation_result_id": "accuracy",
        "sample_id": line["item"],
        "sample_hash": hashlib.sha256((text + gold).encode()).hexdigest(),
        "interaction_type": "single_turn" if is_single else "multi_turn",
        "input": {"raw": text, "reference": [gold], "choices": list(item["options"].values()) if is_question else None},
        "output": {"raw": [calls[0]["text"]]} if is_single else None,
        "messages": None if is_single else messages,
        "answer_attribution": [{**answer, "extraction_method": "the system's outcome"}],
        "evaluation": {"score": float(is_correct), "is_correct": is_correct, "num_turns": len(calls) or None},
        "token_usage": {
            "input_tokens": tokens["prompt_tokens"],
            "output_tokens": tokens["completion_tokens"],
            "total_tokens": tokens["prompt_tokens"] + tokens["completion_tokens"],
            "input_tokens_cache_read": tokens["cached_tokens"],
        },
        "error": line["error"],
        "metadata": {"run": str(line["run"])},
    }


def _model(plan: Line) -> tuple[str, str]:
    """The name of the models of a panel, and `developer/model`: one model's own, or the system's over several."""
    models = list(dict.fromkeys(member.get("repository") or member["backbone"] for member in plan["panel"]))
    if len(models) == 1:
        return models[0], models[0] if models[0].count("/") == 1 else f"{UNKNOWN}/{_component(models[0])}"
    name = "+".join(models)
    return name, f"{PROGRAM}/{plan['system']}-{'-'.join(_component(model.split('/')[-1]) for model in models)}"


def _details(plan: Line) -> dict[str, str]:
    """Of the models: which each agent has, and what the store wants to know. Where an endpoint runs, and what, no run knows."""
    panel = plan["panel"]
    is_local = all(member["family"] != "remote" for member in panel)
    is_published = not plan["synthetic"] and all("repository" in member for member in panel)
    return {f"panel_{member['agent']}": member.get("repository") or member["backbone"] for member in panel} | {
        "deployment_type": "self_deployed" if is_local else UNKNOWN,
        "model_availability": "open_weights" if is_published else UNKNOWN,
        "synthetic_weights": str(plan["synthetic"]).lower(),
    }


def _component(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)


def _seconds(time: str) -> str:
    return str(int(datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()))


def _uuid(head: str) -> str:
    """A name of the form that the store has, the same for a run whenever it is written."""
    digits = hashlib.sha256(f"every-eval-ever {head}".encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"


def _one_line(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # Some readers take these for the end of a line, the published validator among them.
    return re.sub("[\x85\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)
