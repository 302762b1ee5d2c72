"""Writes retrieval/: tiny random encoders and rerankers of the forms that retrieval takes, as published ones lie in their
folders, and what sentence-transformers and transformers make of QUERIES and DOCUMENTS by them.
"""

import shutil
from pathlib import Path

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Gemma3TextConfig,
    Gemma3TextModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3Model,
)

from encoders import TEXTS, bert, vocabulary, wordpiece
from files import write_json, write_records, write_tensors

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
END, BOS, EOS = "<|endoftext|>", "<bos>", "<eos>"
PREFIX = "<|im_start|>system\nAnswer yes or no.<|im_end|>\n<|im_start|>user\n"
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n"


def make(folder: Path) -> None:
    committed, folder = folder / "encoders", folder / "retrieval"
    folder.mkdir(exist_ok=True)
    words = vocabulary()
    tensors = {
        **cut_vectors(committed / "tiny-mean"),
        **medcpt(words),
        **cross_encoder(folder / "tiny-cross", words),
        **qwen3(folder),
        **gemma(folder / "tiny-gemma"),
    }
    header = {"tolerance": TOLERANCE, "limit": LIMIT, "queries": QUERIES, "prefix": PREFIX, "suffix": SUFFIX}
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
            # Gemma stores w - 1.
            weight.data = (0 if "Gemma" in type(model).__name__ else 1) + 0.3 * drawn
        elif name.endswith("bias"):
            weight.data = 0.3 * drawn
        elif "embed" in name:
            weight.data = drawn
        else:
            weight.data = drawn / weight.shape[1] ** 0.5 * 1.5


def cut_vectors(folder: Path) -> dict[str, torch.Tensor]:
    """The first 8 of 16 numbers, at length 1, of titled documents and of plain queries."""
    encoder = SentenceTransformer(str(folder), device="cpu", truncate_dim=8)
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
    """Logits of a classifier over pairs, as MedCPT's cross-encoder lies in its folder: without modules.json."""
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


