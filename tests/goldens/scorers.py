"""Writes scorers/: three tiny random checkpoints as published ones lie in their folders, and what bert-score and
bleurt-pytorch make of PAIRS with them. Needs scorers-requirements.txt, apart from the other goldens' requirements:
`python scorers.py`.
"""

import contextlib
import io
import json
import math
import re
import tempfile
from pathlib import Path

import bert_score
import sentencepiece
import torch
from bleurt_pytorch import BleurtConfig, BleurtForSequenceClassification
from bleurt_pytorch.bleurt.tokenization_bleurt_sp import BleurtSPTokenizer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertModel, DebertaConfig, DebertaModel
from transformers import logging

from files import significant, write_json, write_records, write_tensors

# Of a reference and a candidate.
PAIRS = [
    ("", ""),
    ("", "The spleen is enlarged."),
    ("Croup is likely.", ""),
    (" \t\n ", "Croup is likely."),
    ("Croup is likely.", "\u3000\n"),
    ("Fever.", "Fever."),
    ("Fever.", "fever"),
    ("a", "b"),
    ("Patient is diagnosed with croup.", "Patient is diagnosed with epiglottitis."),
    ("The patient was started on heparin.", "  The patient was started on heparin.  \n"),
    ("The patient was started on heparin.", "The patient was  started\ton\nheparin."),
    ("Suspected of myocardial infarction.", "The man is suspected of having had a pulmonary embolism."),
    ("Penicillin is the drug of choice.", "the drug of choice is penicillin"),
    ("Troponin I: 0.04 ng/mL (reference < 0.01), K+ 5.9 mmol/L", "Troponin I: 0.4 ng/mL, K+ 5.9 mmol/L, pH 7.21"),
    ("WHY NOT OPTION C?", "Why not option C? Because beta-blockers worsen vasospasm."),
    ("It's the patient's wife's third visit; they've no complaints.", "It's his wife's visit, she'll have complaints"),
    ("Ménière's disease and Sjögren's syndrome", "Me\u0301nie\u0300re's disease and Sjo\u0308gren's syndrome"),
    ("患者は胸痛を訴える。", "患者は腹痛を訴える。"),
    ("患者出现胸痛,心电图示ST段抬高,诊断为心肌梗死。", "患者出现胸痛,心电图示ST段压低,诊断为肺栓塞。"),
    ("给予青霉素治疗。", "给予阿奇霉素治疗"),
    ("诊断为肺炎。", "诊断为肺炎。"),
    ("المريض يعاني من ألم في الصدر", "المريض يعاني من ألم في البطن"),
    ("تم تشخيص المريض بالتهاب رئوي.", "تم تشخيص المريضة بالتهاب الرئة"),
    ("الْمَرِيضُ يُعَانِي مِنَ الْحُمَّى", "المريض يعاني من الحمى"),
    ("Temperature 39 °C 🤒 → paracetamol 1 g", "Temperature 38 °C 🤕 → ibuprofen ½ g"),
    ("Ｆｕｌｌ ｗｉｄｔｈ ﬁrst-line", "Full width first-line"),
    ("A special token: [SEP] and [CLS] and [MASK] and [PAD].", "No special token here."),
    ("[SEP]", "A mark alone is the reference."),
    ("zero\u200bwidth, control\u0007bell, no\u00a0break, soft\u00adhyphen, \ufffd", "zero width, no break"),
    ("\u0007\u0007", "a bell alone"),
    ("a" * 150 + " is one word", "b" * 150 + " is one word"),
    ("the spleen is enlarged and the platelets are low " * 40, "the spleen is enlarged " * 3),
    ("short", ", ".join(f"{number} mg" for number in range(1, 120))),
    ("the liver is small " * 30, "the liver is small " * 31),
    ("one two three " * 9 + "four", "one two three " * 10),
    ("胸痛" * 60, "The chest hurts. " * 20),
    ("Dose:\r\n5 mg <b> twice daily</b>", "Dose: 5 mg once daily"),
]
# Texts of which every token's state is compared too.
STATES = [0, 8, 13, 18, 21, 31]
TOLERANCE = 1e-5
LIMIT = 48
BASELINE = (0.31, 0.29, 0.3)


