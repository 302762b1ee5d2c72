//! What a model's test computes: steps of rows, as an engine would make them.

use std::ops::Range;

/// A test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// As llama-bench spells it: `pp512`, `tg128`.
    pub name: String,
    /// Sequences side by side.
    pub batch: usize,
    /// Positions of each sequence that are in the KV cache before the measurement.
    pub depth: usize,
    pub steps: Vec<Step>,
}

/// How much of the KV cache tests need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub sequences: usize,
    /// Of the longest sequence.
    pub positions: usize,
}

impl Extent {
    /// What the largest of these needs.
    pub fn of(workloads: &[Workload]) -> Extent {
        let rows = || workloads.iter().flat_map(|workload| &workload.steps).flatten();
        Extent {
            sequences: rows().map(|rows| rows.sequence + 1).max().unwrap_or(0),
            positions: rows().map(|rows| rows.positions.end).max().unwrap_or(0),
        }
    }
}

/// The rows that are computed at once.
pub type Step = Vec<SequenceRows>;

/// Rows of one sequence in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceRows {
    pub sequence: usize,
    pub positions: Range<usize>,
    /// Whether the last row gives logits.
    pub gives_logits: bool,
}

impl Workload {
    /// `pp`: prompts of `tokens` after `depth` others, in steps of up to `rows` rows, the first prompt
    /// first. Each prompt's last row gives logits.
    pub fn prefill(tokens: usize, batch: usize, depth: usize, rows: usize) -> Workload {
        let (mut steps, mut step, mut left) = (Vec::new(), Step::new(), rows);
        for sequence in 0..batch {
            let mut done = 0;
            while done < tokens {
                let count = left.min(tokens - done);
                step.push(SequenceRows {
                    sequence,
                    positions: depth + done..depth + done + count,
                    gives_logits: done + count == tokens,
                });
                done += count;
                left -= count;
                if left == 0 {
                    steps.push(std::mem::take(&mut step));
                    left = rows;
                }
            }
        }
        steps.extend(Some(step).filter(|step| !step.is_empty()));
        Workload { name: format!("pp{tokens}"), batch, depth, steps }
    }

    /// `tg`: `tokens` steps of one row a sequence, each of which gives logits.
    pub fn decode(tokens: usize, batch: usize, depth: usize) -> Workload {
        Workload {
            name: format!("tg{tokens}"),
            batch,
            depth,
            steps: (depth..depth + tokens).map(|position| decode_step(batch, position)).collect(),
        }
    }

    /// `mixed`: one more sequence's prompt of `tokens`, a chunk a step, while `batch` others decode in every step.
    pub fn mixed(tokens: usize, batch: usize, depth: usize, rows: usize) -> Workload {
        let prompt = Workload::prefill(tokens, 1, 0, rows);
        let steps = prompt.steps.into_iter().enumerate().map(|(index, chunk)| {
            let mut step = decode_step(batch, depth + index);
            step.extend(chunk.into_iter().map(|rows| SequenceRows { sequence: batch, ..rows }));
            step
        });
        Workload { name: format!("mixed{tokens}"), batch, depth, steps: steps.collect() }
    }

    /// Rows of all steps.
    pub fn tokens(&self) -> usize {
        let rows = self.steps.iter().flatten();
        rows.map(|rows| rows.positions.len()).sum()
    }
}

fn decode_step(batch: usize, position: usize) -> Step {
    (0..batch)
        .map(|sequence| SequenceRows {
            sequence,
            positions: position..position + 1,
            gives_logits: true,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(workload: &Workload) -> Vec<Vec<(usize, Range<usize>, bool)>> {
        let shares = |step: &Step| {
            step.iter()
                .map(|rows| (rows.sequence, rows.positions.clone(), rows.gives_logits))
                .collect()
        };
        workload.steps.iter().map(shares).collect()
    }

    fn extent(workload: &Workload) -> (usize, usize) {
        let extent = Extent::of(std::slice::from_ref(workload));
        (extent.sequences, extent.positions)
    }

    #[test]
    fn prompts_fill_steps_and_their_last_rows_give_logits() {
        let workload = Workload::prefill(700, 2, 32, 512);
        let expected = [
            vec![(0, 32..544, false)],
            vec![(0, 544..732, true), (1, 32..356, false)],
            vec![(1, 356..732, true)],
        ];
        assert_eq!(shape(&workload), expected);
        assert_eq!((workload.tokens(), extent(&workload)), (1400, (2, 732)));
        assert_eq!(Workload::prefill(512, 3, 0, 512).steps.len(), 3);
        assert_eq!(Workload::prefill(0, 1, 0, 512).steps, Vec::<Step>::new());
    }

    #[test]
    fn decoding_is_a_row_a_sequence_and_step() {
        let workload = Workload::decode(2, 3, 7);
        let step = |at: usize| (0..3).map(|sequence| (sequence, at..at + 1, true)).collect();
        assert_eq!(shape(&workload), [step(7), step(8)] as [Vec<_>; 2]);
        assert_eq!((workload.tokens(), extent(&workload)), (6, (3, 9)));
        assert_eq!(workload.name, "tg2");
    }

    #[test]
    fn a_mixed_step_decodes_beside_a_chunk() {
        let workload = Workload::mixed(600, 1, 5, 512);
        let expected =
            [vec![(0, 5..6, true), (1, 0..512, false)], vec![(0, 6..7, true), (1, 512..600, true)]];
        assert_eq!(shape(&workload), expected);
    }
}
