//! The demonstration of a system that searches: three notes, a corpus of 63 built-in passages, and a model and an encoder made for it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::super::options::QuietFlag;
use super::super::synthetic::SyntheticModels;
use crate::analysis::notes::Finding;
use crate::cli::exit::Failure;
use crate::console;
use crate::corpus::Description;
use crate::corpus::build::{BATCH, Build, BuildOptions};
use crate::corpus::embed::encoder_options;
use crate::data::Format;
use crate::encoder::Encoder;
use crate::experiment::contents::Contents;
use crate::experiment::spec::Spec;
use crate::model::{Config, Family};
use crate::ops::Device;
use crate::ops::vectors::VectorType;
use crate::outside;
use crate::retrieval::CorpusSpec;
use crate::synth::{Shape, write_encoder};
use crate::systems::SystemConfig;

const PASSAGES: &str = include_str!("passages.jsonl");
const NOTES: &str = include_str!("notes.jsonl");
const DESCRIPTION: &str = r#"name = "demo"
[[source]]
label = "demo"
format = "jsonl"
path = "passages.jsonl"
licence = "MIT or Apache-2.0"
redistribute = true
"#;
const TOKENIZER: &str = "tokenizer.json";
const ENCODER: &str = r#"output = "mean"
normalised = true
query_tokens = 256
document_tokens = 256
"#;
/// Few steps, since the output of random weights is noise anyway.
const SETTINGS: [&str; 8] = [
    "record_chars=32",
    "rerank=off",
    "rerank_top_k=3",
    "retrieve_top_k=10",
    "react_turns=2",
    "reflexion_turns=2",
    "reviewers=3",
    "cite=on",
];

/// What is run, with all that it reads made.
pub fn spec(models: &SyntheticModels, progress: QuietFlag) -> Result<Spec, Failure> {
    let model = models.checkpoint(Family::Qwen3, Shape::Tiny, progress)?;
    let folder = models.root().join("demo-corpus");
    let corpus = corpus(&folder, &model, progress)?;
    let config = SystemConfig::parse("medreflex", &SETTINGS)?;
    let mut spec = Spec::new(config, folder.join("notes.jsonl"), Format::Notes)?;
    spec.panel = vec![model.display().to_string()];
    spec.corpus = Some(CorpusSpec { directories: vec![corpus], ..CorpusSpec::default() });
    Ok(spec)
}

/// Prints what came of the note with the most calls.
pub fn print(contents: &Contents) -> std::io::Result<()> {
    let notes = contents.notes().into_values();
    let Some(note) = notes.max_by_key(|note| note.calls) else { return Ok(()) };
    let calls = contents.calls.records.iter().filter(|one| one.item == note.item);
    let searches = contents.searches.records.iter().filter(|one| one.item == note.item);
    let (calls, searches) = (Vec::from_iter(calls.cloned()), Vec::from_iter(searches.cloned()));
    console::write(&format!("\n{}", Finding::of(note, &calls, &searches).text()))
}

/// A tokenizer file that appends a special token to every text, so that none is empty.
fn ending_in_a_special_token(tokenizer: &str) -> String {
    let mut tokenizer: Value = serde_json::from_str(tokenizer).unwrap_or_default();
    let token = &tokenizer["added_tokens"][0];
    let (name, id) = (token["content"].clone(), token["id"].clone());
    let text = |which: &str| json!({"Sequence": {"id": which, "type_id": 0}});
    let end = json!({"SpecialToken": {"id": name, "type_id": 0}});
    let mut special = Map::new();
    let key = name.as_str().unwrap_or_default().to_owned();
    special.insert(key, json!({"id": name, "ids": [id], "tokens": [name]}));
    tokenizer["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [text("A"), end],
        "pair": [text("A"), text("B"), end],
        "special_tokens": special,
    });
    tokenizer.to_string()
}

/// The directory of the demonstration's corpus, which is built if it does not exist.
fn corpus(folder: &Path, model: &Path, progress: QuietFlag) -> Result<PathBuf, Failure> {
    let out = folder.join("corpus");
    if out.join("corpus.toml").is_file() && folder.join("notes.jsonl").is_file() {
        return Ok(out);
    }
    progress.note(format!("making {}", folder.display()));
    if folder.exists() {
        // An earlier build was interrupted.
        fs_err::remove_dir_all(folder)?;
    }
    let encoder = folder.join("encoder");
    fs_err::create_dir_all(&encoder)?;
    let tokenizer = ending_in_a_special_token(&outside::text(model.join(TOKENIZER))?);
    outside::write(encoder.join(TOKENIZER), tokenizer)?;
    write_encoder(Config::read(&model.join("config.json"))?.vocab_size, 1, &encoder)?;
    outside::write(encoder.join("encoder.toml"), ENCODER)?;
    outside::write(folder.join("passages.jsonl"), PASSAGES)?;
    outside::write(folder.join("demo.toml"), DESCRIPTION)?;
    let device = Device::open("cpu", 1)?.remove(0);
    let opened = Encoder::open(&encoder_options(&encoder, device)?)?;
    let options = BuildOptions {
        description: Description::open(&folder.join("demo.toml").display().to_string())?,
        data: folder.to_owned(),
        out: out.clone(),
        encoder,
        dtype: VectorType::F16,
        search_dims: None,
        limit: None,
    };
    Build::begin(&options, &opened)?.run(&opened, BATCH, &mut |_| Ok(()))?;
    outside::write(folder.join("notes.jsonl"), NOTES)?;
    Ok(out)
}
