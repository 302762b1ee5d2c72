//! Logits of whole sequences, computed without an engine: what is compared with others'.

use std::path::PathBuf;

use super::{Cache, Config, Decoder, ModelError, Scratch};
use crate::ops::{Backend, Device, PAGE, Precision, Rows, StateRows, StepLimits};

/// Tokens, and the logits that are wanted of them.
#[derive(Debug)]
pub struct Probe {
    pub tokens: Vec<u32>,
    /// The first position whose logits are wanted.
    from: usize,
    /// With the greedy tokens that are added.
    length: usize,
    /// A row is about the token after its own position.
    pub logits: Vec<Vec<f32>>,
}

impl Probe {
    /// Wants logits of the positions from `from` on, and so many greedy tokens more, with theirs.
    pub fn new(tokens: Vec<u32>, from: usize, more: usize) -> Probe {
        Probe { length: tokens.len() + more, tokens, from, logits: Vec::new() }
    }
}

/// The token of the largest logit.
pub fn best(logits: &[f32]) -> u32 {
    let better = |best: usize, token| if logits[token] > logits[best] { token } else { best };
    (0..logits.len()).reduce(better).unwrap_or(0) as u32
}

/// Loads the model, and computes what each sequence wants, so many positions a step.
///
/// # Errors
/// Weights that are not there or not as `config` says, too little memory, a device that fails.
pub fn compute_logits(
    device: &Device,
    config: &Config,
    files: &[PathBuf],
    precision: Precision,
    rows: usize,
    sequences: &mut [Probe],
) -> Result<(), ModelError> {
    match device {
        Device::Cpu(cpu) => on(cpu, config, files, precision, rows, sequences),
        Device::Cuda(gpu) => on(&gpu.for_engine()?, config, files, precision, rows, sequences),
        Device::Candle(candle) => on(candle, config, files, precision, rows, sequences),
    }
}

fn on<B: Backend>(
    ops: &B,
    config: &Config,
    files: &[PathBuf],
    precision: Precision,
    rows: usize,
    sequences: &mut [Probe],
) -> Result<(), ModelError> {
    let positions = sequences.iter().map(|sequence| sequence.length).max().unwrap_or(0);
    let decoder = Decoder::load(ops, config.clone(), files, precision, positions)?;
    let table: Vec<u32> = (0..positions.div_ceil(PAGE) as u32).collect();
    let rows = rows.min(positions);
    let mut scratch = Scratch::new(ops, config, StepLimits { rows, logit_rows: rows, positions })?;
    for sequence in sequences {
        let mut cache = Cache::new(ops, config, precision, table.len(), 1)?;
        let mut start = 0;
        while start < sequence.tokens.len() {
            let end = sequence.tokens.len().min(start + rows);
            let step = Rows {
                tokens: &sequence.tokens[start..end],
                positions: &(start as u32..end as u32).collect::<Vec<_>>(),
                sequences: &vec![0; end - start],
                segments: &[],
                tables: &[&table],
                states: &[StateRows::default()],
            };
            let wanted = start.max(sequence.from)..end;
            let wanted: Vec<usize> = wanted.map(|position| position - start).collect();
            ops.run(|| decoder.forward(ops, step, &wanted, &mut cache, &mut scratch));
            let logits = ops.read(scratch.logits().0, wanted.len())?;
            sequence.logits.extend(logits.chunks(config.vocab_size).map(<[f32]>::to_vec));
            start = end;
            let is_open = (start..sequence.length).contains(&sequence.tokens.len());
            if let Some(last) = sequence.logits.last().filter(|_| is_open) {
                sequence.tokens.push(best(last));
            }
        }
    }
    Ok(())
}
