//! What several test files share: golden checkpoints, tiny synthetic models, engines around them.
#![allow(dead_code)]

pub mod endpoint;
pub mod gguf;
pub mod golden;
pub mod json_schema;
pub mod places;
pub mod retrieval;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use wardround::encoder::{Encoder, EncoderError, EncoderOptions};
use wardround::engine::{
    Completion, Engine, EngineError, EngineOptions, EngineSnapshot, Request, Sampling,
};
use wardround::model::{
    Cache, Config, Decoder, Family, Scratch, WantedPrecision, WantedType, precision_of,
};
use wardround::ops::{Backend, Cpu, Device, Isa, PAGE, Rows, StateRows, StepLimits, StoredType};
use wardround::synth::{Recipe, Shape, write_checkpoint};
use wardround::tokenizer::Tokenizer;

/// The folder of published data. Tests that ask for it are ignored by default, and named `with_data_…`.
pub fn data() -> PathBuf {
    let data = std::env::var_os("WARDROUND_DATA");
    data.expect("WARDROUND_DATA names the folder of published data").into()
}

/// The encoder of a folder as it is.
pub fn open_encoder(directory: &Path) -> Result<Encoder, EncoderError> {
    Encoder::open(&EncoderOptions::new(directory, Device::cpu(2).unwrap()))
}

/// How an engine stands once the step that it is at is done.
pub fn snapshot(engine: &Engine) -> Result<EngineSnapshot, EngineError> {
    let (sender, receiver) = std::sync::mpsc::channel();
    engine.request_snapshot(Box::new(move |snapshot| drop(sender.send(snapshot))))?;
    receiver.recv().map_err(|_| engine.failure().unwrap())
}

pub fn goldens() -> PathBuf {
    places::repository().join("tests/goldens")
}

/// Whether the kernel lacks what `--sandbox require` asks of it. Says so past the harness, which keeps what tests print: a test that is
/// over early for it has tried nothing.
pub fn lacks_landlock() -> bool {
    static LACKS: OnceLock<bool> = OnceLock::new();
    let lacks = *LACKS.get_or_init(|| {
        let mut doctor = Command::new(env!("CARGO_BIN_EXE_wardround"));
        let said = doctor.arg("doctor").output().unwrap().stdout;
        let said = String::from_utf8_lossy(&said).into_owned();
        let version = said.split("files by Landlock ABI ").nth(1);
        let version = version.and_then(|rest| rest.split([',', ';', '\n']).next()?.parse().ok());
        version.is_none_or(|version: u32| version < 3)
    });
    if lacks {
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        let _ = writeln!(std::io::stderr(), "{test}: skipped, no Landlock ABI 3 or later");
    }
    lacks
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

/// One of each instruction set of this machine: what is said of bits or numbers is said of all of them, for the next machine may choose
/// another.
pub fn every_set(threads: usize) -> Vec<Cpu> {
    Isa::available().into_iter().map(|isa| Cpu::with(threads, isa).unwrap()).collect()
}

/// The best that computes in f32 whatever is kept as bf16.
pub fn exact(threads: usize) -> Cpu {
    exact_sets(threads).pop().unwrap()
}

/// One of each instruction set of this machine that does.
pub fn exact_sets(threads: usize) -> Vec<Cpu> {
    let mut sets = every_set(threads);
    sets.retain(|cpu| cpu.kind(StoredType::Bf16.into()) == cpu.kind(StoredType::F32.into()));
    sets
}

/// With keys and values in f32, as transformers computes them for the goldens.
pub fn load(directory: &Path, wanted: WantedType) -> Decoder<Cpu> {
    let cpu = Cpu::new(2).unwrap();
    let kv = WantedType::Exactly(StoredType::F32);
    load_on(&cpu, directory, WantedPrecision { dtype: wanted, kv, ..WantedPrecision::default() })
}

pub fn load_on<B: Backend>(ops: &B, directory: &Path, wanted: WantedPrecision) -> Decoder<B> {
    let config = Config::read(&directory.join("config.json")).unwrap();
    let files = weight_files(directory);
    let precision = precision_of(&config, &files, wanted, B::MACHINE).unwrap();
    Decoder::load(ops, config, &files, precision, 4096).unwrap()
}

/// A synthetic checkpoint of the family, made once per process and kept for it.
pub fn synthetic(family: Family) -> PathBuf {
    use std::sync::{LazyLock, Mutex};
    static MADE: LazyLock<Mutex<tempfile::TempDir>> =
        LazyLock::new(|| Mutex::new(tempfile::tempdir().unwrap()));
    let root = MADE.lock().unwrap();
    let directory = root.path().join(family.name());
    if !directory.exists() {
        let recipe = Recipe { family, shape: Shape::Tiny, seed: 1, tokenizer: None };
        write_checkpoint(&recipe, &directory).unwrap();
    }
    directory
}

pub const OPTIONS: EngineOptions = EngineOptions {
    pages: 512,
    max_batch: 16,
    prefill_rows: 256,
    context: 4096,
    draft: 0,
    known_logit_rows: 64,
    slots: 32,
    pages_at_start: false,
};

pub const GREEDY: Sampling = Sampling {
    temperature: 0.0,
    top_k: None,
    top_p: None,
    min_p: None,
    repetition_penalty: None,
    frequency_penalty: None,
    presence_penalty: None,
};

/// An engine around a synthetic checkpoint, or a golden one with `tokenizer`.
pub fn engine(
    directory: &Path,
    tokenizer: Arc<Tokenizer>,
    options: EngineOptions,
    threads: usize,
) -> Engine {
    let cpu = exact(threads);
    start(load_on(&cpu, directory, WantedPrecision::default()), tokenizer, options, &cpu)
}

pub fn start<B: Backend>(
    decoder: Decoder<B>,
    tokenizer: Arc<Tokenizer>,
    options: EngineOptions,
    ops: &B,
) -> Engine {
    let eos = decoder.config.eos_ids.clone();
    Engine::start("test", decoder, tokenizer, &eos, ops.clone(), options).unwrap()
}

/// An engine around the family's synthetic checkpoint.
pub fn synthetic_engine(family: Family, options: EngineOptions) -> Engine {
    let directory = synthetic(family);
    engine(&directory, tokenizer(&directory), options, 2)
}

/// Ids of text that depend on `salt` alone, and are the same up to the shorter length.
pub fn tokens(salt: u64, length: usize) -> Vec<u32> {
    let mut state = salt;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        300 + (state >> 33) as u32 % 500
    };
    (0..length).map(|_| next()).collect()
}

