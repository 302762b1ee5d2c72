"""Writes encoders/: two tiny random BERT encoders as published ones lie in their folders, and the vectors that
sentence-transformers gives for TEXTS, by them and by all-MiniLM-L6-v2 (WARDROUND_MINILM: its folder).
"""

import os
import re
import tempfile
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer, util
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece
from transformers import BertConfig, BertModel

from files import significant, write_json, write_records, write_tensors

TEXTS = [
    "",
    " \t\n ",
    "Fever.",
    "A 54-year-old man comes to the clinic with crushing chest pain that began two hours ago.",
    "Crushing chest pain for two hours in a man of 54 points to a myocardial infarction.",
    "The child has had a barking cough and stridor since last night; croup is likely.",
    "croup is likely, since the child barks and stridor is heard",
    "Troponin I: 0.04 ng/mL (reference < 0.01), K+ 5.9 mmol/L, pH 7.21 -> start insulin/dextrose!",
    "WHY NOT OPTION C? Because beta-blockers worsen cocaine-induced vasospasm.",
    "Ménière's disease, Sjögren's syndrome and Guillain–Barré syndrome are not alike.",
    "患者は胸痛を訴える。心電図で ST 上昇。",
    "المريض يعاني من ألم في الصدر",
    "Temperature 39 °C 🤒 → paracetamol 1 g ⅓ ﬁrst-line",
    "A special token in the text: [SEP] and [CLS] and [MASK] and [PAD].",
    "zero\u200bwidth, control\u0007bell, no\u00a0break, soft\u00adhyphen, replacement \ufffd",
    "a" * 150 + " is one word of 150 letters",
    "First, the key clues.\n\nSecond, what they exclude.\r\nThird, the answer:\tB",
    "pneumonoultramicroscopicsilicovolcanoconiosis",
    "the spleen is enlarged and the platelets are low " * 40,
    "One word less or more: " + ", ".join(f"{number} mg" for number in range(1, 120)),
]
# Trajectories of one item, whose mean pairwise cosine is compared.
GROUPS = [[3, 4, 5], [4, 5, 6], [0, 1, 2], [9, 10, 11, 12, 13], list(range(len(TEXTS)))]

# Of the longest vector's largest number.
TOLERANCE = 1e-5
MINILM = "all-MiniLM-L6-v2"


def make(folder: Path) -> None:
    folder = folder / "encoders"
    folder.mkdir(exist_ok=True)
    words = vocabulary()
    records, tensors = [], {}
    for name, write in [("tiny-mean", write_mean), ("tiny-cls", write_cls)]:
        model, tokenizer = bert(len(words), seed=len(name)), wordpiece(words)
        with tempfile.TemporaryDirectory() as reference:
            # As sentence-transformers reads it; what is committed may be laid out otherwise.
            write_reference(Path(reference), model, tokenizer, pooling=name.removeprefix("tiny-"))
            record, tensors[name] = embed(name, Path(reference))
            record["mistakes"] = mistakes(model, tokenizer, name, tensors[name])
        write(folder / name, model, tokenizer)
        records.append(record)
    minilm = os.environ.get("WARDROUND_MINILM")
    if minilm is None:
        raise SystemExit(f"WARDROUND_MINILM must name a folder of sentence-transformers/{MINILM}")
    record, tensors[MINILM] = embed(MINILM, Path(minilm))
    records.append(record)
    header = {"tolerance": TOLERANCE, "texts": TEXTS, "groups": GROUPS}
    write_records(folder / "expected.json", header, "cases", records)
    write_tensors(folder / "expected.safetensors", tensors)
    print(f"encoders: {len(records)}")


# The reference.


def embed(name: str, path: Path) -> tuple[dict, torch.Tensor]:
    encoder = SentenceTransformer(str(path), device="cpu")
    vectors = encoder.encode(TEXTS, convert_to_tensor=True)
    # Alone and beside the others: what batches and padding move is rounding.
    alone = torch.stack([encoder.encode(text, convert_to_tensor=True) for text in TEXTS])
    moved = float((vectors - alone).abs().max() / vectors.abs().max())
    assert moved < TOLERANCE / 5, moved
    similarities = [mean_pairwise(vectors[group]) for group in GROUPS]
    lengths = [len(encoder.tokenize([text])["input_ids"][0]) for text in TEXTS]
    assert max(lengths) == encoder.max_seq_length and lengths[0] == 2
    record = {"name": name, "max_tokens": encoder.max_seq_length, "tokens": lengths, "similarities": similarities}
    return record, vectors


def mean_pairwise(vectors: torch.Tensor) -> float:
    cosines = util.cos_sim(vectors, vectors)
    above = torch.triu_indices(len(vectors), len(vectors), offset=1)
    return float(cosines[above[0], above[1]].double().mean())


def mistakes(model: BertModel, tokenizer: Tokenizer, name: str, expected: torch.Tensor) -> dict[str, float]:
    """By how much of the largest number a mistake moves the vectors; each must be plain to see."""

    @torch.no_grad()
    def vectors(pooling: str, special: bool = True, types: int = 0, limit: int = 24, shift: int = 0) -> torch.Tensor:
        tokenizer.enable_truncation(limit)
        rows = []
        for text in TEXTS:
            ids = torch.tensor([tokenizer.encode(text).ids])
            positions = torch.arange(ids.shape[1])[None] + shift
            states = model(ids, token_type_ids=torch.full_like(ids, types), position_ids=positions).last_hidden_state[0]
            inner = states if special or len(states) == 2 else states[1:-1]
            row = inner.mean(0) if pooling == "mean" else inner[0]
            rows.append(torch.nn.functional.normalize(row, dim=0) if name == "tiny-mean" else row)
        return torch.stack(rows)

    right = name.removeprefix("tiny-")
    wrong = {"mean": "cls", "cls": "mean"}[right]
    largest = float(expected.abs().max())
    assert float((vectors(right) - expected).abs().max()) / largest < TOLERANCE / 5
    made = {
        "pooled otherwise": vectors(wrong),
        "second segment": vectors(right, types=1),
        "positions from 1": vectors(right, shift=1),
        "cut later": vectors(right, limit=40),
        "cut earlier": vectors(right, limit=23),
        "without special tokens": vectors(right, special=False),
    }
    for layer in model.encoder.layer:
        layer.intermediate.intermediate_act_fn = torch.nn.GELU(approximate="tanh")
    made["tanh gelu"] = vectors(right)
    moves = {mistake: significant(float((made[mistake] - expected).abs().max()) / largest) for mistake in made}
    assert min(moves.values()) > 5 * TOLERANCE, moves
    return moves


