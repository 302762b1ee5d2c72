//! `config.json`, `generation_config.json`, `tokenizer.json` and `tokenizer_config.json`, from the metadata.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Gguf;
use crate::diagnosis::Failure;
use crate::model::config::{Config, RopeConfig, RopeScaling};

/// What the converter writes below the architecture's name, and what config.json calls it; the last three are Gemma's alone. Any other key may
/// change what is computed, and is refused.
const KEYS: [(&str, &str); 17] = [
    ("block_count", "num_hidden_layers"),
    ("context_length", "max_position_embeddings"),
    ("embedding_length", "hidden_size"),
    ("feed_forward_length", "intermediate_size"),
    ("vocab_size", "vocab_size"),
    ("attention.head_count", "num_attention_heads"),
    ("attention.head_count_kv", "num_key_value_heads"),
    ("attention.key_length", "head_dim"),
    ("attention.value_length", "head_dim"),
    ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    ("rope.dimension_count", "head_dim"),
    ("rope.freq_base", "rope_theta"),
    ("rope.scaling.type", "rope_type"),
    ("rope.scaling.factor", "factor"),
    ("attention.sliding_window", "sliding_window"),
    ("attention.sliding_window_pattern", "sliding_window_pattern"),
    ("rope.freq_base_swa", "rope_local_base_freq"),
];

/// Control tokens with which the families' models end a turn or a text, whatever the metadata name: llama.cpp stops at most of them too.
const ENDS: &str =
    "<|eot_id|> <|eom_id|> <|end_of_text|> <|im_end|> <|endoftext|> <end_of_turn> <eos>";

/// The tensor that divides the frequencies of a Llama 3.1.
pub const FREQUENCIES: &str = "rope_freqs.weight";

/// `config.json`, and what it describes.
pub fn config(gguf: &Gguf) -> Result<(Value, Config), Failure> {
    let arch = gguf.json("general.architecture");
    // Whose tensors the converter changes as `as_trained` undoes it.
    let (arch, model_type) = match arch.as_str() {
        Some("gemma3") => ("gemma3", "gemma3_text"),
        Some(arch @ ("llama" | "qwen3")) => (arch, arch),
        _ => return Err(gguf.unknown("general.architecture", "gemma3, llama, qwen3")),
    };
    let (is_gemma, prefix) = (arch == "gemma3", format!("{arch}."));
    let tensors = &gguf.content.tensor_infos;
    let table = tensors.get("token_embd.weight").and_then(|table| table.shape.dims().first());
    let mut config = json!({
        "model_type": model_type,
        "tie_word_embeddings": !tensors.contains_key("output.weight"),
    });
    for (key, value) in &gguf.content.metadata {
        let Some(own) = key.strip_prefix(&prefix) else { continue };
        let known = if is_gemma { KEYS.len() } else { KEYS.len() - 3 };
        let Some((_, name)) = KEYS[..known].iter().find(|(there, _)| *there == own) else {
            return Err(gguf.refused(format!("`{key}` is not known here")));
        };
        let (value, other) = (super::as_json(value), &config[*name]);
        if !other.is_null() && *other != value {
            return Err(gguf.refused(format!("`{key}` is {value}, and `{name}` is {other}")));
        }
        config[*name] = value;
    }
    config["vocab_size"] = json!(table);
    if is_gemma {
        // The format does not say it: llama.cpp knows the 27B by its layers, too.
        let is_27b = config["num_hidden_layers"] == 62;
        config["query_pre_attn_scalar"] =
            if is_27b { json!(168) } else { config["head_dim"].clone() };
    }
    let kind = prefix + "rope.scaling.type";
    // llama.cpp takes a factor alone for a linear one.
    let usual = if config["factor"].is_null() { "none" } else { "linear" };
    match gguf.read::<Option<String>>(&kind)?.as_deref().unwrap_or(usual) {
        "none" if tensors.contains_key(FREQUENCIES) => {
            let plain = Config::from_json(config.clone(), &gguf.path)?;
            config["rope_scaling"] = llama3(gguf, &plain)?;
        }
        "none" => {}
        "linear" => {
            config["rope_scaling"] = json!({"rope_type": "linear", "factor": config["factor"]});
        }
        // The format says too little of others to compute what transformers does.
        _ => return Err(gguf.unknown(&kind, "none, linear")),
    }
    Ok((config.clone(), Config::from_json(config, &gguf.path)?))
}

