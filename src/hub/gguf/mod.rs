//! GGUF files, as llama.cpp keeps models in them: made into a directory of Hugging Face's layout, which is loaded like any other.
//!
//! candle reads metadata, places and blocks of numbers; `described` makes the JSON files of the directory of them, and here the weights are
//! written. What llama.cpp's converter has changed is undone: the order of rows of Llama's queries and keys, the 1 that Gemma's norms got. What the format
//! does not say, or this program cannot run, is refused by name.

mod described;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io::{BufWriter, Cursor, Read, Write};
use std::path::{Path, PathBuf};

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::{DType, Device, Error, Result as ReadResult, Tensor};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};

use self::described::{FREQUENCIES, Tokens};
use super::{Provenance, provenance, sha256_file};
use crate::chat::{ChatError, ChatTemplate};
use crate::checkpoint::{
    CONFIG, GENERATION_CONFIG, SINGLE, TOKENIZER, TOKENIZER_CONFIG, is_occupied, write_whole,
};
use crate::diagnosis::Failure;
use crate::model::config::RopeScaling;
use crate::model::{Config, Family};
use crate::outside;
use crate::tokenizer::Tokenizer;

/// Twice what those of the largest vocabularies take. What candle makes of one is at most 32 times as large.
const MOST_HEADER: u64 = 16 << 20;

