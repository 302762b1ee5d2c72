//! A MED-MAD debate through the library: three tiny models with random weights on the demonstration's questions.
//!
//! `cargo run --example debate`
#![allow(clippy::print_stdout, reason = "an example prints what it found")]

use std::sync::Arc;

use wardround::data::{DEMO_PATH, Format};
use wardround::diagnosis::Failure;
use wardround::experiment::driver::execute;
use wardround::experiment::spec::Spec;
use wardround::model::Family;
use wardround::synth::{Recipe, Shape, write_checkpoint};
use wardround::systems::SystemConfig;

fn main() -> Result<(), Failure> {
    let folder = std::env::temp_dir().join(format!("wardround-debate-{}", std::process::id()));
    let model = folder.join("tiny-gemma3");
    write_checkpoint(
        &Recipe { family: Family::Gemma3, shape: Shape::Tiny, seed: 1, tokenizer: None },
        &model,
    )?;

    let system = SystemConfig::parse("medmad", &["t_max=2", "record_chars=32"])?;
    let mut spec = Spec::new(system, DEMO_PATH, Format::Mcq)?;
    spec.panel = vec![model.display().to_string()];
    spec.hub = spec.hub.local();
    let executed = execute(spec, &folder.join("run"), Arc::new(()), Arc::default())?;
    for answer in executed.contents.answers().into_values() {
        println!(
            "{}: {:?} after {} rounds, gold {:?}",
            answer.item, answer.answer, answer.rounds_run, answer.gold
        );
    }
    println!("the run lies in {}", folder.display());
    Ok(())
}
