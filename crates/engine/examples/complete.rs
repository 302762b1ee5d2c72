//! One completion of the model in a directory; without one, of a tiny model with random weights, which writes noise.
//!
//! `cargo run -p wardround-engine --example complete -- DIR`
#![allow(clippy::print_stdout, reason = "an example prints what it found")]

use std::path::PathBuf;

use wardround_engine::LocalModel;
use wardround_engine::chat::Message;
use wardround_engine::diagnosis::Failure;
use wardround_engine::model::Family;
use wardround_engine::ops::Device;
use wardround_engine::synth::{Recipe, Shape, write_checkpoint};

fn main() -> Result<(), Failure> {
    let directory = std::env::args_os().nth(1).map_or_else(tiny_model, |path| Ok(path.into()))?;
    let model = LocalModel::open(&directory, Device::cpu(2)?, 1024, 1)?;
    let messages = [Message::new("user", "Name three causes of chest pain.")];
    let prompt = model.chat.prompt(&model.tokenizer, &messages, false)?;
    let completion = model.engine.submit(model.request(prompt.tokens, 64))?.wait()?;
    println!("{}", completion.text);
    Ok(())
}

/// Its vocabulary is learned from this file.
fn tiny_model() -> Result<PathBuf, Failure> {
    let name = format!("wardround-complete-{}", std::process::id());
    let directory = std::env::temp_dir().join(name).join("tiny-qwen3");
    let recipe = Recipe { family: Family::Qwen3, shape: Shape::Tiny, seed: 1, tokenizer: None };
    write_checkpoint(&recipe, &[include_str!("complete.rs")], &directory)?;
    Ok(directory)
}