/// Makes a model's directory, new or empty, of a GGUF file: the numbers as in the file, quantised ones exactly, in f32.
///
/// # Errors
/// What cannot be read or run here, by its name; nothing is left behind then.
pub fn import(file: &Path, directory: &Path) -> Result<(), Failure> {
    if is_occupied(directory) {
        let problem = format!("{} exists and is not an empty directory", directory.display());
        return Err(Failure::usage(problem, "choose a new directory"));
    }
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
        write_weights(&gguf, &config, &building.join(SINGLE))?;
        let sums = fs_err::read_dir(building)?.map(|entry| {
            let entry = entry?;
            Ok((entry.file_name().to_string_lossy().into_owned(), sha256_file(&entry.path())?))
        });
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let listed = Provenance {
            // No card and no hub id has a colon.
            repository: format!("gguf:{name}"),
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
        outside::open(path)?.take(MOST_HEADER).read_to_end(&mut head)?;
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

    /// What the metadata say under a key; null where they say nothing.
    fn json(&self, key: &str) -> Json {
        self.content.metadata.get(key).map_or(Json::Null, as_json)
    }

    fn read<T: DeserializeOwned>(&self, key: &str) -> Result<T, Failure> {
        let says = |error| self.refused(format!("`{key}` in its metadata: {error}"));
        serde_json::from_value(self.json(key)).map_err(says)
    }

    /// The type of a tensor that has to be there in this shape.
    fn kind(&self, name: &str, shape: &[usize]) -> Result<GgmlDType, Failure> {
        let found = self.content.tensor_infos.get(name);
        let found = found.ok_or_else(|| self.refused(format!("tensor `{name}` is missing")))?;
        let (dims, kind) = (found.shape.dims(), found.ggml_dtype);
        let problem = || format!("tensor `{name}` has the shape {dims:?}, not {shape:?}");
        (dims == shape).then_some(kind).ok_or_else(|| self.refused(problem()))
    }

    /// All numbers of such a tensor in f32.
    fn numbers(&self, name: &str) -> Result<Tensor, Failure> {
        let mut file = outside::open(&self.path)?;
        let mut read = || {
            let numbers = self.content.tensor(&mut file, name, &Device::Cpu)?;
            let numbers = numbers.dequantize(&Device::Cpu)?;
            let is_finite = numbers.sum_all()?.to_scalar::<f32>()?.is_finite();
            is_finite
                .then_some(numbers)
                .ok_or_else(|| Error::msg("it has numbers that are not finite"))
        };
        read().map_err(|error| self.refused(format!("tensor `{name}`: {error}")))
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
        Value::U32(number) => json!(number),
        Value::I32(number) => json!(number),
        Value::U64(number) => json!(number),
        // The shortest decimal number, as whoever wrote it had typed it.
        Value::F32(number) => json!(number.to_string().parse::<f64>().ok()),
        Value::Bool(flag) => json!(flag),
        Value::String(text) => json!(text),
        Value::Array(values) => values.iter().map(as_json).collect(),
        // No key that is looked at has another type.
        _ => Json::Null,
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

/// A tensor to be written.
struct Target {
    name: String,
    /// In the file.
    source: String,
    shape: Vec<usize>,
    dtype: DType,
}

/// Which tensors of the file are written and as what. One that the model lacks, has in another shape, or has too many is refused.
fn targets(gguf: &Gguf, config: &Config) -> Result<Vec<Target>, Failure> {
    let after_attention =
        if config.family == Family::Gemma3 { "post_attention_norm" } else { "ffn_norm" };
    let infos = &gguf.content.tensor_infos;
    let mut unknown: BTreeSet<&str> = infos.keys().map(String::as_str).collect();
    if let RopeScaling::Llama3 { .. } = config.full_rope.scaling {
        unknown.remove(FREQUENCIES);
    }
    let published =
        config.tensors().into_iter().map(|(name, shape)| (format!("model.{name}"), shape));
    let head = ("lm_head".to_owned(), vec![config.vocab_size, config.hidden_size]);
    let head = Some(head).filter(|_| !config.tied_embeddings);
    let mut targets = Vec::new();
    for (name, shape) in published.chain(head) {
        let own = name.replace("post_attention_layernorm", after_attention);
        let source = TERMS.iter().fold(own, |name, (here, there)| name.replace(here, there));
        let source = format!("{source}.weight");
        unknown.remove(source.as_str());
        let kind = gguf.kind(&source, &shape)?;
        let dtype = match (kind, shape.len()) {
            (GgmlDType::F16, 2) => DType::F16,
            (GgmlDType::BF16, 2) => DType::BF16,
            _ => DType::F32,
        };
        targets.push(Target { name: format!("{name}.weight"), source, shape, dtype });
    }
    let family = config.family.name();
    let problem = |name| format!("tensor `{name}` is not part of a {family} model");
    unknown.first().map_or(Ok(targets), |name| Err(gguf.refused(problem(name))))
}

/// Writes the weights.
fn write_weights(gguf: &Gguf, config: &Config, path: &Path) -> Result<(), Failure> {
    let mut targets = targets(gguf, config)?;
    // Longer numbers first, so that none lies astride.
    targets.sort_by_key(|target| std::cmp::Reverse(target.dtype.size_in_bytes()));
    let mut header = Map::from_iter([("__metadata__".to_owned(), json!({"format": "pt"}))]);
    let mut total = 0;
    for Target { name, shape, dtype, .. } in &targets {
        let start = total;
        total += (shape.iter().product::<usize>() * dtype.size_in_bytes()) as u64;
        let kind = dtype.as_str().to_uppercase();
        let place = json!({"dtype": kind, "shape": shape, "data_offsets": [start, total]});
        header.insert(name.clone(), place);
    }
    let mut text = Json::from(header).to_string();
    text += &" ".repeat(text.len().next_multiple_of(8) - text.len());
    let mut out = BufWriter::new(outside::create_public(path)?);
    out.write_all(&(text.len() as u64).to_le_bytes())?;
    out.write_all(text.as_bytes())?;
    for Target { name, source, dtype, .. } in &targets {
        let numbers = as_trained(config, name, gguf.numbers(source)?);
        let written = numbers.and_then(|numbers| numbers.to_dtype(*dtype)?.write_bytes(&mut out));
        written.map_err(|error| gguf.refused(error.to_string()))?;
    }
    Ok(out.flush()?)
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
