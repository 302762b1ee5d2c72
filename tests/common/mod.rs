//! What several test files share: golden checkpoints, tiny synthetic models, engines around them.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wardround::engine::{Completion, Engine, EngineOptions, Request};
use wardround::model::{Config, Decoder, Family, Scratch, WantedType};
use wardround::ops::{KvPages, Ops, PAGE, Quantisation, Rows};
use wardround::synth::{Recipe, Shape, write_checkpoint};
use wardround::tokenizer::Tokenizer;

/// `WARDROUND_DATA`, or `None` after saying so.
pub fn data() -> Option<PathBuf> {
    let data = std::env::var_os("WARDROUND_DATA").map(PathBuf::from);
    if data.is_none() {
        println!("skipped: WARDROUND_DATA is not set");
    }
    data
}

pub fn goldens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens")
}

/// The safetensors files of a checkpoint's directory, in order.
pub fn weight_files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with("model") && name.ends_with(".safetensors")
        })
        .collect();
    files.sort();
    files
}

pub fn load(directory: &Path, wanted: WantedType) -> Decoder {
    load_quantised(directory, wanted, Quantisation::None)
}

pub fn load_quantised(directory: &Path, wanted: WantedType, quantisation: Quantisation) -> Decoder {
    let config = Config::read(&directory.join("config.json")).unwrap();
    let files = weight_files(directory);
    Decoder::load(config, &files, wanted, quantisation, 4096).unwrap()
}

/// A synthetic checkpoint of the family, made once per process and kept for it.
pub fn synthetic(family: Family) -> PathBuf {
    use std::sync::{LazyLock, Mutex};
    static MADE: LazyLock<Mutex<tempfile::TempDir>> =
        LazyLock::new(|| Mutex::new(tempfile::tempdir().unwrap()));
    let root = MADE.lock().unwrap();
    let directory = root.path().join(family.name());
    if !directory.exists() {
        let recipe = Recipe {
            family,
            shape: Shape::Tiny,
            seed: 1,
            tokenizer: None,
        };
        write_checkpoint(&recipe, &directory).unwrap();
    }
    directory
}

pub const OPTIONS: EngineOptions = EngineOptions {
    pages: 512,
    max_batch: 16,
    prefill_rows: 256,
    context: 4096,
};

/// An engine around a synthetic checkpoint, or a golden one with `tokenizer`.
pub fn engine(
    directory: &Path,
    tokenizer: Arc<Tokenizer>,
    options: EngineOptions,
    threads: usize,
) -> Engine {
    let decoder = load(directory, WantedType::Auto);
    let eos = decoder.config.eos_ids.clone();
    Engine::start(
        "test",
        decoder,
        tokenizer,
        &eos,
        Ops::new(threads).unwrap(),
        options,
    )
    .unwrap()
}

pub fn tokenizer(directory: &Path) -> Arc<Tokenizer> {
    Arc::new(Tokenizer::load(&directory.join("tokenizer.json")).unwrap())
}

/// A tokenizer of `size` words for checkpoints that have none.
pub fn numbered_tokenizer(size: usize) -> Arc<Tokenizer> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokenizer.json");
    let vocab: serde_json::Map<String, serde_json::Value> =
        (0..size).map(|id| (format!("w{id}"), id.into())).collect();
    let json = serde_json::json!({
        "version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": null, "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "w0"},
    });
    std::fs::write(&path, json.to_string()).unwrap();
    Arc::new(Tokenizer::load(&path).unwrap())
}

pub fn complete(engine: &Engine, request: Request) -> Completion {
    engine.submit(request).unwrap().wait().unwrap()
}

/// Logits of every position of `tokens`, fed in steps of `step` rows.
pub fn logits(decoder: &Decoder, tokens: &[u32], step: usize) -> Vec<Vec<f32>> {
    let ops = Ops::new(2).unwrap();
    let config = &decoder.config;
    let count = tokens.len().div_ceil(PAGE);
    // Not in order: a page's place is no part of the result.
    let table: Vec<u32> = (0..count as u32).rev().collect();
    let mut pages = KvPages::new(
        config.layer_count(),
        count,
        config.kv_heads,
        config.head_dim,
    );
    let mut scratch = Scratch::default();
    let mut all = Vec::new();
    for start in (0..tokens.len()).step_by(step) {
        let chunk = &tokens[start..tokens.len().min(start + step)];
        let positions: Vec<u32> = (start..start + chunk.len())
            .map(|position| position as u32)
            .collect();
        let sequences = vec![0; chunk.len()];
        let rows = Rows {
            tokens: chunk,
            positions: &positions,
            sequences: &sequences,
            tables: &[&table],
        };
        let wanted: Vec<usize> = (0..chunk.len()).collect();
        decoder.forward(&ops, rows, &wanted, &mut pages, &mut scratch);
        all.extend(scratch.logits.rows_mut().map(|row| row.to_vec()));
    }
    all
}
