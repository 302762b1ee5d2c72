//! `model.safetensors`, tensor by tensor: under their published names, in the order of rows that they were trained with.

use std::collections::BTreeSet;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::metadata::shown;
use super::{Gguf, GgufError, Tensor, rope};
use crate::model::{Config, Family, WantedType};
use crate::ops::StoredType;
use crate::ops::checkpoint::RawType;
use crate::outside;

/// Numbers that are widened at once; a head's rows of queries are as many in the largest models.
const AT_ONCE: usize = 1 << 20;

/// The tensors of a layer: their names there and here.
const OF_ALL: [(&str, &str); 8] = [
    ("attn_norm", "input_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];
const HEAD_NORMS: [(&str, &str); 2] =
    [("attn_q_norm", "self_attn.q_norm"), ("attn_k_norm", "self_attn.k_norm")];
const ONE_NORM: [(&str, &str); 1] = [("ffn_norm", "post_attention_layernorm")];
const NORMS_AROUND: [(&str, &str); 3] = [
    ("post_attention_norm", "post_attention_layernorm"),
    ("ffn_norm", "pre_feedforward_layernorm"),
    ("post_ffw_norm", "post_feedforward_layernorm"),
];

/// A tensor to be written.
struct Target<'a> {
    name: String,
    /// In the file, for messages.
    source: String,
    tensor: &'a Tensor,
    kind: RawType,
    change: Change,
}

/// What llama.cpp's converter did, and is undone.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    None,
    /// 1 was added.
    OneMore,
    /// The two halves of each head's rows, of so many, were put row beside row.
    Paired(usize),
}

/// Which tensors of the file are written and as what.
///
/// # Errors
/// A tensor that the model lacks, has in another shape, or has too many.
fn targets<'a>(
    gguf: &'a Gguf,
    config: &Config,
    wanted: WantedType,
) -> Result<Vec<Target<'a>>, GgufError> {
    let mut names = vec![
        ("token_embd".to_owned(), "model.embed_tokens".to_owned()),
        ("output_norm".to_owned(), "model.norm".to_owned()),
    ];
    if !config.tied_embeddings {
        names.push(("output".to_owned(), "lm_head".to_owned()));
    }
    let norms: [&[_]; 2] = match config.family {
        Family::Llama => [&ONE_NORM, &[]],
        Family::Qwen3 => [&ONE_NORM, &HEAD_NORMS],
        Family::Gemma3 => [&NORMS_AROUND, &HEAD_NORMS],
    };
    for layer in 0..config.layer_count() {
        let of_layer = OF_ALL.iter().chain(norms.into_iter().flatten());
        names.extend(of_layer.map(|(there, here)| {
            (format!("blk.{layer}.{there}"), format!("model.layers.{layer}.{here}"))
        }));
    }
    let mut unknown: BTreeSet<&str> = gguf.tensors.keys().map(String::as_str).collect();
    unknown.remove(rope::FREQUENCIES);
    let mut targets = Vec::new();
    for (there, here) in names {
        let (source, name) = (format!("{there}.weight"), format!("{here}.weight"));
        unknown.remove(source.as_str());
        let expected = shape(config, &here);
        let tensor = gguf.tensor(&source)?;
        if tensor.shape != expected {
            return Err(gguf.refused(
                format!("tensor `{source}` has the shape {:?}, not {expected:?}", tensor.shape),
                "its metadata and tensors are not of one model: take another file of it",
            ));
        }
        let change = match (config.family, there.rsplit('.').next()) {
            (Family::Gemma3, Some(part)) if part.ends_with("norm") => Change::OneMore,
            (Family::Llama, Some("attn_q" | "attn_k")) => Change::Paired(config.head_dim),
            _ => Change::None,
        };
        let kind = match (wanted, change) {
            (WantedType::Exactly(StoredType::F32), _) | (WantedType::Auto, Change::OneMore) => {
                RawType::F32
            }
            (WantedType::Exactly(StoredType::Bf16), _) => RawType::Bf16,
            (WantedType::Auto, _) => tensor.format.widened,
        };
        targets.push(Target { name, source, tensor, kind, change });
    }
    match unknown.first() {
        None => Ok(targets),
        Some(name) => Err(gguf.refused(
            format!("tensor `{}` is not part of a {} model", shown(name), config.family.name()),
            "take the model's safetensors, or a file of llama.cpp's converter",
        )),
    }
}

/// Of a tensor by its published name.
fn shape(config: &Config, name: &str) -> Vec<usize> {
    let (hidden, inner) = (config.hidden_size, config.intermediate_size);
    let (queries, keys) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
    match name.rsplit('.').next().unwrap_or(name) {
        "embed_tokens" | "lm_head" => vec![config.vocab_size, hidden],
        "q_proj" => vec![queries, hidden],
        "k_proj" | "v_proj" => vec![keys, hidden],
        "o_proj" => vec![hidden, queries],
        "gate_proj" | "up_proj" => vec![inner, hidden],
        "down_proj" => vec![hidden, inner],
        "q_norm" | "k_norm" => vec![config.head_dim],
        _ => vec![hidden],
    }
}

