//! GGUF files of golden checkpoints, byte for byte as gguf-py writes them.

use std::path::Path;

use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use wardround::digest::sha256;

#[derive(Deserialize)]
pub struct Index {
    pub texts: Vec<String>,
    pub cases: Vec<Case>,
}

#[derive(Deserialize)]
pub struct Case {
    /// Of the golden checkpoint, too.
    pub name: String,
    sha256: String,
    rope_freqs: Vec<f32>,
    /// Names in safetensors, in the file's order, and what the converter does to each.
    tensors: Vec<(String, String)>,
    /// Of each text, by its own tokenizer.
    pub ids: Vec<Vec<u32>>,
}

pub fn index() -> Index {
    serde_json::from_value(super::golden::read(&super::goldens().join("gguf/index.json"))).unwrap()
}

impl Case {
    pub fn head(&self) -> Vec<u8> {
        std::fs::read(super::goldens().join(format!("gguf/{}.head", self.name))).unwrap()
    }

    /// The header that gguf-py wrote, and the checkpoint's numbers, changed as llama.cpp's converter changes them.
    pub fn whole(&self) -> Vec<u8> {
        let source = super::goldens().join("models").join(&self.name).join("model.safetensors");
        let source = std::fs::read(source).unwrap();
        let source = SafeTensors::deserialize(&source).unwrap();
        let mut whole = self.head();
        let mut add = |bytes: Vec<u8>| {
            whole.extend(bytes);
            whole.resize(whole.len().next_multiple_of(32), 0);
        };
        if !self.rope_freqs.is_empty() {
            add(self.rope_freqs.iter().flat_map(|number| number.to_le_bytes()).collect());
        }
        for (name, change) in &self.tensors {
            let tensor = source.tensor(name).unwrap();
            let is_short = tensor.dtype() == Dtype::BF16;
            let row = tensor.data().len() / tensor.shape()[0];
            add(match change.as_str() {
                "paired" => {
                    tensor.data().chunks(16 * row).flat_map(|head| paired(head, row)).collect()
                }
                "one more" => numbers(tensor.data(), is_short, 1.0),
                _ if is_short && tensor.shape().len() == 1 => numbers(tensor.data(), true, 0.0),
                _ => tensor.data().to_vec(),
            });
        }
        assert_eq!(sha256(&whole), self.sha256, "{}", self.name);
        whole
    }

    pub fn write(&self, path: &Path) {
        std::fs::write(path, self.whole()).unwrap();
    }
}

/// The rows of both halves of a head, one beside the other.
fn paired(head: &[u8], row: usize) -> Vec<u8> {
    let (first, second) = head.split_at(head.len() / 2);
    let rows = first.chunks(row).zip(second.chunks(row));
    rows.flat_map(|(one, other)| [one, other].concat()).collect()
}

fn numbers(bytes: &[u8], is_short: bool, more: f32) -> Vec<u8> {
    let numbers: Vec<f32> = match is_short {
        true => {
            let wide = |pair: &[u8]| f32::from_le_bytes([0, 0, pair[0], pair[1]]);
            bytes.chunks(2).map(wide).collect()
        }
        false => bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect(),
    };
    numbers.iter().flat_map(|number| (number + more).to_le_bytes()).collect()
}
