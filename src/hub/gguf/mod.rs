//! GGUF files, as llama.cpp keeps models in them: made into a directory of Hugging Face's layout, which is loaded like any other.
//!
//! candle reads metadata, places and blocks of numbers; `described` makes the JSON files of the directory of them, and here the weights are
//! written. What llama.cpp's converter has changed is undone: the order of rows of Llama's queries and keys, the 1 that Gemma's norms got. What the format
//! does not say, or this program cannot run, is refused by name.

mod described;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::{DType, Device, Result as ReadResult, Tensor, safetensors};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use self::described::{FREQUENCIES, Tokens};
use super::{Checkpoint, Provenance, provenance, sha256_file};
use crate::chat::{ChatError, ChatTemplate};
use crate::checkpoint::{
    CONFIG, GENERATION_CONFIG, INDEX, TOKENIZER, TOKENIZER_CONFIG, write_whole,
};
use crate::diagnosis::Failure;
use crate::model::config::RopeScaling;
use crate::model::{Config, Family};
use crate::outside;
use crate::tokenizer::Tokenizer;

/// Makes a model's directory, new or empty, of a GGUF file: the numbers as in the file, quantised ones exactly, in f32.
///
/// # Errors
/// What cannot be read or run here, by its name; nothing is left behind then.
pub fn import(file: &Path, directory: &Path) -> Result<(), Failure> {
    let gguf = Gguf::open(file)?;
    write_whole(directory, |building| {
        let (written, config) = described::config(&gguf)?;
        let tokens = Tokens::of(&gguf)?;
        let files = [
            (CONFIG, written),
            (GENERATION_CONFIG, described::generation(&gguf, &tokens)?),
            (TOKENIZER, tokens.tokenizer()?),
            (TOKENIZER_CONFIG, tokens.config()),
        ];
        for (name, value) in files {
            outside::write_public(building.join(name), value.to_string())?;
        }
        // Read before the long part.
        let tokenizer = Tokenizer::load(&building.join(TOKENIZER));
        tokenizer.map_err(|error| gguf.refused(format!("its tokenizer: {error}")))?;
        match ChatTemplate::load(building) {
            Ok(_) | Err(ChatError::Missing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        write_weights(&gguf, &config, building)?;
        let files = Checkpoint::open("", building)?.named_files().into_iter();
        let sums = files.map(|(name, path)| Ok((name, sha256_file(&path)?)));
        let listed = Provenance {
            // No card and no hub id has a colon.
            repository: format!("gguf:{}", file.file_name().unwrap_or_default().display()),
            revision: sha256_file(file)?,
            sha256: sums.collect::<std::io::Result<_>>()?,
        };
        Ok(provenance::write(building, &listed)?)
    })
}

/// A GGUF file whose header was read.
struct Gguf {
    path: PathBuf,
    content: Content,
}

impl Gguf {
    fn open(path: &Path) -> Result<Gguf, Failure> {
        let mut head = Vec::new();
        // Twice what those of the largest vocabularies take. What candle makes of one is at most 32 times as large.
        outside::open(path)?.take(16 << 20).read_to_end(&mut head)?;
        // candle divides by it.
        let key = b"general.alignment\x04\0\0\0\0\0\0\0";
        if head.windows(key.len()).any(|found| found == key) {
            return Err(refused(path, "`general.alignment` is 0"));
        }
        let content = Content::read(&mut Cursor::new(head));
        let problem = |error| format!("it is no GGUF file, or not a sound one: {error}");
        let content = content.map_err(|error| refused(path, problem(error)))?;
        Ok(Gguf { path: path.to_owned(), content })
    }

    fn refused(&self, problem: impl Into<String>) -> Failure {
        refused(&self.path, problem)
    }

    /// What is said of a value that is none of the known ones.
    fn unknown(&self, key: &str, known: &str) -> Failure {
        self.refused(format!("`{key}` is {}; known: {known}", self.json(key)))
    }

    /// What the metadata say under a key; null where they say nothing.
    fn json(&self, key: &str) -> Json {
        self.content.metadata.get(key).map_or(Json::Null, as_json)
    }

    fn read<T: DeserializeOwned>(&self, key: &str) -> Result<T, Failure> {
        let says = |error| self.refused(format!("`{key}` in its metadata: {error}"));
        serde_json::from_value(self.json(key)).map_err(says)
    }

    /// Refuses a file without this tensor in this shape.
    fn expect(&self, name: &str, shape: &[usize]) -> Result<(), Failure> {
        let found = self.content.tensor_infos.get(name);
        let found = found.ok_or_else(|| self.refused(format!("tensor `{name}` is missing")))?;
        let dims = found.shape.dims();
        let problem = || format!("tensor `{name}` has the shape {dims:?}, not {shape:?}");
        (dims == shape).then_some(()).ok_or_else(|| self.refused(problem()))
    }

    /// All numbers of such a tensor in f32.
    fn numbers(&self, name: &str) -> Result<Tensor, Failure> {
        let mut file = outside::open(&self.path)?;
        let blocks = self.content.tensor(&mut file, name, &Device::Cpu);
        let numbers = blocks.and_then(|blocks| blocks.dequantize(&Device::Cpu));
        numbers.map_err(|error| self.refused(format!("tensor `{name}`: {error}")))
    }
}

/// What is said of a file that is not imported.
fn refused(path: &Path, problem: impl Into<String>) -> Failure {
    // Names may be as long as the file.
    let problem: String = problem.into().chars().take(300).collect();
    let hint = "take another file of the model, of llama.cpp's converter, or its safetensors";
    Failure::missing(format!("{}: {problem}", path.display()), hint)
}

fn as_json(value: &Value) -> Json {
    match value {
        Value::I32(number) => json!(number),
        // The shortest decimal number, as whoever wrote it had typed it.
        Value::F32(number) => json!(number.to_string().parse::<f64>().ok()),
        Value::Bool(flag) => json!(flag),
        Value::String(text) => json!(text),
        Value::Array(values) => values.iter().map(as_json).collect(),
        _ => json!(value.to_u64().ok()),
    }
}

/// What tensors' names have there for what they have here, one after the other.
const TERMS: [(&str, &str); 12] = [
    ("layers.", "blk."),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.", "attn_"),
    ("mlp.", "ffn_"),
    ("_proj", ""),
    ("input_layernorm", "attn_norm"),
    ("pre_feedforward_layernorm", "ffn_norm"),
    ("post_feedforward_layernorm", "post_ffw_norm"),
    ("embed_tokens", "token_embd"),
    ("lm_head", "output"),
    ("model.norm", "output_norm"),
    ("model.", ""),
];

/// The name of each tensor of the model, and that in the file. One that the model lacks, has in another shape, or has too many is refused.
fn tensors(gguf: &Gguf, config: &Config) -> Result<Vec<(String, String)>, Failure> {
    let after_attention =
        if config.family == Family::Gemma3 { "post_attention_norm" } else { "ffn_norm" };
    let mut unknown: BTreeSet<&String> = gguf.content.tensor_infos.keys().collect();
    if let RopeScaling::Llama3 { .. } = config.full_rope.scaling {
        unknown.remove(&FREQUENCIES.to_owned());
    }
    let published =
        config.tensors().into_iter().map(|(name, shape)| (format!("model.{name}"), shape));
    let head = ("lm_head".to_owned(), vec![config.vocab_size, config.hidden_size]);
    let head = Some(head).filter(|_| !config.tied_embeddings);
    let mut tensors = Vec::new();
    for (name, shape) in published.chain(head) {
        let own = name.replace("post_attention_layernorm", after_attention) + ".weight";
        let source = TERMS.iter().fold(own, |name, (here, there)| name.replace(here, there));
        unknown.remove(&source);
        gguf.expect(&source, &shape)?;
        tensors.push((format!("{name}.weight"), source));
    }
    let problem = |name| format!("tensor `{name}` is not part of a {} model", config.family.name());
    unknown.first().map_or(Ok(tensors), |name| Err(gguf.refused(problem(name))))
}

/// Writes the weights, a few in each file: all of them may be more than memory holds.
fn write_weights(gguf: &Gguf, config: &Config, building: &Path) -> Result<(), Failure> {
    let mut places = BTreeMap::new();
    for (shard, few) in tensors(gguf, config)?.chunks(8).enumerate() {
        let file = format!("model-{shard:05}.safetensors");
        let mut kept = HashMap::new();
        for (name, source) in few {
            let numbers = gguf.numbers(source)?;
            let dtype = match gguf.content.tensor_infos[source].ggml_dtype {
                GgmlDType::F16 => DType::F16,
                GgmlDType::BF16 => DType::BF16,
                _ => DType::F32,
            };
            let trained = as_trained(config, name, numbers).and_then(|all| all.to_dtype(dtype));
            kept.insert(name, trained.map_err(|error| gguf.refused(error.to_string()))?);
            places.insert(name.clone(), file.clone());
        }
        safetensors::save(&kept, building.join(file)).map_err(std::io::Error::other)?;
    }
    let index = json!({"metadata": {}, "weight_map": places}).to_string();
    Ok(outside::write_public(building.join(INDEX), index)?)
}

/// Without what llama.cpp's converter did: it adds 1 to Gemma's norms, and puts the two halves of the rows of each head of Llama's queries
/// and keys row beside row.
fn as_trained(config: &Config, name: &str, numbers: Tensor) -> ReadResult<Tensor> {
    match config.family {
        Family::Gemma3 if name.ends_with("norm.weight") => numbers - 1.0,
        Family::Llama if name.contains("q_proj") || name.contains("k_proj") => {
            let ((rows, width), head) = (numbers.dims2()?, config.head_dim);
            let heads = numbers.reshape((rows / head, head / 2, 2, width))?;
            heads.transpose(1, 2)?.reshape((rows, width))
        }
        _ => Ok(numbers),
    }
}
