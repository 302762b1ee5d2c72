//! The golden checkpoints with what transformers says of them.

use std::path::{Path, PathBuf};

use serde_json::Value;
use wardround::model::WantedType;

pub struct Golden {
    pub name: String,
    pub directory: PathBuf,
    pub prompt: Vec<u32>,
    /// The 64 tokens that follow.
    pub greedy: Vec<u32>,
    /// Where in prompt and greedy tokens `logits` stand.
    pub positions: Vec<usize>,
    pub tolerance: f32,
    pub logits: Vec<Vec<f32>>,
    pub traps: Vec<Trap>,
}

/// A mistake that the case exposes.
pub struct Trap {
    pub number: u64,
    pub mistake: String,
    /// What transformers' own logits move by when it is made.
    pub moves_logits_by: f32,
}

pub fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub fn cases() -> Vec<Golden> {
    let root = super::goldens().join("models");
    let index = read(&root.join("index.json"));
    let cases = index["cases"].as_array().unwrap();
    cases.iter().map(|case| golden(&root, case)).collect()
}

fn golden(root: &Path, case: &Value) -> Golden {
    let name = case["name"].as_str().unwrap().to_owned();
    let directory = root.join(&name);
    let expected = read(&directory.join("expected.json"));
    let bytes = std::fs::read(directory.join("expected.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let logits = tensors.tensor("logits").unwrap();
    let width = logits.shape()[1];
    let values: Vec<f32> =
        logits.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let trap = |trap: &Value| Trap {
        number: trap["number"].as_u64().unwrap(),
        mistake: trap["mistake"].as_str().unwrap().to_owned(),
        moves_logits_by: trap["moves_logits_by"].as_f64().unwrap() as f32,
    };
    Golden {
        name,
        directory,
        prompt: serde_json::from_value(expected["prompt"].clone()).unwrap(),
        greedy: serde_json::from_value(expected["greedy"].clone()).unwrap(),
        positions: serde_json::from_value(expected["positions"].clone()).unwrap(),
        tolerance: expected["tolerance"].as_f64().unwrap() as f32,
        logits: values.chunks_exact(width).map(<[f32]>::to_vec).collect(),
        traps: case["traps"].as_array().unwrap().iter().map(trap).collect(),
    }
}

impl Golden {
    /// Our logits of every position of prompt and greedy tokens.
    pub fn ours(&self) -> Vec<Vec<f32>> {
        let decoder = super::load(&self.directory, WantedType::Auto);
        let tokens = [&self.prompt[..], &self.greedy[..]].concat();
        super::logits(&decoder, &tokens, tokens.len())
    }

    /// Compares logits of every position with transformers'.
    pub fn check(&self, ours: &[Vec<f32>]) {
        assert_eq!(self.logits.len(), self.positions.len());
        for (&position, expected) in self.positions.iter().zip(&self.logits) {
            let largest = largest(expected);
            for (ours, theirs) in ours[position].iter().zip(expected) {
                let off = (ours - theirs).abs();
                assert!(
                    off <= self.tolerance && off <= 1e-4 * largest,
                    "{} at {position}: {ours}, not {theirs}",
                    self.name
                );
            }
        }
    }
}

pub fn largest(logits: &[f32]) -> f32 {
    logits.iter().fold(0.0, |most, logit| most.max(logit.abs()))
}