def make(folder: Path) -> None:
    folder = folder.resolve() / "scorers"
    folder.mkdir(exist_ok=True)
    records, tensors = [], {}
    for name, layers, write in [("tiny-deberta", 3, write_deberta), ("tiny-bert", 2, write_bert)]:
        write(folder / name, reference=False)
        with tempfile.TemporaryDirectory(prefix="reference-") as reference:
            write(Path(reference), reference=True)
            record, states = bertscores(name, Path(reference), layers)
        records.append(record)
        tensors |= states
    write_bleurt(folder / "tiny-bleurt")
    records.append(bleurts(folder / "tiny-bleurt"))
    records += [pieces(folder, name, options) for name, options in PIECES.items()]
    header = {"tolerance": TOLERANCE, "baseline": BASELINE, "states": STATES, "pairs": PAIRS}
    write_records(folder / "expected.json", header, "cases", records)
    write_tensors(folder / "expected.safetensors", tensors)
    print(f"scorers: {len(records)}")


# BERTScore.


def bertscores(name: str, path: Path, layers: int) -> tuple[dict, dict[str, torch.Tensor]]:
    raw = bertscore(path, layers)
    rescaled = bertscore(path, layers, BASELINE)
    # Beside others and alone: padding moves no score where no best cosine is negative.
    tokenizer = bert_score.utils.get_tokenizer(str(path))
    ids = [[bert_score.utils.sent_encode(tokenizer, text) for text in pair] for pair in PAIRS]
    assert max(len(row) for pair in ids for row in pair) == LIMIT and ids[0][0] == ids[0][1] and len(ids[0][0]) == 2
    model = bert_score.utils.get_model(str(path), layers)
    states = {}
    for index in STATES:
        for side, row in zip(["reference", "candidate"], ids[index]):
            with torch.no_grad():
                states[f"{name}.{index}.{side}"] = model(torch.tensor([row]))[0][0]
    made = {
        "a layer less": bertscore(path, layers - 1),
        "a layer more": bertscore(path, layers + 1),
        "reference and candidate swapped": raw[:, [1, 0, 2]],
        "marks weighed too": marked(path, layers, ids),
    }
    moves = {mistake: significant(float((scores - raw).nan_to_num().abs().max())) for mistake, scores in made.items()}
    assert min(moves.values()) > 5 * TOLERANCE, moves
    record = {"name": name, "layers": layers, "tokens": [[len(row) for row in pair] for pair in ids], "mistakes": moves}
    return record | {"ids": ids, "raw": rows(raw), "rescaled": rows(rescaled)}, states


def bertscore(path: Path, layers: int, baseline: tuple | None = None) -> torch.Tensor:
    """P, R and F of every pair, `[pairs, 3]`, each pair a batch of its own."""
    references, candidates = [pair[0] for pair in PAIRS], [pair[1] for pair in PAIRS]
    options = {"model_type": str(path), "num_layers": layers, "batch_size": 1, "device": "cpu"}
    if baseline is not None:
        lines = ["LAYER,P,R,F"] + [",".join(map(str, (layer, *baseline))) for layer in range(layers + 1)]
        tsv = path / "baseline.tsv"
        tsv.write_text("\n".join(lines) + "\n")
        options |= {"lang": "en", "rescale_with_baseline": True, "baseline_path": str(tsv)}
    return torch.stack(bert_score.score(candidates, references, **options), dim=1)


def marked(path: Path, layers: int, ids: list) -> torch.Tensor:
    model = bert_score.utils.get_model(str(path), layers)
    scores = []
    for pair in ids:
        with torch.no_grad():
            reference, candidate = [torch.nn.functional.normalize(model(torch.tensor([row]))[0][0]) for row in pair]
        cosines = candidate @ reference.T
        precision, recall = cosines.max(1).values.mean(), cosines.max(0).values.mean()
        scores.append(torch.stack([precision, recall, 2 * precision * recall / (precision + recall)]))
    return torch.stack(scores)


def rows(scores: torch.Tensor) -> list:
    """JSON knows no NaN: bert-score gives one where a text's tokens are all marks, and is not followed there."""
    return [[None if math.isnan(score) else score for score in row] for row in scores.tolist()]


def seed(model: torch.nn.Module, number: int) -> torch.nn.Module:
    generator = torch.Generator().manual_seed(number)
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
    return model.eval()


def text() -> list[str]:
    return [side for pair in PAIRS for side in pair if side.strip()]


