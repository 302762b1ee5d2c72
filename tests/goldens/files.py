"""How goldens are written: JSON that diffs by record, safetensors that never carry a date."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file


def write_json(path: Path, value: dict) -> None:
    """Indented, as published config.json files are."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_records(path: Path, header: dict, name: str, records: list[dict]) -> None:
    """One JSON object: the header's fields, then `name`: an array with one record a line."""
    fields = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in header.items()]
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    fields.append(f"{json.dumps(name)}: [\n{lines}\n]")
    path.write_text("{" + ",\n".join(fields) + "}\n", encoding="utf-8")


def write_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """`format: pt` is in every published checkpoint's metadata, and transformers insists on it."""
    copies = {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
    save_file(copies, path, metadata={"format": "pt"})


def significant(value: float, digits: int = 3) -> float:
    return float(f"{value:.{digits}g}")