def byte_pairs(specials: list[str]) -> Tokenizer:
    """A small byte-level tokenizer in which `yes` and `no` are tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=340, initial_alphabet=alphabet, special_tokens=specials, show_progress=False)
    tokenizer.train_from_iterator(TEXTS + ["yes no"] * 50, trainer)
    return tokenizer


def closing(tokenizer: Tokenizer, template: str) -> Tokenizer:
    special = [(name, tokenizer.token_to_id(name)) for name in template.split() if name != "$A"]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=special)
    return tokenizer


@torch.no_grad()
def qwen3(folder: Path) -> dict[str, torch.Tensor]:
    """The last state after the final norm, at length 1; and of a language model, `yes` against `no`."""
    specials = [END, "<|im_start|>", "<|im_end|>"]
    tokenizer = closing(byte_pairs(specials), f"$A {END}")
    config = Qwen3Config(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=16, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, max_position_embeddings=512, tie_word_embeddings=True,
        attn_implementation="eager",
    )  # fmt: skip
    model = Qwen3Model(config).eval()
    noise(model, seed=5)
    (folder / "tiny-qwen3").mkdir(exist_ok=True)
    model.save_pretrained(folder / "tiny-qwen3")
    tokenizer.save(str(folder / "tiny-qwen3" / "tokenizer.json"))
    keep(folder / "tiny-qwen3", "config.json", "model.safetensors", "tokenizer.json")

    def last(texts: list[str]) -> torch.Tensor:
        ids = [tokenizer.encode(text).ids for text in texts]
        assert all(row[-1] == tokenizer.token_to_id(END) for row in ids)
        alone = torch.stack([model(torch.tensor([row])).last_hidden_state[0, -1] for row in ids])
        longest = max(map(len, ids))
        for side in ["left", "right"]:
            # Padding on either side moves rounding alone.
            pad = [[0] * (longest - len(row)) for row in ids]
            mask = [[1] * len(row) for row in ids]
            join = (lambda a, b: a + b) if side == "left" else (lambda a, b: b + a)
            tokens = torch.tensor([join(p, row) for p, row in zip(pad, ids)])
            seen = torch.tensor([join(p, row) for p, row in zip(pad, mask)])
            at = torch.tensor([longest - 1 if side == "left" else len(row) - 1 for row in ids])
            places = (seen.cumsum(1) - 1).clamp(min=0)
            padded = model(tokens, attention_mask=seen, position_ids=places).last_hidden_state[torch.arange(len(ids)), at]
            assert float((padded - alone).abs().max()) < 1e-4
        return torch.nn.functional.normalize(alone, dim=1)

    instruct = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
    tensors = {
        "qwen3.queries": last([instruct + query for query in QUERIES]),
        "qwen3.documents": last([text for _, text in DOCUMENTS]),
    }

    language = Qwen3ForCausalLM(config).eval()
    noise(language, seed=6)
    language.tie_weights()
    target = folder / "tiny-qwen3-reranker"
    target.mkdir(exist_ok=True)
    language.save_pretrained(target)
    tokenizer = byte_pairs(specials)
    tokenizer.save(str(target / "tokenizer.json"))
    keep(target, "config.json", "model.safetensors", "tokenizer.json")
    scores = []
    for query in QUERIES:
        for title, text in DOCUMENTS:
            document = f"{title}\n{text}" if title else text
            body = f"<Instruct>: Judge.\n<Query>: {query}\n<Document>: {document}"
            before, inner, after = (tokenizer.encode(part).ids for part in (PREFIX, body, SUFFIX))
            ids = before + inner[: 200 - len(before) - len(after)] + after
            logits = language(torch.tensor([ids])).logits[0, -1]
            both = torch.stack([logits[tokenizer.token_to_id("no")], logits[tokenizer.token_to_id("yes")]])
            scores.append(torch.nn.functional.softmax(both, dim=0)[1])
    tensors["qwen3-reranker"] = torch.stack(scores)[:, None]
    return tensors


def gemma(folder: Path) -> dict[str, torch.Tensor]:
    """A Gemma 3 that reads both ways, windows shorter than the texts, the mean of all tokens, two linear layers, length 1."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tokenizer = closing(byte_pairs(["<pad>", EOS, BOS]), f"{BOS} $A {EOS}")
    config = Gemma3TextConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=16, intermediate_size=24, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=1, head_dim=8, query_pre_attn_scalar=8, max_position_embeddings=512,
        sliding_window=8, layer_types=["sliding_attention", "sliding_attention", "full_attention"],
        use_bidirectional_attention=True, attn_implementation="eager",
    )  # fmt: skip
    model = Gemma3TextModel(config).eval()
    noise(model, seed=7)
    # As trained: the scale is rounded to the type of the weights, which is f32 here.
    inner = folder / "inner"
    model.save_pretrained(inner)
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token=EOS, bos_token=BOS)
    wrapped.save_pretrained(inner)
    up, down = Dense(16, 40, bias=False, activation_function=torch.nn.Identity()), Dense(
        40, 16, bias=False, activation_function=torch.nn.Identity()
    )
    noise(up, seed=8)
    noise(down, seed=9)
    prompts = {"query": "task: search result | query: ", "document": "title: none | text: "}
    transformer = Transformer(str(inner), max_seq_length=128, model_kwargs={"attn_implementation": "eager"})
    encoder = SentenceTransformer(
        modules=[transformer, Pooling(16, pooling_mode="mean"), up, down, Normalize()], prompts=prompts, device="cpu"
    )
    encoder.save(str(folder))
    shutil.rmtree(inner)
    encoder = SentenceTransformer(str(folder), device="cpu", model_kwargs={"attn_implementation": "eager"})
    tokenizer.save(str(folder / "tokenizer.json"))
    # Each alone: no padding.
    encode = lambda texts, prompt: torch.stack(
        [encoder.encode(text, prompt_name=prompt, convert_to_tensor=True) for text in texts]
    )
    tensors = {
        "gemma.queries": encode(QUERIES, "query"),
        "gemma.documents": encode([text for _, text in DOCUMENTS], "document"),
    }
    for name in ["README.md", "special_tokens_map.json"]:
        (folder / name).unlink(missing_ok=True)
    return tensors