def write_deberta(folder: Path, reference: bool) -> None:
    """As microsoft/deberta-xlarge-mnli: a pickle with `deberta.` before every name, GPT-2's vocabulary files, and
    "c2p|p2c" in one string. The published folder's tokenizer names no limit; bert-score knew it from elsewhere.
    """
    folder.mkdir(parents=True, exist_ok=True)
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, special_tokens=special, show_progress=False)
    bpe.train_from_iterator(text(), trainer)
    trained = json.loads(bpe.to_str())["model"]
    vocab = trained["vocab"]
    vocab["[MASK]"] = len(vocab)
    config = {
        "model_type": "deberta",
        "attention_probs_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": 16,
        "initializer_range": 0.02,
        "intermediate_size": 24,
        "max_position_embeddings": LIMIT,
        "relative_attention": True,
        "pos_att_type": "c2p|p2c",
        "layer_norm_eps": 1e-7,
        "max_relative_positions": -1,
        "position_biased_input": False,
        "num_attention_heads": 4,
        "num_hidden_layers": 4,
        "type_vocab_size": 0,
        "vocab_size": len(vocab),
    }
    write_json(folder / "config.json", config)
    (folder / "vocab.json").write_text(json.dumps(vocab, ensure_ascii=False), encoding="utf-8")
    merges = [" ".join(pair) for pair in trained["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]) + "\n", encoding="utf-8")
    limit = {"model_max_length": LIMIT, "tokenizer_class": "DebertaTokenizer"} if reference else {}
    write_json(folder / "tokenizer_config.json", {"do_lower_case": False, "vocab_type": "gpt2"} | limit)
    model = seed(DebertaModel(DebertaConfig(**config)), 1)
    state = {f"deberta.{name}": weight for name, weight in model.state_dict().items()}
    state["classifier.bias"] = torch.zeros(3)
    torch.save(state, folder / "pytorch_model.bin")
    if not reference:
        # As PyTorch wrote before 1.6.
        torch.save(state, folder / "older.bin", _use_new_zipfile_serialization=False)


def write_bert(folder: Path, reference: bool) -> None:
    """As bert-base-multilingual-cased: safetensors with the older names (`bert.`, gamma, beta), and a tokenizer.json."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = sorted({letter for side in text() for letter in side if letter.isalnum() or letter in ".,:;'<>()/-。"})
    letters = [letter for letter in letters if letter not in "肺ü"]
    found = re.findall(r"[a-z]{2,}|[ء-ي]{3,}", " ".join(text()))
    words = sorted({word for word in found if found.count(word) > 1 and len(word) < 12})
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocab = special + letters + [f"##{letter}" for letter in letters if not "一" <= letter <= "鿿"] + words
    tokenizer_config = {"do_lower_case": False, "model_max_length": LIMIT}
    write_json(folder / "tokenizer_config.json", tokenizer_config)
    numbers = {word: number for number, word in enumerate(vocab)}
    wordpiece = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]", max_input_chars_per_word=100))
    wordpiece.normalizer = normalizers.BertNormalizer(lowercase=False)
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    wordpiece.decoder = decoders.WordPiece()
    wordpiece.add_special_tokens(special)
    wordpiece.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    if reference:
        (folder / "vocab.txt").write_text("\n".join(vocab) + "\n", encoding="utf-8")
    else:
        (folder / "tokenizer.json").write_text(wordpiece.to_str(), encoding="utf-8")
    config = BertConfig(
        vocab_size=len(vocab),
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=24,
        max_position_embeddings=LIMIT + 4,
        attn_implementation="eager",
    )
    model = seed(BertModel(config, add_pooling_layer=False), 2)
    write_json(folder / "config.json", {"architectures": ["BertForMaskedLM"]} | config.to_diff_dict() | config_of(config))
    older = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    state = {}
    for name, weight in model.state_dict().items():
        if not reference:
            name = "bert." + next((name.replace(new, old) for new, old in older.items() if new in name), name)
        state[name] = weight
    write_tensors(folder / "model.safetensors", state)


def config_of(config: BertConfig) -> dict:
    names = """hidden_act hidden_dropout_prob attention_probs_dropout_prob initializer_range layer_norm_eps pad_token_id
        type_vocab_size model_type"""
    return {name: getattr(config, name) for name in names.split()}


# BLEURT.

RULES = [("Ａ", "A"), ("é", "é"), ("è", "è"), ("ö", "ö"), ("ﬁ", "fi"), ("½", "1/2"), ("\u3000", " "), ("\t", " ")]
RULES += [("\n", " "), ("\r", " "), ("\u00a0", " "), ("\u200b", " "), ("…", "..."), ("\u0007", "")]
RULES += [(chr(0xFF21 + n), chr(0x41 + n)) for n in range(1, 26)] + [(chr(0xFF41 + n), chr(0x61 + n)) for n in range(26)]
SPECIAL = ["[CLS]", "[SEP]", "[MASK]"]
# SentencePiece models of which only the tokens are compared: bytes for the unknown, and spaces as they are.
PIECES = {
    "pieces-bytes": {"vocab_size": 460, "byte_fallback": True, "user_defined_symbols": ["mg", "<b>"]},
    "pieces-spaces": {"vocab_size": 200, "remove_extra_whitespaces": False, "add_dummy_prefix": False},
}


def train(path: Path, **options) -> None:
    """SentencePiece, with a small table of normalisation in place of NFKC's 240 kB."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        # The model keeps the name of this file.
        rules = Path("rules.tsv")
        codes = lambda side: " ".join(f"{ord(letter):X}" for letter in side)
        rules.write_text("".join(f"{codes(old)}\t{codes(new)}\n" for old, new in RULES if old != new))
        written = io.BytesIO()
        known = [side for side in text() if "胸" not in side and "🤒" not in side]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(known),
            model_writer=written,
            model_type="unigram",
            normalization_rule_tsv=str(rules),
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            pad_piece="[PAD]",
            unk_piece="[UNK]",
            control_symbols=SPECIAL,
            character_coverage=0.98,
            num_threads=1,
            minloglevel=2,
            hard_vocab_limit=False,
            **options,
        )
    path.write_bytes(written.getvalue())


def write_bleurt(folder: Path) -> None:
    """As lucadiliello/BLEURT-20: embeddings narrower than the layers, a pickle with `bleurt.` and the head, spm.model."""
    folder.mkdir(parents=True, exist_ok=True)
    train(folder / "spm.model", vocab_size=220, user_defined_symbols=["<b>"])
    tokenizer = BleurtSPTokenizer(str(folder / "spm.model"))
    config = {
        "model_type": "bleurt",
        "attention_probs_dropout_prob": 0,
        "embedding_size": 8,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0,
        "hidden_size": 16,
        "intermediate_size": 24,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": LIMIT,
        "num_attention_heads": 4,
        "num_hidden_layers": 3,
        "type_vocab_size": 2,
        "vocab_size": tokenizer.vocab_size,
    }
    write_json(folder / "config.json", config)
    model = seed(BleurtForSequenceClassification(BleurtConfig(**config)), 3)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")


def bleurts(folder: Path) -> dict:
    config = BleurtConfig(**json.loads((folder / "config.json").read_text()))
    model = BleurtForSequenceClassification(config)
    model.load_state_dict(torch.load(folder / "pytorch_model.bin"))
    model.eval()
    tokenizer = BleurtSPTokenizer(str(folder / "spm.model"))
    encode = lambda first, second: tokenizer(first, second, truncation="longest_first", max_length=LIMIT)
    scored = lambda pairs, limit=LIMIT: torch.tensor([score(model, encode(*pair), limit) for pair in pairs])
    encoded = [encode(*pair) for pair in PAIRS]
    for row in encoded:
        last = row["input_ids"].index(tokenizer.sep_token_id)
        assert row["token_type_ids"].count(0) >= last + 1 and len(row["input_ids"]) <= LIMIT
    scores = scored(PAIRS)
    made = {
        "reference and candidate swapped": scored([pair[::-1] for pair in PAIRS]),
        "one segment": torch.tensor([score(model, row, types=0) for row in encoded]),
        "cut earlier": torch.tensor([score(model, encode(*pair), LIMIT - 1) for pair in PAIRS]),
    }
    moves = {mistake: significant(float((other - scores).abs().max())) for mistake, other in made.items()}
    assert min(moves.values()) > 5 * TOLERANCE, moves
    record = {"name": "tiny-bleurt", "mistakes": moves, "ids": [row["input_ids"] for row in encoded]}
    return record | {"types": [row["token_type_ids"] for row in encoded], "scores": scores.tolist()}


def score(model: BleurtForSequenceClassification, row: dict, limit: int = LIMIT, types: int | None = None) -> float:
    ids = torch.tensor([row["input_ids"][:limit]])
    segments = torch.tensor([row["token_type_ids"][:limit]])
    segments = segments if types is None else torch.full_like(ids, types)
    with torch.no_grad():
        return float(model(ids, token_type_ids=segments, attention_mask=torch.ones_like(ids)).logits)


def pieces(folder: Path, name: str, options: dict) -> dict:
    path = folder / f"{name}.model"
    train(path, **options)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    sides = [side for pair in PAIRS for side in pair]
    return {"name": name, "ids": [processor.encode(side) for side in sides]}


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    logging.set_verbosity_error()
    make(Path(__file__).parent)
