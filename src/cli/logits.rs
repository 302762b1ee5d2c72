//! `generate --logits`: prints a model's next-token logits for a token sequence.

use serde::Serialize;

use crate::cli::exit::Failure;
use crate::console;
use crate::engine::EngineError;
use crate::experiment::hardware::Compute;
use crate::hub::Checkpoint;
use crate::model::{Config, Probe, compute_logits, precision_of};
use crate::ops::sampling::are_sound;
use crate::panel::PanelError;

/// The printed object. A row of logits is about the token after its own.
#[derive(Serialize)]
struct Shown<'a> {
    tokens: &'a [u32],
    logits: Vec<Vec<f32>>,
}

pub fn tell(
    checkpoint: &Checkpoint,
    compute: &Compute,
    tokens: &[u32],
    rows: u16,
) -> Result<(), Failure> {
    let config = Config::read(&checkpoint.files.config)?;
    refuse_unknown(tokens, &config)?;
    let (device, files) = (compute.on.one_device()?, &checkpoint.files.weights);
    let precision = precision_of(&config, files, compute.precision(), device.machine())?;
    let mut sequences = [Probe::new(tokens.to_vec(), 0, 0)];
    compute_logits(&device, &config, files, precision, rows.into(), &mut sequences)?;
    let [Probe { logits, .. }] = sequences;
    if let Some(position) = logits.iter().position(|row| !are_sound(row)) {
        return Err(EngineError::NotFinite { model: checkpoint.name.clone(), position }.into());
    }
    let shown = serde_json::to_string(&Shown { tokens, logits });
    Ok(console::say(shown.map_err(std::io::Error::from)?)?)
}

fn refuse_unknown(tokens: &[u32], config: &Config) -> Result<(), Failure> {
    let (prompt, context) = (tokens.len(), config.max_position_embeddings);
    if prompt > context {
        return Err(PanelError::PromptTooLong { prompt, context }.into());
    }
    let vocabulary = config.vocab_size;
    match tokens.iter().find(|id| **id as usize >= vocabulary) {
        Some(&id) => Err(EngineError::UnknownToken { id, vocabulary }.into()),
        None => Ok(()),
    }
}