/// Another checkpoint with `edit` done to every tensor of a synthetic one: its name, row length and numbers.
pub fn edited(family: Family, mut edit: impl FnMut(&str, usize, &mut [f32])) -> tempfile::TempDir {
    let (from, to) = (synthetic(family), tempfile::tempdir().unwrap());
    for entry in std::fs::read_dir(&from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.path().join(path.file_name().unwrap())).unwrap();
    }
    let bytes = std::fs::read(from.join("model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let edited: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(name, tensor)| {
            let halves = tensor.data().as_chunks::<2>().0;
            let mut values: Vec<f32> =
                halves.iter().map(|bytes| half::bf16::from_le_bytes(*bytes).to_f32()).collect();
            edit(name, tensor.shape()[tensor.shape().len() - 1], &mut values);
            let bytes = values
                .into_iter()
                .flat_map(|value| half::bf16::from_f32(value).to_le_bytes())
                .collect();
            (name.to_owned(), tensor.shape().to_vec(), bytes)
        })
        .collect();
    let views = edited.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(Dtype::BF16, shape.clone(), bytes).unwrap();
        (name, view)
    });
    safetensors::serialize_to_file(views, None, &to.path().join("model.safetensors")).unwrap();
    to
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

/// Logits of every position of `tokens`, fed in steps of `step` rows, in f32 arithmetic.
pub fn logits(decoder: &Decoder<Cpu>, tokens: &[u32], step: usize) -> Vec<Vec<f32>> {
    logits_on(&exact(2), decoder, tokens, step)
}

pub fn logits_on<B: Backend>(
    ops: &B,
    decoder: &Decoder<B>,
    tokens: &[u32],
    step: usize,
) -> Vec<Vec<f32>> {
    logits_of(ops, decoder, tokens, step, |_| true)
}

/// Those of the positions that are `wanted`.
pub fn logits_of<B: Backend>(
    ops: &B,
    decoder: &Decoder<B>,
    tokens: &[u32],
    step: usize,
    wanted: impl Fn(usize) -> bool,
) -> Vec<Vec<f32>> {
    let config = &decoder.config;
    let count = tokens.len().div_ceil(PAGE);
    // Not in order: a page's place is no part of the result.
    let table: Vec<u32> = (0..count as u32).rev().collect();
    let mut cache = Cache::new(ops, config, decoder.precision, count, 1).unwrap();
    let limits = StepLimits { rows: step, logit_rows: step, positions: tokens.len() };
    let mut scratch = Scratch::new(ops, config, limits).unwrap();
    let mut all = Vec::new();
    for start in (0..tokens.len()).step_by(step) {
        let chunk = &tokens[start..tokens.len().min(start + step)];
        let positions: Vec<u32> =
            (start..start + chunk.len()).map(|position| position as u32).collect();
        let sequences = vec![0; chunk.len()];
        let rows = Rows {
            tokens: chunk,
            positions: &positions,
            sequences: &sequences,
            segments: &[],
            tables: &[&table],
            states: &[StateRows::default()],
        };
        let chosen: Vec<usize> = (0..chunk.len()).filter(|row| wanted(start + row)).collect();
        decoder.forward(ops, rows, &chosen, &mut cache, &mut scratch);
        let logits = ops.read(scratch.logits().0, chosen.len()).unwrap();
        all.extend(logits.chunks(config.vocab_size).map(<[f32]>::to_vec));
    }
    all
}
