//! Synthetic checkpoints, whose vocabulary is learned from MED-MAD's prompts and this project's own questions. Other systems' prompts
//! and those of its controls are left out, so that a new one changes no synthetic model.

use std::path::Path;

pub use wardround_engine::synth::{MARKER, Recipe, Shape, SynthError, write_weights};

use crate::prompts::PromptSet;

/// The text of MED-MAD that its paper does not have a use for.
const CONTROL: &str = "medmad/unrelated.txt";

/// Writes a checkpoint to `directory`, all of it or nothing.
///
/// # Errors
/// When the directory holds something already, or a file cannot be written.
pub fn write_checkpoint(recipe: &Recipe<'_>, directory: &Path) -> Result<(), SynthError> {
    let prompts = PromptSet::embedded();
    let papers = prompts.texts("medmad").filter(|(name, _)| *name != CONTROL);
    let mut texts: Vec<&str> = papers.map(|(_, text)| text).collect();
    texts.push(include_str!("data/demo.jsonl"));
    wardround_engine::synth::write_checkpoint(recipe, &texts, directory)
}
