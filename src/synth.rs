//! Synthetic checkpoints, whose vocabulary is learned from MED-MAD's prompts and this project's own questions. Other systems' prompts
//! are left out, so that a new system changes no synthetic model.

use std::path::Path;

pub use wardround_engine::synth::{MARKER, Recipe, Shape, SynthError};

use crate::prompts::PromptSet;

/// Writes a checkpoint to `directory`, all of it or nothing.
///
/// # Errors
/// When the directory holds something already, or a file cannot be written.
pub fn write_checkpoint(recipe: &Recipe<'_>, directory: &Path) -> Result<(), SynthError> {
    let prompts = PromptSet::embedded();
    let mut texts: Vec<&str> = prompts.texts("medmad").collect();
    texts.push(include_str!("data/demo.jsonl"));
    wardround_engine::synth::write_checkpoint(recipe, &texts, directory)
}
