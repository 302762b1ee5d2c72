//! Encoders against sentence-transformers: tiny random ones of the true architecture, and all-MiniLM-L6-v2 where
//! `WARDROUND_MINILM` names its folder.

use std::fs;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use serde_json::Value;
use wardround::analysis::metrics::agreement::mean_pairwise_cosine;
use wardround::diagnosis::{Blame, Diagnosis};
use wardround::encoder::{Encoder, EncoderError, EncoderOptions};
use wardround::ops::Device;

use crate::common;

struct Golden {
    name: String,
    max_tokens: usize,
    texts: Vec<String>,
    groups: Vec<Vec<usize>>,
    /// Of each group, sentence-transformers' own.
    similarities: Vec<f64>,
    vectors: Vec<Vec<f32>>,
    /// A share of the largest number of all vectors.
    tolerance: f32,
    /// By what share of it a mistake moves a number.
    mistakes: Vec<(String, f64)>,
}

fn folder() -> PathBuf {
    common::goldens().join("encoders")
}

fn goldens() -> Vec<Golden> {
    let expected = common::golden::read(&folder().join("expected.json"));
    let bytes = fs::read(folder().join("expected.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let golden = |case: &Value| {
        let name = case["name"].as_str().unwrap();
        let tensor = tensors.tensor(name).unwrap();
        let (numbers, _) = tensor.data().as_chunks::<4>();
        let numbers: Vec<f32> = numbers.iter().copied().map(f32::from_le_bytes).collect();
        let mistakes = case["mistakes"].as_object().into_iter().flatten();
        Golden {
            name: name.to_owned(),
            max_tokens: case["max_tokens"].as_u64().unwrap() as usize,
            texts: serde_json::from_value(expected["texts"].clone()).unwrap(),
            groups: serde_json::from_value(expected["groups"].clone()).unwrap(),
            similarities: serde_json::from_value(case["similarities"].clone()).unwrap(),
            vectors: numbers.chunks(tensor.shape()[1]).map(<[f32]>::to_vec).collect(),
            tolerance: expected["tolerance"].as_f64().unwrap() as f32,
            mistakes: mistakes
                .map(|(mistake, moves)| (mistake.clone(), moves.as_f64().unwrap()))
                .collect(),
        }
    };
    let cases = expected["cases"].as_array().unwrap();
    cases.iter().map(golden).collect()
}

fn golden(name: &str) -> Golden {
    let mut goldens = goldens();
    let at = goldens.iter().position(|golden| golden.name == name);
    goldens.swap_remove(at.unwrap())
}

impl Golden {
    fn texts(&self) -> Vec<&str> {
        self.texts.iter().map(String::as_str).collect()
    }

    /// Compares every number and every group's similarity; and the vectors of every instruction set, which are equal.
    fn check(&self, directory: &Path) {
        let encoder = common::open_encoder(directory).unwrap();
        assert_eq!(encoder.identity.document_tokens, self.max_tokens);
        let vectors = encoder.embed(&self.texts()).unwrap();
        for cpu in common::every_set(2) {
            let set = cpu.describe();
            let encoder = Encoder::open(&EncoderOptions::new(directory, Device::Cpu(cpu))).unwrap();
            assert!(encoder.embed(&self.texts()).unwrap() == vectors, "{} on {set}", self.name);
        }
        assert_eq!(vectors.len(), self.vectors.len());
        let numbers = self.vectors.iter().flatten();
        let largest = numbers.fold(0.0_f32, |most, number| most.max(number.abs()));
        let mut furthest = 0.0_f32;
        for ((text, ours), theirs) in self.texts.iter().zip(&vectors).zip(&self.vectors) {
            assert_eq!(ours.len(), encoder.identity.dims);
            assert_eq!(ours.len(), theirs.len());
            for (ours, theirs) in ours.iter().zip(theirs) {
                let off = (ours - theirs).abs() / largest;
                assert!(off <= self.tolerance, "{text:?}: {ours}, not {theirs}");
                furthest = furthest.max(off * largest);
            }
        }
        let mut apart = 0.0_f64;
        for (group, expected) in self.groups.iter().zip(&self.similarities) {
            let group: Vec<Vec<f32>> = group.iter().map(|&at| vectors[at].clone()).collect();
            let similarity = mean_pairwise_cosine(&group).unwrap();
            assert!((similarity - expected).abs() <= 1e-5, "{similarity}, not {expected}");
            apart = apart.max((similarity - expected).abs());
        }
        println!("{}: vectors within {furthest:.2e}, similarities within {apart:.2e}", self.name);
    }
}

#[test]
fn tiny_encoders_equal_sentence_transformers() {
    for name in ["tiny-mean", "tiny-cls"] {
        let golden = golden(name);
        golden.check(&folder().join(name));
        // What the comparison can tell apart.
        assert!(golden.mistakes.len() >= 7);
        for (mistake, moves) in &golden.mistakes {
            assert!(*moves > 5.0 * f64::from(golden.tolerance), "{mistake}");
        }
    }
}

#[test]
#[ignore = "needs WARDROUND_MINILM, a folder of all-MiniLM-L6-v2"]
fn with_weights_all_minilm_l6_v2_equals_sentence_transformers() {
    let directory = std::env::var_os("WARDROUND_MINILM").expect("WARDROUND_MINILM");
    golden("all-MiniLM-L6-v2").check(all_minilm(Path::new(&directory)).path());
}

/// A published folder of all-MiniLM-L6-v2 with the `encoder.toml` that a user writes into it.
pub fn all_minilm(directory: &Path) -> tempfile::TempDir {
    let copy = copy_of(directory);
    let own = "output = \"mean\"\nnormalised = true\nquery_tokens = 256\ndocument_tokens = 256\n";
    fs::write(copy.path().join("encoder.toml"), own).unwrap();
    copy
}

#[test]
fn no_bit_depends_on_the_texts_beside() {
    let golden = golden("tiny-mean");
    let encoder = common::open_encoder(&folder().join("tiny-mean")).unwrap();
    let together = encoder.embed(&golden.texts()).unwrap();
    let mut reversed = golden.texts();
    reversed.reverse();
    let mut backwards = encoder.embed(&reversed).unwrap();
    backwards.reverse();
    assert_eq!(together, backwards);
    for (text, vector) in golden.texts().iter().zip(&together) {
        let alone = encoder.embed(&[text]).unwrap();
        assert_eq!(alone[0], *vector, "{text:?}");
    }
    assert_eq!(encoder.embed(&[]).unwrap(), Vec::<Vec<f32>>::new());
}

fn copy(name: &str) -> tempfile::TempDir {
    copy_of(&folder().join(name))
}

/// The files of a folder in another one.
fn copy_of(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    copy
}

/// Puts `new` in place of every `old`, which must be there.
fn edit(directory: &Path, file: &str, old: &str, new: &str) {
    let text = fs::read_to_string(directory.join(file)).unwrap();
    assert!(text.contains(old), "{file}");
    fs::write(directory.join(file), text.replace(old, new)).unwrap();
}

fn refusal(directory: &Path) -> EncoderError {
    common::open_encoder(directory).err().unwrap()
}

#[test]
fn what_is_missing_is_named() {
    for (encoder, file, named) in [
        ("tiny-mean", "config.json", "config.json is missing"),
        ("tiny-mean", "encoder.toml", "encoder.toml is missing"),
        ("tiny-mean", "tokenizer.json", "tokenizer.json is missing"),
        ("tiny-mean", "model.safetensors", "has no weights"),
        ("tiny-cls", "pytorch_model.bin", "has no weights"),
    ] {
        let copy = copy(encoder);
        fs::remove_file(copy.path().join(file)).unwrap();
        let error = refusal(copy.path());
        let message = error.to_string();
        assert!(message.contains(named), "{message}");
        let place = copy.path().display().to_string();
        assert!(message.contains(&place), "{message}");
        assert!(error.blame() == Blame::Artefact && error.hint().is_some());
    }
    let error = refusal(Path::new("/no/such/encoder"));
    assert_eq!(error.to_string(), "/no/such/encoder is not a directory");
}

#[test]
fn what_would_be_computed_otherwise_is_refused() {
    for (encoder, file, old, new, named) in [
        ("tiny-mean", "config.json", "\"bert\"", "\"mpnet\"", "`model_type` is `mpnet`"),
        ("tiny-mean", "config.json", "\"gelu\"", "\"gelu_new\"", "gelu_new"),
        ("tiny-mean", "config.json", "absolute", "relative_key", "relative_key"),
        ("tiny-cls", "encoder.toml", "cls", "weightedmean", "unknown variant `weightedmean`"),
    ] {
        let copy = copy(encoder);
        edit(copy.path(), file, old, new);
        let message = refusal(copy.path()).to_string();
        assert!(message.contains(named), "{message}");
        assert!(message.contains(file), "{message}");
    }
}

#[test]
fn damaged_files_are_named() {
    for (encoder, file) in [
        ("tiny-mean", "config.json"),
        ("tiny-mean", "encoder.toml"),
        ("tiny-mean", "tokenizer.json"),
        ("tiny-mean", "model.safetensors"),
        ("tiny-cls", "pytorch_model.bin"),
    ] {
        let copy = copy(encoder);
        let path = copy.path().join(file);
        let whole = fs::read(&path).unwrap();
        for damaged in [&whole[..whole.len() / 2], b""] {
            fs::write(&path, damaged).unwrap();
            let error = refusal(copy.path());
            assert!(error.to_string().contains(file), "{error}");
            assert_eq!(error.blame(), Blame::Artefact, "{error}");
        }
    }
}

#[test]
fn files_of_two_encoders_do_not_go_together() {
    let wider = copy("tiny-mean");
    edit(wider.path(), "config.json", "\"hidden_size\": 16", "\"hidden_size\": 32");
    let message = refusal(wider.path()).to_string();
    assert!(message.contains("model.safetensors"), "{message}");

    let deeper = copy("tiny-cls");
    edit(deeper.path(), "config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
    let message = refusal(deeper.path()).to_string();
    assert!(message.contains("layer.2"), "{message}");

    let unknown = copy("tiny-mean");
    edit(unknown.path(), "tokenizer.json", "\"[MASK]\":4", "\"[MASK]\":4,\"beyond\":9999");
    let message = refusal(unknown.path()).to_string();
    assert!(message.contains("a token 9999"), "{message}");
}
