//! Logits of a whole sequence, computed without an engine: what is compared with others'.

use std::path::PathBuf;

use super::{Cache, Config, Decoder, ModelError, Scratch};
use crate::ops::{Backend, Device, PAGE, Precision, Rows, StateRows, StepLimits};

/// Loads the model, and computes the logits after each of the tokens, `rows` positions a step.
///
/// # Errors
/// Weights that are not there or not as `config` says, too little memory, a device that fails.
pub fn compute_logits(
    device: &Device,
    config: &Config,
    files: &[PathBuf],
    precision: Precision,
    rows: usize,
    tokens: &[u32],
) -> Result<Vec<Vec<f32>>, ModelError> {
    match device {
        Device::Cpu(cpu) => on(cpu, config, files, precision, rows, tokens),
        Device::Cuda(gpu) => on(&gpu.for_engine()?, config, files, precision, rows, tokens),
        Device::Candle(candle) => on(candle, config, files, precision, rows, tokens),
    }
}

fn on<B: Backend>(
    ops: &B,
    config: &Config,
    files: &[PathBuf],
    precision: Precision,
    rows: usize,
    tokens: &[u32],
) -> Result<Vec<Vec<f32>>, ModelError> {
    let positions = tokens.len();
    let decoder = Decoder::load(ops, config.clone(), files, precision, positions)?;
    let table: Vec<u32> = (0..positions.div_ceil(PAGE) as u32).collect();
    let mut cache = Cache::new(ops, config, precision, table.len(), 1)?;
    let rows = rows.min(positions);
    let mut scratch = Scratch::new(ops, config, StepLimits { rows, logit_rows: rows, positions })?;
    let mut all = Vec::with_capacity(positions);
    for start in (0..positions).step_by(rows) {
        let end = positions.min(start + rows);
        let step = Rows {
            tokens: &tokens[start..end],
            positions: &(start as u32..end as u32).collect::<Vec<_>>(),
            sequences: &vec![0; end - start],
            segments: &[],
            tables: &[&table],
            states: &[StateRows::default()],
        };
        let wanted: Vec<usize> = (0..end - start).collect();
        ops.run(|| decoder.forward(ops, step, &wanted, &mut cache, &mut scratch));
        let logits = ops.read(scratch.logits().0, wanted.len())?;
        all.extend(logits.chunks(config.vocab_size).map(<[f32]>::to_vec));
    }
    Ok(all)
}