# The tiny encoders.


def vocabulary() -> list[str]:
    """[PAD] and its like, every character of the shorter texts, and their commonest words; what is beyond is [UNK]."""
    normalizer = normalizers.BertNormalizer(lowercase=True)
    text = normalizer.normalize_str(" ".join(text for text in TEXTS if text.isascii()))
    words = re.findall(r"[a-z]{2,}", text)
    common = sorted({word for word in words if words.count(word) > 2 and len(word) < 9})
    pieces = sorted({f"##{word[-2:]}" for word in words if words.count(word) == 1})[::3]
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    marks = ".,:;-!?()<>+/'"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return special + list(letters + marks) + ["患", "。"] + [f"##{letter}" for letter in letters] + common + pieces


def wordpiece(words: list[str]) -> Tokenizer:
    vocab = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocab["[CLS]"]), ("[SEP]", vocab["[SEP]"])],
    )
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(words[:5])
    return tokenizer


def bert(vocab_size: int, seed: int) -> BertModel:
    config = BertConfig(
        vocab_size=vocab_size,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=32,
        max_position_embeddings=41,
        attn_implementation="eager",
    )
    model = BertModel(config, add_pooling_layer=False).eval()
    generator = torch.Generator().manual_seed(seed)
    for name, weight in sorted(model.named_parameters()):
        noise = torch.randn(weight.shape, generator=generator)
        if name.endswith("LayerNorm.weight"):
            weight.data = 1 + 0.3 * noise
        elif name.endswith("bias"):
            weight.data = 0.3 * noise
        elif "embeddings" in name:
            weight.data = noise
        else:
            weight.data = noise / weight.shape[1] ** 0.5 * 1.5
    return model


def config_of(model: BertModel) -> dict:
    """The fields that published BERT encoders have."""
    fields = model.config.to_dict()
    names = """hidden_act hidden_size num_hidden_layers num_attention_heads intermediate_size max_position_embeddings vocab_size
        type_vocab_size layer_norm_eps initializer_range hidden_dropout_prob attention_probs_dropout_prob pad_token_id"""
    chosen = {name: fields[name] for name in names.split()}
    plain = {"model_type": "bert", "position_embedding_type": "absolute", "use_cache": True}
    return {"architectures": ["BertModel"], **plain, **dict(sorted(chosen.items()))}


def modules(kinds: dict[str, str], prefix: str) -> list[dict]:
    return [
        {"idx": index, "name": str(index), "path": path, "type": f"{prefix}.{kind}"}
        for index, (kind, path) in enumerate(kinds.items())
    ]


TOKENIZER_CONFIG = {
    "tokenizer_class": "BertTokenizer",
    "do_lower_case": True,
    "model_max_length": 41,
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
STEPS = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}


def write_folder(folder: Path, model: BertModel, tokenizer: Tokenizer, table: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config_of(model))
    (folder / "encoder.toml").write_text(f"{table}query_tokens = 24\ndocument_tokens = 24\n", encoding="utf-8")
    write_json(folder / "tokenizer_config.json", TOKENIZER_CONFIG)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")


def flags(pooling: str) -> dict:
    names = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "mean_sqrt": "mean_sqrt_len_tokens"}
    modes = {f"pooling_mode_{flag}": mode == pooling for mode, flag in names.items()}
    return {"word_embedding_dimension": 16, **modes}


def write_reference(folder: Path, model: BertModel, tokenizer: Tokenizer, pooling: str) -> None:
    steps = dict(list(STEPS.items())[: 3 if pooling == "mean" else 2])
    write_folder(folder, model, tokenizer, "")
    (folder / "1_Pooling").mkdir()
    write_json(folder / "modules.json", modules(steps, "sentence_transformers.models"))
    write_json(folder / "1_Pooling" / "config.json", flags(pooling))
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 24, "do_lower_case": False})
    write_tensors(folder / "model.safetensors", model.state_dict())


def write_mean(folder: Path, model: BertModel, tokenizer: Tokenizer) -> None:
    """As all-MiniLM-L6-v2: safetensors, means of length 1, and a tokenizer that pads to 16 and cuts at 16."""
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding(length=16)
    write_folder(folder, model, tokenizer, 'output = "mean"\nnormalised = true\n')
    write_tensors(folder / "model.safetensors", model.state_dict())


def write_cls(folder: Path, model: BertModel, tokenizer: Tokenizer) -> None:
    """As older PyTorch files have it: a pickle, `bert.` before every name, gamma and beta; the first state, as it is."""
    tokenizer.no_truncation()
    write_folder(folder, model, tokenizer, 'output = "cls"\n')
    older = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    state = {}
    for name, weight in model.state_dict().items():
        for new, old in older.items():
            name = name.replace(new, old)
        state[f"bert.{name}"] = weight.clone()
    torch.save(state, folder / "pytorch_model.bin")
