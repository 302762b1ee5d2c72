"""Writes retrieval/: tiny random encoders and rerankers of the forms that retrieval takes, as published ones lie in their
folders, and what sentence-transformers and transformers make of QUERIES and DOCUMENTS by them.
"""

from pathlib import Path

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from encoders import bert, vocabulary, wordpiece
from files import write_records, write_tensors

QUERIES = ["first-line treatment of eclampsia", "", "croup", "K+ 5.9 mmol/L: what now? " * 6]
DOCUMENTS = [
    ["Croup", "The child has had a barking cough and stridor since last night; croup is likely."],
    ["", "Crushing chest pain for two hours in a man of 54 points to a myocardial infarction."],
    ["Hyperkalaemia", "Troponin I: 0.04 ng/mL, K+ 5.9 mmol/L, pH 7.21 -> start insulin/dextrose!"],
    ["A title that is longer than the text " * 6, "Short."],
    ["Ménière's disease", ""],
    ["Spleen", "the spleen is enlarged and the platelets are low " * 12],
]
TOLERANCE = 1e-5
# Tokens at which BERT's texts and pairs are cut.
LIMIT = 24


def make(folder: Path) -> None:
    committed, folder = folder / "encoders", folder / "retrieval"
    folder.mkdir(exist_ok=True)
    words = vocabulary()
    tensors = {
        **cut_vectors(committed / "tiny-mean"),
        **medcpt(words),
        **cross_encoder(folder / "tiny-cross", words),
    }
    header = {"tolerance": TOLERANCE, "limit": LIMIT, "queries": QUERIES}
    write_records(folder / "expected.json", header, "documents", [{"title": t, "text": x} for t, x in DOCUMENTS])
    write_tensors(folder / "expected.safetensors", tensors)
    print(f"retrieval: {len(tensors)}")


def titled(title: str, text: str) -> str:
    return f"TITLE: {title}\nTEXT: {text}"


def noise(model: torch.nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for name, weight in sorted(model.named_parameters()):
        drawn = torch.randn(weight.shape, generator=generator)
        if "norm" in name.lower() and name.endswith("weight"):
            weight.data = 1 + 0.3 * drawn
        elif name.endswith("bias"):
            weight.data = 0.3 * drawn
        elif "embed" in name:
            weight.data = drawn
        else:
            weight.data = drawn / weight.shape[1] ** 0.5 * 1.5


def cut_vectors(folder: Path) -> dict[str, torch.Tensor]:
    """The first 8 of 16 numbers, at length 1, of titled documents and of plain queries."""
    # Without modules.json it takes means, and cuts at the tokenizer's limit.
    encoder = SentenceTransformer(str(folder), device="cpu", truncate_dim=8)
    encoder.max_seq_length = LIMIT
    encode = lambda texts: encoder.encode(texts, convert_to_tensor=True, normalize_embeddings=True)
    return {
        "cut.documents": encode([titled(*document) for document in DOCUMENTS]),
        "cut.queries": encode(QUERIES),
    }


@torch.no_grad()
def medcpt(words: list[str]) -> dict[str, torch.Tensor]:
    """Articles by the weights of tiny-cls, as pairs; queries by those of tiny-mean, at most 12 tokens: first states as they are."""
    articles, queries = bert(len(words), seed=len("tiny-cls")), bert(len(words), seed=len("tiny-mean"))
    tokenizer = wordpiece(words)

    def first(model, texts: list, limit: int) -> torch.Tensor:
        tokenizer.enable_truncation(limit, strategy="longest_first")
        rows = []
        for text in texts:
            encoding = tokenizer.encode(*text) if isinstance(text, list) else tokenizer.encode(text)
            ids, types = torch.tensor([encoding.ids]), torch.tensor([encoding.type_ids])
            rows.append(model(ids, token_type_ids=types).last_hidden_state[0, 0])
        return torch.stack(rows)

    return {"medcpt.documents": first(articles, DOCUMENTS, LIMIT), "medcpt.queries": first(queries, QUERIES, 12)}


def cross_encoder(folder: Path, words: list[str]) -> dict[str, torch.Tensor]:
    """Logits of a classifier over pairs, as MedCPT's cross-encoder lies in its folder: no other file."""
    folder.mkdir(exist_ok=True)
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, num_labels=1,
    )  # fmt: skip
    model = BertForSequenceClassification(config).eval()
    noise(model, seed=3)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=wordpiece(words), pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        model_max_length=LIMIT,
    )  # fmt: skip
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    reranker = CrossEncoder(str(folder), device="cpu", max_length=LIMIT, activation_fn=torch.nn.Identity())
    pairs = [(query, titled(*document)) for query in QUERIES for document in DOCUMENTS]
    scores = reranker.predict(pairs, convert_to_tensor=True)
    wordpiece(words).save(str(folder / "tokenizer.json"))
    keep(folder, "tokenizer.json", "model.safetensors", "config.json")
    return {"cross": scores[:, None]}


def keep(folder: Path, *names: str) -> None:
    for path in folder.iterdir():
        if path.name not in names:
            path.unlink()