/// Writes the weights. `tell` hears after every part how many bytes of how many are written.
///
/// # Errors
/// See [`targets`]; numbers that are not finite; a file that cannot be read or written.
pub fn write(
    gguf: &Gguf,
    config: &Config,
    wanted: WantedType,
    path: &Path,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<(), GgufError> {
    let mut targets = targets(gguf, config, wanted)?;
    // Longer numbers first, so that none lies astride.
    targets.sort_by_key(|target| std::cmp::Reverse(target.kind.size_bytes()));
    let mut header = Map::from_iter([("__metadata__".to_owned(), json!({"format": "pt"}))]);
    let mut total = 0;
    for Target { name, tensor, kind, .. } in &targets {
        let start = total;
        total += (tensor.shape.iter().product::<usize>() * kind.size_bytes()) as u64;
        let dtype = match kind {
            RawType::F32 => "F32",
            RawType::F16 => "F16",
            RawType::Bf16 => "BF16",
        };
        let place = json!({"dtype": dtype, "shape": tensor.shape, "data_offsets": [start, total]});
        header.insert(name.clone(), place);
    }
    let mut text = Value::from(header).to_string();
    text += &" ".repeat(text.len().next_multiple_of(8) - text.len());
    let mut out = BufWriter::new(outside::create_public(path)?);
    out.write_all(&(text.len() as u64).to_le_bytes())?;
    out.write_all(text.as_bytes())?;
    let mut source = Source::open(gguf)?;
    let (mut done, mut bytes) = (0, Vec::new());
    for Target { source: name, tensor, kind, change, .. } in &targets {
        source.read(name, tensor, *change, &mut |numbers| {
            bytes.clear();
            kind.write(numbers, &mut bytes);
            done += bytes.len() as u64;
            tell(done, total);
            out.write_all(&bytes)
        })?;
    }
    out.flush()?;
    Ok(())
}

/// A file whose tensors are read.
pub struct Source<'a> {
    gguf: &'a Gguf,
    file: BufReader<fs_err::File>,
}

impl<'a> Source<'a> {
    pub fn open(gguf: &'a Gguf) -> Result<Self, GgufError> {
        Ok(Source { gguf, file: BufReader::new(outside::open(&gguf.path)?) })
    }

    /// All numbers of a small tensor.
    pub fn all(&mut self, name: &str) -> Result<Vec<f32>, GgufError> {
        let tensor = self.gguf.tensor(name)?;
        let mut all = Vec::new();
        self.read(name, tensor, Change::None, &mut |numbers| {
            all.extend_from_slice(numbers);
            Ok(())
        })?;
        Ok(all)
    }

    /// Gives a tensor's numbers to `take`, some rows at a time.
    fn read(
        &mut self,
        name: &str,
        tensor: &Tensor,
        change: Change,
        take: &mut dyn FnMut(&[f32]) -> std::io::Result<()>,
    ) -> Result<(), GgufError> {
        let width = tensor.shape.last().copied().unwrap_or(1);
        let rows = tensor.shape.iter().product::<usize>() / width;
        let rows_at_once = match change {
            Change::Paired(head) => head,
            _ => (AT_ONCE / width).max(1),
        };
        self.file.seek(SeekFrom::Start(tensor.start))?;
        let (mut blocks, mut numbers, mut turned) = (Vec::new(), Vec::new(), Vec::new());
        for first in (0..rows).step_by(rows_at_once) {
            let count = rows_at_once.min(rows - first) * width;
            numbers.resize(count, 0.0);
            blocks.resize(count / tensor.format.values * tensor.format.bytes, 0);
            self.file.read_exact(&mut blocks)?;
            tensor.format.read(&blocks, &mut numbers);
            if numbers.iter().any(|number| !number.is_finite()) {
                return Err(self.gguf.refused(
                    format!("tensor `{}` has numbers that are not finite", shown(name)),
                    "the file is damaged, or was badly converted: take another one of the model",
                ));
            }
            match change {
                Change::None => take(&numbers)?,
                Change::OneMore => {
                    numbers.iter_mut().for_each(|number| *number -= 1.0);
                    take(&numbers)?;
                }
                Change::Paired(head) => {
                    turned.clear();
                    for row in 0..head {
                        let there = row % (head / 2) * 2 + row / (head / 2);
                        turned.extend_from_slice(&numbers[there * width..][..width]);
                    }
                    take(&turned)?;
                }
            }
        }
        Ok(())
    }
}