/// What Llama 3.1, 3.2 and 3.3 have; the file says neither the bounds of waves nor, but by its divisors, the positions of the training.
fn llama3(gguf: &Gguf, config: &Config) -> Result<Value, Failure> {
    let unknown = || gguf.refused(format!("`{FREQUENCIES}` are not the divisors of a Llama 3.1"));
    // Wider heads are nobody's.
    let (head_dim, theta) = (config.head_dim.min(1 << 10), config.full_rope.theta);
    gguf.expect(FREQUENCIES, &[head_dim / 2])?;
    let divisors = gguf.numbers(FREQUENCIES)?.to_vec1::<f32>().map_err(|_| unknown())?;
    let factor = f64::from(divisors.iter().copied().fold(1.0, f32::max));
    let rope = |scaling| RopeConfig { theta, scaling }.inverse_frequencies(head_dim);
    let plain = rope(RopeScaling::None);
    let fits = |positions: &u32| {
        let (low_frequency, high_frequency, original_positions) = (1.0, 4.0, f64::from(*positions));
        let stretched =
            rope(RopeScaling::Llama3 { factor, low_frequency, high_frequency, original_positions });
        let mut all = plain.iter().zip(stretched).zip(&divisors);
        all.all(|((plain, stretched), found)| (found * stretched / plain - 1.0).abs() < 1e-4)
    };
    let positions = std::iter::once(8192).chain(1..1 << 15).find(fits).ok_or_else(unknown)?;
    Ok(json!({
        "rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": positions,
    }))
}

/// `generation_config.json`: what ends turns.
pub fn generation(gguf: &Gguf, tokens: &Tokens<'_>) -> Result<Value, Failure> {
    let named = ["eos", "eot", "eom"].into_iter().filter_map(|name| Some(tokens.named(name)?.0));
    let is_end = |word: &str| ENDS.split(' ').any(|end| end == word);
    let more = tokens.used().filter(|(_, word, kind)| *kind == CONTROL && is_end(word));
    let ends: BTreeSet<usize> = named.chain(more.map(|(id, ..)| id)).collect();
    if ends.is_empty() {
        return Err(gguf.refused("it names no token that ends a text"));
    }
    Ok(json!({"do_sample": false, "eos_token_id": ends}))
}

/// Types of tokens.
const UNKNOWN: u8 = 2;
const CONTROL: u8 = 3;
const USER_DEFINED: u8 = 4;
const UNUSED: u8 = 5;
const BYTE: u8 = 6;

/// What the metadata say of tokens.
pub struct Tokens<'a> {
    gguf: &'a Gguf,
    /// By id.
    words: Vec<String>,
    types: Vec<u8>,
}

impl<'a> Tokens<'a> {
    pub fn of(gguf: &'a Gguf) -> Result<Self, Failure> {
        let mut words: Vec<String> = gguf.read("tokenizer.ggml.tokens")?;
        let types: Vec<u8> = gguf.read("tokenizer.ggml.token_type")?;
        if types.len() != words.len() {
            return Err(gguf.refused("not each of its tokens has a type"));
        }
        if gguf.json("tokenizer.ggml.model") == "llama" {
            // The converter wrote words of the users' own as they are read.
            let own = words.iter_mut().zip(&types).filter(|(_, kind)| **kind == USER_DEFINED);
            own.for_each(|(word, _)| *word = word.replace(' ', "▁"));
        }
        Ok(Tokens { gguf, words, types })
    }

    /// Id, word and type of each token that texts can have.
    fn used(&self) -> impl Iterator<Item = (usize, &str, u8)> {
        let all = self.words.iter().map(String::as_str).zip(&self.types).enumerate();
        all.map(|(id, (word, kind))| (id, word, *kind)).filter(|(.., kind)| *kind != UNUSED)
    }

    /// The id of a token that has a part, as the one that begins texts, and its word.
    fn named(&self, name: &str) -> Option<(usize, &str)> {
        let id = self.gguf.json(&format!("tokenizer.ggml.{name}_token_id")).as_u64()? as usize;
        Some((id, self.words.get(id)?))
    }

    /// Which token is put before a text that is a whole one.
    fn post_processor(&self, adds_bos: bool) -> Value {
        let wants = self.gguf.json("tokenizer.ggml.add_bos_token").as_bool().unwrap_or(adds_bos);
        let Some((id, word)) = self.named("bos").filter(|_| wants) else { return Value::Null };
        let text = |name, of| json!({"Sequence": {"id": name, "type_id": of}});
        let bos = json!({"SpecialToken": {"id": word, "type_id": 0}});
        json!({
            "type": "TemplateProcessing", "single": [bos, text("A", 0)], "pair": [bos, text("A", 0), text("B", 1)],
            "special_tokens": {word: {"id": word, "ids": [id], "tokens": [word]}},
        })
    }

