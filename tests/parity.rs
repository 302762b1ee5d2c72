//! Logits and greedy tokens against transformers, on tiny checkpoints of the true architectures.

mod common;

use serde_json::Value;
use wardround::engine::{EngineOptions, Request, Sampling};
use wardround::model::WantedType;

struct Golden {
    name: String,
    directory: std::path::PathBuf,
    prompt: Vec<u32>,
    greedy: Vec<u32>,
    positions: Vec<usize>,
    tolerance: f32,
    logits: Vec<Vec<f32>>,
}

fn read(path: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn cases() -> Vec<Golden> {
    let root = common::goldens().join("models");
    let index = read(&root.join("index.json"));
    let cases = index["cases"].as_array().unwrap();
    cases
        .iter()
        .map(|case| {
            let name = case["name"].as_str().unwrap().to_owned();
            let directory = root.join(&name);
            let expected = read(&directory.join("expected.json"));
            let bytes = std::fs::read(directory.join("expected.safetensors")).unwrap();
            let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
            let logits = tensors.tensor("logits").unwrap();
            let width = logits.shape()[1];
            let values: Vec<f32> = logits
                .data()
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
                .collect();
            Golden {
                name,
                directory,
                prompt: serde_json::from_value(expected["prompt"].clone()).unwrap(),
                greedy: serde_json::from_value(expected["greedy"].clone()).unwrap(),
                positions: serde_json::from_value(expected["positions"].clone()).unwrap(),
                tolerance: expected["tolerance"].as_f64().unwrap() as f32,
                logits: values.chunks_exact(width).map(<[f32]>::to_vec).collect(),
            }
        })
        .collect()
}

#[test]
fn logits_equal_transformers_and_do_not_depend_on_chunks() {
    let cases = cases();
    assert!(cases.len() >= 11);
    for case in cases {
        let decoder = common::load(&case.directory, WantedType::Auto);
        let tokens = [&case.prompt[..], &case.greedy[..]].concat();
        let whole = common::logits(&decoder, &tokens, tokens.len());
        assert_eq!(case.logits.len(), case.positions.len());
        for (position, expected) in case.positions.iter().zip(&case.logits) {
            let largest = expected
                .iter()
                .fold(0.0f32, |most, value| most.max(value.abs()));
            for (ours, theirs) in whole[*position].iter().zip(expected) {
                let off = (ours - theirs).abs();
                assert!(
                    off <= case.tolerance && off <= 1e-4 * largest,
                    "{} at {position}: {ours}, not {theirs}",
                    case.name
                );
            }
        }
        for step in [1, 7, 33] {
            assert!(
                common::logits(&decoder, &tokens, step) == whole,
                "{} in steps of {step}",
                case.name
            );
        }
    }
}

#[test]
fn sixty_four_greedy_tokens_equal_transformers_through_the_engine() {
    for case in cases() {
        let size = case.logits[0].len();
        let options = EngineOptions {
            prefill_rows: 16,
            ..common::OPTIONS
        };
        let engine = common::engine(
            &case.directory,
            common::numbered_tokenizer(size),
            options,
            2,
        );
        let request = Request {
            tokens: case.prompt.clone(),
            sampling: Sampling {
                temperature: 0.0,
                ..Sampling::default()
            },
            max_tokens: case.greedy.len(),
            ..Request::default()
        };
        let completion = common::complete(&engine, request);
        assert_eq!(completion.tokens, case.greedy, "{}", case.name);
    }
}
