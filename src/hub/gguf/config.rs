//! `config.json` and `generation_config.json`, from the metadata.

use serde_json::{Value, json};

use super::metadata::shown;
use super::{Gguf, GgufError, rope};
use crate::console;
use crate::model::{Config, Family};

/// What the converter writes below the architecture's name; any other key may change what is computed, and is refused.
const KNOWN: &str = "block_count context_length embedding_length feed_forward_length vocab_size attention.head_count \
    attention.head_count_kv attention.key_length attention.value_length attention.layer_norm_rms_epsilon rope.freq_base \
    rope.dimension_count rope.scaling.type rope.scaling.factor rope.scaling.original_context_length rope.scaling.finetuned";
const OF_GEMMA: &str =
    "attention.sliding_window attention.sliding_window_pattern rope.freq_base_swa";

/// Control tokens with which the families' models end a turn or a text, whatever the metadata name: llama.cpp stops at most of them too.
const ENDS: [&str; 7] = [
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<end_of_turn>",
    "<eos>",
];

/// The family of a file that can be imported.
pub fn family(gguf: &Gguf) -> Result<Family, GgufError> {
    let key = "general.architecture";
    let arch = gguf.need(key, gguf.text(key))?;
    let family = Family::ALL.into_iter().find(|family| family.name() == arch);
    let kind = gguf.text("general.type")?.unwrap_or("model");
    match family {
        Some(family) if kind == "model" => Ok(family),
        Some(_) => Err(gguf.refused(
            format!("it is no whole model (`general.type` is {})", shown(kind)),
            "import the model that it belongs to",
        )),
        None => Err(gguf.refused(
            format!("its architecture is {}, which wardround cannot run", shown(arch)),
            format!("known: {}", Family::ALL.map(Family::name).join(", ")),
        )),
    }
}

/// `config.json`, and what it describes.
pub fn config(gguf: &Gguf, family: Family) -> Result<(Value, Config), GgufError> {
    let arch = family.name();
    let key = |name: &str| format!("{arch}.{name}");
    refuse_unknown(gguf, family, &key(""))?;
    let size = |name: &str| gguf.integer(&key(name));
    let need = |name: &str| gguf.need(&key(name), size(name));
    let (hidden, heads, layers) =
        (need("embedding_length")?, need("attention.head_count")?, need("block_count")?);
    let head_dim = size("attention.key_length")?.or(hidden.checked_div(heads)).unwrap_or(0);
    for name in ["attention.value_length", "rope.dimension_count"] {
        if let Some(other) = size(name)?.filter(|other| *other != head_dim) {
            return Err(gguf.refused(
                format!("`{}` is {other}, and heads have {head_dim} numbers", key(name)),
                "wardround runs models whose heads are alike and turned whole",
            ));
        }
    }
    // What llama.cpp takes for a Llama without one, of before 2024.
    let theta = gguf.float(&key("rope.freq_base"))?.or((family == Family::Llama).then_some(1e4));
    let theta = gguf.need(&key("rope.freq_base"), Ok(theta))?;
    let epsilon = "attention.layer_norm_rms_epsilon";
    let mut config = json!({
        "hidden_size": hidden, "num_attention_heads": heads, "num_hidden_layers": layers, "head_dim": head_dim,
        "num_key_value_heads": size("attention.head_count_kv")?.unwrap_or(heads),
        "intermediate_size": need("feed_forward_length")?,
        "max_position_embeddings": need("context_length")?,
        "rms_norm_eps": gguf.need(&key(epsilon), gguf.float(&key(epsilon)))?,
        "rope_theta": theta,
        "rope_scaling": rope::scaling(gguf, arch, theta, usize::try_from(head_dim).unwrap_or(0))?,
        "vocab_size": gguf.tensor("token_embd.weight")?.shape.first(),
        "tie_word_embeddings": !gguf.tensors.contains_key("output.weight"),
        "attention_bias": false,
    });
    let own = match family {
        Family::Llama => json!({
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "mlp_bias": false,
        }),
        Family::Qwen3 => json!({
            "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_act": "silu",
            "use_sliding_window": false,
        }),
        Family::Gemma3 => json!({
            "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text",
            "hidden_activation": "gelu_pytorch_tanh",
            // The format does not say it: llama.cpp knows the 27B by its layers, too.
            "query_pre_attn_scalar": if layers == 62 { hidden.checked_div(heads) } else { Some(head_dim) },
            "sliding_window": need("attention.sliding_window")?,
            "sliding_window_pattern": size("attention.sliding_window_pattern")?.unwrap_or(6),
            "rope_local_base_freq": gguf.float(&key("rope.freq_base_swa"))?.unwrap_or(1e4),
        }),
    };
    add(&mut config, own);
    add(&mut config, ids(gguf)?);
    let described = Config::from_json(config.clone(), &gguf.path)?;
    Ok((config, described))
}

