"""Writes gguf/: what gguf-py makes of golden checkpoints and of blocks of random bytes.

Of each file its header, and the sum of the whole: the tests put the golden checkpoint's numbers behind the header, changed as llama.cpp's
converter changes them, and have gguf-py's file. Blocks of every type that is read, and the numbers that gguf-py reads in them.
"""

import hashlib
import json
import shutil
import tempfile
from pathlib import Path

import gguf
import numpy
import tokenizers
import torch
from gguf import GGMLQuantizationType as Type
from gguf import TokenType
from safetensors.torch import load_file

from files import write_records, write_tensors

NAMES = {
    "embed_tokens": "token_embd",
    "norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "post_attention_layernorm": "ffn_norm",
}
GEMMA_NAMES = NAMES | {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
TYPES = "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K".split()
LLAMA_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEXTS = [
    "the patient has pain",
    "pain  in the\n\nchest, 1984.",
    "caf\u00e9 cafe\u0301",
    "<|eot_id|><think>no</think> <end_of_turn><|im_end|>",
    "",
    " ",
    "\n\n\n\n",
    "   three   ",
    "he's",
]


def make(folder: Path) -> None:
    out = folder / "gguf"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    write_blocks(out / "blocks.safetensors")
    cases = [("llama3-scaled", write_llama), ("gemma3-text", write_gemma), ("qwen3", write_qwen)]
    write_records(
        out / "index.json", {"texts": TEXTS}, "cases", [write_case(folder / "models" / name, write, out) for name, write in cases]
    )


def write_blocks(path: Path) -> None:
    """Random bytes; scales are kept small, so that all numbers are finite."""
    random, tensors = numpy.random.default_rng(5), {}
    for name in TYPES:
        kind = Type[name]
        values, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = random.integers(0, 256, (max(3, 64 // values), size), numpy.uint8)
        for at in {"Q2_K": [81, 83], "Q3_K": [109], "Q6_K": [209], "F32": [3], "F16": [1], "BF16": [1]}.get(
            name, [1, 3] if name in ("Q4_1", "Q5_1", "Q4_K", "Q5_K") else [1]
        ):
            blocks[:, at] &= 0xBB
        numbers = blocks.view(numpy.float32) if name == "F32" else blocks.view(numpy.float16).astype(numpy.float32)
        if name not in ("F32", "F16"):
            numbers = gguf.dequantize(blocks, kind)
        assert numpy.isfinite(numbers).all(), name
        tensors[f"{int(kind)}.blocks"] = torch.from_numpy(blocks)
        tensors[f"{int(kind)}.numbers"] = torch.from_numpy(numpy.array(numbers, numpy.float32))
    write_tensors(path, tensors)


def write_case(source: Path, write, out: Path) -> dict:
    config = json.loads((source / "config.json").read_text())
    is_llama, is_gemma = config["model_type"] == "llama", config["model_type"].startswith("gemma3")
    arch = "gemma3" if is_gemma else config["model_type"]
    with tempfile.TemporaryDirectory() as work:
        file = Path(work, "whole.gguf")
        writer = gguf.GGUFWriter(file, arch)
        add_sizes(writer, config)
        tokenizer = write(writer, config)
        frequencies, order = numpy.array([], numpy.float32), []
        if is_llama:
            frequencies = llama3_factors(config["rope_theta"], config["head_dim"], config["rope_scaling"])
            writer.add_tensor("rope_freqs.weight", frequencies)
        for name, tensor in load_file(source / "model.safetensors").items():
            there, change = gguf_name(name, GEMMA_NAMES if is_gemma else NAMES), "none"
            values = tensor.float().numpy()
            if is_gemma and there.endswith("norm.weight"):
                values, change = values + 1, "one more"
            elif is_llama and (".attn_q." in there or ".attn_k." in there):
                values, change = permute(values, values.shape[0] // config["head_dim"]), "paired"
            if tensor.dtype == torch.bfloat16 and tensor.ndim > 1:
                writer.add_tensor(there, gguf.quantize(values, Type.BF16), raw_dtype=Type.BF16)
            else:
                writer.add_tensor(there, values)
            order.append([name, change])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        whole, start = file.read_bytes(), gguf.GGUFReader(file).data_offset
    (out / f"{source.name}.head").write_bytes(whole[:start])
    return {
        "name": source.name,
        "sha256": hashlib.sha256(whole).hexdigest(),
        "rope_freqs": frequencies.tolist(),
        "tensors": order,
        "ids": [tokenizer.encode(text).ids for text in TEXTS],
    }


def gguf_name(name: str, names: dict[str, str]) -> str:
    name = name.removeprefix("model.").removesuffix(".weight")
    if not name.startswith("layers."):
        return f"{names[name]}.weight"
    _, layer, part = name.split(".", 2)
    return f"blk.{layer}.{names[part]}.weight"


def permute(values: numpy.ndarray, heads: int) -> numpy.ndarray:
    """llama.cpp's converter: the rows of q and k as its rotary embedding pairs them."""
    return values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def add_sizes(writer: gguf.GGUFWriter, config: dict) -> None:
    writer.add_type("model")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(float(config["rope_theta"]))
    if "query_pre_attn_scalar" in config:
        writer.add_sliding_window(config["sliding_window"])
        writer.add_uint32("gemma3.attention.sliding_window_pattern", config["sliding_window_pattern"])
        writer.add_rope_freq_base_swa(float(config["rope_local_base_freq"]))


def write_llama(writer: gguf.GGUFWriter, config: dict) -> tokenizers.Tokenizer:
    writer.add_rope_dimension_count(config["head_dim"])
    words = list("abcdefghijklmnopqrstuvwxyz0123456789.,'") + ["\u0120", "\u010a", "\u00c3", "\u00a9"]
    merges = ["t h", "th e", "\u0120 the", "i n", "e n", "a t", "\u0120 p", "\u010a \u010a", "1 9", "\u0120 \u0120"]
    words += [merge.replace(" ", "") for merge in merges] + ["pain", "\u0120pain"]
    words += [f"spare{n}" for n in range(70 - len(words))]
    names = {70: "<|begin_of_text|>", 71: "<|end_of_text|>", 78: "<|eom_id|>", 79: "<|eot_id|>"}
    words += [names.get(id, f"<|reserved_special_token_{id}|>") for id in range(70, config["vocab_size"])]
    kinds = [TokenType.NORMAL] * 70 + [TokenType.CONTROL] * (len(words) - 70)
    add_tokens(writer, "gpt2", "llama-bpe", words, kinds, merges=merges)
    writer.add_bos_token_id(70)
    writer.add_eos_token_id(79)
    writer.add_chat_template("{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}<|eot_id|>{% endfor %}")
    writer.add_float32("general.sampling.temp", 0.6)
    writer.add_float32("general.sampling.top_p", 0.9)
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(LLAMA_PATTERN), "isolated")
    tokenizer = byte_level(words, kinds, merges, split, ignore_merges=True)
    tokenizer.post_processor = around("<|begin_of_text|>", 70)
    return tokenizer


def write_qwen(writer: gguf.GGUFWriter, config: dict) -> tokenizers.Tokenizer:
    words = list("abcdefghijklmnopqrstuvwxyz0123456789.,'<>/|") + ["\u0120", "\u010a", "\u00c3", "\u00a9", "\u00cc", "\u0123"]
    merges = ["t h", "th e", "\u0120 the", "i n", "p a", "pa in", "\u00c3 \u00a9", "\u010a \u010a", "1 9", "\u0120 \u0120", "' s"]
    words += [merge.replace(" ", "") for merge in merges]
    words += [f"spare{n}" for n in range(85 - len(words))] + [f"[PAD{id}]" for id in range(85, 91)]
    words += ["<think>", "</think>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    kinds = [TokenType.NORMAL] * 85 + [TokenType.UNUSED] * 6 + [TokenType.USER_DEFINED] * 2 + [TokenType.CONTROL] * 3
    assert len(words) == config["vocab_size"]
    add_tokens(writer, "gpt2", "qwen2", words, kinds, merges=merges)
    writer.add_bos_token_id(93)
    writer.add_eos_token_id(95)
    writer.add_pad_token_id(93)
    writer.add_add_bos_token(False)
    writer.add_chat_template("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}")
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(LLAMA_PATTERN.replace("{1,3}", "")), "isolated")
    tokenizer = byte_level(words, kinds, merges, split)
    tokenizer.normalizer = tokenizers.normalizers.NFC()
    return tokenizer


def write_gemma(writer: gguf.GGUFWriter, config: dict) -> tokenizers.Tokenizer:
    """Pieces as gemma3's, down to what the converter does to those that users define."""
    words, scores = ["<pad>", "<eos>", "<bos>", "<unk>", "\n", "\n\n", "\u2581\u2581", "<think>"], [0.0] * 8
    kinds = [TokenType.CONTROL] * 4 + [TokenType.USER_DEFINED] * 4
    for byte in (0x0A, 0x43, 0x59, 0xC3, 0xA9, 0xCC, 0x81, 0x3C):
        words, scores, kinds = words + [f"<0x{byte:02X}>"], scores + [0.0], kinds + [TokenType.BYTE]
    merged = ["\u2581t", "in", "the", "th", "\u2581the", "\u2581p", "pain", "\u2581pain", "ai", "ain", "a\u2581", "he", "\u2581\u2581\u2581"]
    for word in merged + list("\u2581abcdefghijklmnopqrstuvwxyz0123456789.,'|_"):
        words, scores, kinds = words + [word], scores + [float(16 - len(words))], kinds + [TokenType.NORMAL]
    while len(words) < config["vocab_size"]:
        name = {105: "<start_of_turn>", 106: "<end_of_turn>"}.get(len(words), f"<unused{len(words)}>")
        words, scores, kinds = words + [name], scores + [0.0], kinds + [TokenType.CONTROL]
    added = [kind in (TokenType.CONTROL, TokenType.USER_DEFINED) for kind in kinds]
    written = [word.replace("\u2581", " ") if kind == TokenType.USER_DEFINED else word for word, kind in zip(words, kinds)]
    add_tokens(writer, "llama", "default", written, kinds, scores=[-1000.0 if a else s for a, s in zip(added, scores)])
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(3)
    writer.add_pad_token_id(0)
    writer.add_add_space_prefix(False)
    writer.add_eot_token_id(106)
    vocabulary, merges = {word: id for id, word in enumerate(words)}, []
    for id, word in enumerate(words):
        parts = [(vocabulary.get(word[:at]), vocabulary.get(word[at:])) for at in range(1, len(word))]
        merges += [(-scores[id], id, *pair) for pair in parts if None not in pair and kinds[id] != TokenType.BYTE]
    merges = [(words[left], words[right]) for _, _, left, right in sorted(merges)]
    model = tokenizers.models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.post_processor = around("<bos>", 2)
    add_words(tokenizer, words, kinds)
    return tokenizer


def add_tokens(writer: gguf.GGUFWriter, model: str, pre: str, words: list, kinds: list, merges=None, scores=None) -> None:
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(words)
    writer.add_token_types(kinds)
    if merges:
        writer.add_token_merges(merges)
    if scores:
        writer.add_token_scores(scores)


def byte_level(words: list, kinds: list, merges: list, split, ignore_merges: bool = False) -> tokenizers.Tokenizer:
    vocabulary = {word: id for id, word in enumerate(words) if kinds[id] != TokenType.UNUSED}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, pairs, ignore_merges=ignore_merges))
    level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([split, level])
    add_words(tokenizer, words, kinds)
    return tokenizer


def add_words(tokenizer: tokenizers.Tokenizer, words: list, kinds: list) -> None:
    for word, kind in zip(words, kinds):
        token = tokenizers.AddedToken(word, normalized=False, special=kind == TokenType.CONTROL)
        if kind in (TokenType.CONTROL, TokenType.USER_DEFINED):
            (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])


def around(word: str, id: int):
    return tokenizers.processors.TemplateProcessing(single=f"{word} $A", special_tokens=[(word, id)])


def llama3_factors(theta: float, head_dim: int, scaling: dict) -> numpy.ndarray:
    """As llama.cpp's converter computes them."""
    frequencies = 1.0 / (theta ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim))
    factor, positions = scaling["factor"], scaling["original_max_position_embeddings"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    factors = []
    for frequency in frequencies:
        length = 2 * torch.pi / frequency
        if length < positions / high:
            factors.append(1)
        elif length > positions / low:
            factors.append(factor)
        else:
            smooth = (positions / length - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return numpy.array(factors, numpy.float32)


if __name__ == "__main__":
    make(Path(__file__).parent)
