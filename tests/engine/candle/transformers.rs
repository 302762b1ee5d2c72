//! candle-transformers' decoders as a second reference beside transformers, in f32 on the CPU.
//!
//! Gemma 3 is left out: in candle-transformers 0.11.1 its window reaches one position too far, its global layers know no
//! linear rope scaling, and scores are scaled by head_dim instead of query_pre_attn_scalar. Llama's head_dim is
//! always hidden/heads there, so of its golden checkpoints the one without a head_dim of its own is compared.

use std::collections::HashMap;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::{llama, qwen3};

use crate::common;
use crate::common::golden::{self, Golden, largest};

fn case(name: &str) -> Golden {
    let mut cases = golden::cases();
    let at = cases.iter().position(|case| case.name == name).unwrap();
    cases.swap_remove(at)
}

/// All tensors of a checkpoint, widened to f32.
fn weights(case: &Golden) -> VarBuilder<'static> {
    let mut tensors = HashMap::new();
    for file in common::weight_files(&case.directory) {
        for (name, tensor) in candle_core::safetensors::load(file, &Device::Cpu).unwrap() {
            tensors.insert(name, tensor.to_dtype(DType::F32).unwrap());
        }
    }
    VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu)
}

/// Feeds the prompt at once and the greedy tokens one by one to `forward` (tokens `[1, rows]` and the first one's
/// position in, the last one's logits out), and compares every row with ours.
fn compare(case: &Golden, mut forward: impl FnMut(&Tensor, usize) -> candle_core::Result<Tensor>) {
    let ours = case.ours();
    let prompt = case.prompt.len();
    let tokens = [&case.prompt[..], &case.greedy[..]].concat();
    let ends = std::iter::once((0, prompt)).chain((prompt..tokens.len()).map(|at| (at, at + 1)));
    for (start, end) in ends {
        let rows = Tensor::new(&tokens[start..end], &Device::Cpu).unwrap();
        let logits = forward(&rows.unsqueeze(0).unwrap(), start).unwrap();
        let theirs: Vec<f32> = logits.flatten_all().unwrap().to_vec1().unwrap();
        let ours = &ours[end - 1];
        assert_eq!(ours.len(), theirs.len());
        let bound = 1e-4 * largest(&theirs);
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let off = (ours - theirs).abs();
            assert!(off <= bound, "{} at {}: {ours}, not {theirs}", case.name, end - 1);
        }
    }
}

#[test]
fn llama_says_the_same_with_and_without_scaling() {
    let mut case = case("llama-plain-untied");
    let mut config = golden::read(&case.directory.join("config.json"));
    compare_llama(&case, &config);
    let plain = case.ours();
    // The same weights under Llama 3.2's frequencies, past the length that they were made for.
    config["rope_scaling"] = serde_json::json!({
        "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
        "original_max_position_embeddings": 16, "rope_type": "llama3",
    });
    let scaled = tempfile::tempdir().unwrap();
    for file in common::weight_files(&case.directory) {
        std::fs::copy(&file, scaled.path().join(file.file_name().unwrap())).unwrap();
    }
    std::fs::write(scaled.path().join("config.json"), config.to_string()).unwrap();
    case.directory = scaled.path().to_owned();
    assert!(case.prompt.len() > 16 && case.ours() != plain);
    compare_llama(&case, &config);
}

fn compare_llama(case: &Golden, config: &serde_json::Value) {
    let config: llama::LlamaConfig = serde_json::from_value(config.clone()).unwrap();
    let config = config.into_config(false);
    let model = llama::Llama::load(weights(case), &config).unwrap();
    let mut cache = llama::Cache::new(true, DType::F32, &config, &Device::Cpu).unwrap();
    compare(case, |rows, start| model.forward(rows, start, &mut cache));
}

#[test]
fn qwen3_says_the_same() {
    for name in ["qwen3", "qwen3-sharded"] {
        let case = case(name);
        let config = golden::read(&case.directory.join("config.json"));
        let config: qwen3::Config = serde_json::from_value(config).unwrap();
        let mut model = qwen3::ModelForCausalLM::new(&config, weights(&case)).unwrap();
        compare(&case, |rows, start| model.forward(rows, start));
    }
}
