//! A few layers in the widths of published models, against transformers: weights are drawn here and there from the same seed.

use std::path::Path;

use wardround::model::{Config, Decoder};
use wardround::ops::{Precision, StoredType};
use wardround::synth::write_weights;

use crate::common::{self, golden};

#[test]
fn layers_as_wide_as_published_ones_give_transformers_logits() {
    let cases = golden::read(&common::goldens().join("full_layers.json"));
    for case in cases["cases"].as_array().unwrap() {
        let config = Config::from_json(case["config"].clone(), Path::new("config.json")).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model.safetensors");
        write_weights(&config, case["seed"].as_u64().unwrap(), &path).unwrap();
        let cpu = common::exact(2);
        // What is stored is widened, which is exact.
        let precision = Precision { kv: StoredType::F32, ..StoredType::Bf16.into() };
        let decoder = Decoder::load(&cpu, config, &[path], precision, 64).unwrap();
        let tokens: Vec<u32> = serde_json::from_value(case["tokens"].clone()).unwrap();
        let found = common::logits_on(&cpu, &decoder, &tokens, 7);
        let tolerance = case["tolerance"].as_f64().unwrap();
        let positions: Vec<usize> = serde_json::from_value(case["positions"].clone()).unwrap();
        let expected: Vec<Vec<f64>> = serde_json::from_value(case["logits"].clone()).unwrap();
        for (position, expected) in positions.into_iter().zip(expected) {
            for (found, expected) in found[position].iter().zip(expected) {
                let off = (f64::from(*found) - expected).abs();
                assert!(
                    off <= tolerance,
                    "{} at {position}: {found}, not {expected}",
                    case["name"]
                );
            }
        }
    }
}