/// `generation_config.json`: what ends turns, and how the makers draw where the file says so.
pub fn generation(gguf: &Gguf) -> Result<Value, GgufError> {
    const SAMPLING: &str = "general.sampling.";
    let key = |name: &str| format!("{SAMPLING}{name}");
    let mut generation = ids(gguf)?;
    let mut ends = Vec::new();
    for name in ["eos", "eot", "eom"] {
        ends.extend(gguf.integer(&format!("tokenizer.ggml.{name}_token_id"))?);
    }
    let tokens = gguf.texts("tokenizer.ggml.tokens")?.unwrap_or_default();
    let types = gguf.numbers("tokenizer.ggml.token_type")?.unwrap_or_default();
    for (id, (token, kind)) in (0..).zip(tokens.iter().zip(types)) {
        let is_end = *kind == super::tokenizer::CONTROL && ENDS.contains(&token.as_str());
        if is_end && !ends.contains(&id) {
            ends.push(id);
        }
    }
    if ends.is_empty() {
        return Err(gguf.refused(
            "it names no token that ends a text (`tokenizer.ggml.eos_token_id`)".to_owned(),
            "take the model's safetensors, or a file of llama.cpp's converter",
        ));
    }
    add(&mut generation, json!({"eos_token_id": ends}));
    let draws = [("temp", "temperature"), ("top_p", "top_p"), ("min_p", "min_p")];
    let draws = draws.into_iter().chain([("penalty_repeat", "repetition_penalty")]);
    for key in gguf.metadata.keys().filter_map(|key| key.strip_prefix(SAMPLING)) {
        if key != "top_k" && draws.clone().all(|(name, _)| name != key) {
            console::note(format!(
                "note: the file's `{SAMPLING}{}` has no counterpart here and is left out",
                shown(key)
            ));
        }
    }
    for (name, own) in draws {
        if let Some(value) = gguf.float(&key(name))? {
            add(&mut generation, json!({own: value, "do_sample": true}));
        }
    }
    if let Some(count) = gguf.integer(&key("top_k"))? {
        add(&mut generation, json!({"top_k": count, "do_sample": true}));
    }
    Ok(generation)
}

/// The ids of the tokens that begin, end and fill texts, as far as the file names them.
fn ids(gguf: &Gguf) -> Result<Value, GgufError> {
    let mut ids = json!({});
    for (name, own) in [("bos", "bos"), ("eos", "eos"), ("padding", "pad")] {
        if let Some(id) = gguf.integer(&format!("tokenizer.ggml.{name}_token_id"))? {
            add(&mut ids, json!({format!("{own}_token_id"): id}));
        }
    }
    Ok(ids)
}

fn add(fields: &mut Value, more: Value) {
    if let (Value::Object(fields), Value::Object(more)) = (fields, more) {
        fields.extend(more);
    }
}

fn refuse_unknown(gguf: &Gguf, family: Family, prefix: &str) -> Result<(), GgufError> {
    let own = if family == Family::Gemma3 { OF_GEMMA } else { "" };
    let is_known = |key: &&str| KNOWN.split(' ').chain(own.split(' ')).any(|known| known == *key);
    let mut keys = gguf.metadata.keys().filter_map(|key| key.strip_prefix(prefix));
    match keys.find(|key| !is_known(key)) {
        None => Ok(()),
        Some(key) => Err(gguf.refused(
            format!("`{prefix}{}` is not known here, and may change what is computed", shown(key)),
            "take the model's safetensors, or a file of llama.cpp's converter",
        )),
    }
}