    /// `tokenizer.json`.
    pub fn tokenizer(&self) -> Result<Value, Failure> {
        let ids: BTreeMap<_, _> = self.used().map(|(id, word, _)| (word, id)).collect();
        if ids.len() != self.used().count() {
            return Err(self.gguf.refused("two of its tokens are one word"));
        }
        let mut whole = match self.gguf.json("tokenizer.ggml.model").as_str() {
            Some("gpt2") => self.byte_level()?,
            Some("llama") => self.pieces(&ids)?,
            _ => return Err(self.gguf.unknown("tokenizer.ggml.model", "gpt2, llama")),
        };
        let is_added = |kind| [UNKNOWN, CONTROL, USER_DEFINED].contains(&kind);
        let added = self.used().filter(|(.., kind)| is_added(*kind)).map(|(id, word, kind)| {
            json!({
                "id": id, "content": word, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
                "special": kind != USER_DEFINED,
            })
        });
        whole["added_tokens"] = added.collect();
        whole["model"]["vocab"] = json!(ids);
        Ok(whole)
    }

    /// Texts are cut as the families' tokenizers are published.
    fn byte_level(&self) -> Result<Value, Failure> {
        let split = |digits: &str| {
            let pattern = format!(
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            );
            json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false})
        };
        let pre = self.gguf.json("tokenizer.ggml.pre");
        let (first, normalizer) = match pre.as_str() {
            Some("llama-bpe") => (split(r"\p{N}{1,3}"), Value::Null),
            Some("qwen2") => (split(r"\p{N}"), json!({"type": "NFC"})),
            Some("smollm") => (json!({"type": "Digits", "individual_digits": true}), Value::Null),
            _ => return Err(self.gguf.unknown("tokenizer.ggml.pre", "llama-bpe, qwen2, smollm")),
        };
        let merges: Vec<String> = self.gguf.read("tokenizer.ggml.merges")?;
        let level = |own| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": own});
        Ok(json!({
            "normalizer": normalizer,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [first, level(pre == "smollm")]},
            "post_processor": self.post_processor(pre == "llama-bpe"),
            "decoder": level(true),
            "model": {"type": "BPE", "merges": merges, "ignore_merges": pre == "llama-bpe"},
        }))
    }

    fn pieces(&self, ids: &BTreeMap<&str, usize>) -> Result<Value, Failure> {
        let scores: Vec<f64> = self.gguf.read("tokenizer.ggml.scores")?;
        let mut merges = Vec::new();
        for (id, word, kind) in self.used().filter(|(.., kind)| *kind != BYTE) {
            // SentencePiece gives words of the users' own none, and the converter a bad one.
            let score = scores.get(id).filter(|_| kind != USER_DEFINED).copied().unwrap_or(0.0);
            // Four times what the longest of published words have.
            for (at, _) in word.char_indices().skip(1).take(1 << 10) {
                let (left, right) = word.split_at(at);
                if let (Some(first), Some(second)) = (ids.get(left), ids.get(right)) {
                    merges.push((0.0 - score, (id, *first, *second), (left, right)));
                }
            }
        }
        // As transformers has them: the best first, then by ids.
        merges.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let merges: Vec<_> = merges.into_iter().map(|(.., pair)| pair).collect();
        let replace = |from: &str, to: &str| json!({"type": "Replace", "pattern": {"String": from}, "content": to});
        let mut normalizers = vec![replace(" ", "▁")];
        let mut decoders =
            vec![replace("▁", " "), json!({"type": "ByteFallback"}), json!({"type": "Fuse"})];
        if self.gguf.json("tokenizer.ggml.add_space_prefix") != json!(false) {
            normalizers.insert(0, json!({"type": "Prepend", "prepend": "▁"}));
            decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
        }
        let unknown = self.named("unknown").map(|(_, word)| word);
        Ok(json!({
            "normalizer": {"type": "Sequence", "normalizers": normalizers},
            "post_processor": self.post_processor(true),
            "decoder": {"type": "Sequence", "decoders": decoders},
            "model": {"type": "BPE", "merges": merges, "unk_token": unknown, "fuse_unk": true, "byte_fallback": self.types.contains(&BYTE)},
        }))
    }

    /// `tokenizer_config.json`: the tokens that templates know by name, and the template.
    pub fn config(&self) -> Value {
        let word = |name| self.named(name).map(|(_, word)| word);
        json!({
            "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false,
            "bos_token": word("bos"), "eos_token": word("eos"), "unk_token": word("unknown"), "pad_token": word("padding"),
            "chat_template": self.gguf.json("tokenizer.chat_template"),
        })
    }
}
