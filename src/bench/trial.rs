//! Runs tests on a loaded decoder and times them: warm-up steps, then whole repetitions.

use std::time::{Duration, Instant};

use super::workload::{Extent, Step, Workload};
use crate::model::{Cache, Decoder, Scratch};
use crate::ops::{Backend, Machine, OpsError, PAGE, Rows, StateRows, StepLimits};
use crate::random::mix;

/// A decoder with a KV cache of its own.
pub struct Trial<B: Backend> {
    decoder: Decoder<B>,
    ops: B,
    cache: Cache<B>,
    /// The pages of each sequence.
    tables: Vec<Vec<u32>>,
    /// Positions of each sequence whose keys and values are there already. What a position holds never changes.
    filled: Vec<usize>,
    scratch: Scratch<B>,
    /// What its tokens depend on.
    seed: u64,
}

impl<B: Backend> Trial<B> {
    /// For tests of this extent.
    ///
    /// # Errors
    /// When the machine has no room for their pages.
    pub fn new(
        decoder: Decoder<B>,
        ops: B,
        extent: Extent,
        seed: u64,
    ) -> Result<Trial<B>, OpsError> {
        let Extent { sequences, positions } = extent;
        let config = &decoder.config;
        let each = positions.div_ceil(PAGE);
        let limits = StepLimits {
            rows: B::MACHINE.prefill_rows() + sequences,
            logit_rows: sequences,
            positions,
        };
        Ok(Trial {
            cache: Cache::new(&ops, config, decoder.precision, sequences * each, sequences)?,
            tables: (0..sequences)
                .map(|sequence| (sequence * each..(sequence + 1) * each).map(|page| page as u32))
                .map(Iterator::collect)
                .collect(),
            filled: vec![0; sequences],
            scratch: Scratch::new(&ops, config, limits)?,
            decoder,
            ops,
            seed,
        })
    }

    /// How long each of `repetitions` of the workload took.
    ///
    /// # Errors
    /// When the machine fails.
    pub fn measure(
        &mut self,
        workload: &Workload,
        repetitions: usize,
    ) -> Result<Vec<Duration>, OpsError> {
        self.fill(workload);
        if let Some(step) = workload.steps.first() {
            // A GPU keeps a step the second time it sees it, and replays it from the third on.
            let times = if B::MACHINE == Machine::Cuda { 3 } else { 1 };
            for _ in 0..times {
                self.compute(step);
            }
        }
        self.wait()?;
        let repeat = |_| {
            let started = Instant::now();
            for step in &workload.steps {
                self.compute(step);
            }
            self.wait()?;
            Ok(started.elapsed())
        };
        (0..repetitions).map(repeat).collect()
    }

    /// Waits for a device that may still be computing.
    fn wait(&mut self) -> Result<(), OpsError> {
        let (logits, _) = self.scratch.logits();
        self.ops.read(logits, 0).map(drop)
    }

    /// Computes what the sequences hold before the test.
    fn fill(&mut self, workload: &Workload) {
        let before =
            Workload::prefill(workload.depth, workload.batch, 0, B::MACHINE.prefill_rows());
        for mut step in before.steps {
            step.retain(|rows| rows.positions.end > self.filled[rows.sequence]);
            if !step.is_empty() {
                self.compute(&step);
            }
        }
    }

    fn compute(&mut self, step: &Step) {
        let (mut tokens, mut positions, mut sequences) = (Vec::new(), Vec::new(), Vec::new());
        let (mut tables, mut states, mut logit_rows) = (Vec::new(), Vec::new(), Vec::new());
        for (index, part) in step.iter().enumerate() {
            for position in part.positions.clone() {
                tokens.push(self.token(part.sequence, position));
                positions.push(position as u32);
                sequences.push(index as u32);
            }
            tables.push(self.tables[part.sequence].as_slice());
            states.push(StateRows { slot: part.sequence as u32, drafted: 0 });
            if part.gives_logits {
                logit_rows.push(tokens.len() - 1);
            }
            let filled = &mut self.filled[part.sequence];
            *filled = part.positions.end.max(*filled);
        }
        let rows = Rows {
            tokens: &tokens,
            positions: &positions,
            sequences: &sequences,
            segments: &[],
            tables: &tables,
            states: &states,
        };
        let (decoder, ops) = (&self.decoder, &self.ops);
        let (cache, scratch) = (&mut self.cache, &mut self.scratch);
        ops.run(|| decoder.forward(ops, rows, &logit_rows, cache, scratch));
    }

    /// A token of the model's table, at random but always the same there.
    fn token(&self, sequence: usize, position: usize) -> u32 {
        let place = (sequence as u64) << 32 | position as u64;
        let random = mix(mix(self.seed) ^ place);
        (random % self.decoder.config.vocab_size as u64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Config, Family};
    use crate::ops::{Cpu, StoredType};
    use crate::synth::{Recipe, Shape, write_checkpoint};

    fn trial(extent: Extent) -> Trial<Cpu> {
        let directory = tempfile::tempdir().unwrap();
        let recipe = Recipe { family: Family::Qwen3, shape: Shape::Tiny, seed: 1, tokenizer: None };
        let path = directory.path().join("model");
        write_checkpoint(&recipe, &path).unwrap();
        let config = Config::read(&path.join("config.json")).unwrap();
        let files = [path.join("model.safetensors")];
        let cpu = Cpu::new(2).unwrap();
        let decoder =
            Decoder::load(&cpu, config, &files, StoredType::Bf16.into(), extent.positions).unwrap();
        Trial::new(decoder, cpu, extent, 42).unwrap()
    }

    fn logits(trial: &mut Trial<Cpu>) -> Vec<Vec<f32>> {
        let rows = trial.scratch.logits().0.rows_mut();
        rows.map(|row| row.to_vec()).collect()
    }

    /// The rows are real: however a test comes to a position, its logits are the same bits.
    #[test]
    fn a_position_has_one_answer_whatever_the_test() {
        let mut one = trial(Extent { sequences: 3, positions: 120 });
        assert_eq!(one.measure(&Workload::prefill(100, 3, 0, 512), 1).unwrap().len(), 1);
        let by_prefill = logits(&mut one);
        assert_eq!(by_prefill.len(), 3);

        let mut other = trial(Extent { sequences: 3, positions: 120 });
        assert_eq!(other.measure(&Workload::decode(2, 3, 98), 2).unwrap().len(), 2);
        assert_eq!(other.filled, [100, 100, 100]);
        assert_eq!(logits(&mut other), by_prefill);

        other.measure(&Workload::mixed(100, 2, 40, 512), 1).unwrap();
        assert_eq!(logits(&mut other)[2], by_prefill[2]);
        assert_eq!(other.filled, [100, 100, 100]);
    }
}
