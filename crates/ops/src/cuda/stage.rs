//! A step's rows on their way to the GPU, in one copy; and the launches of decoding steps, kept as graphs.

use std::collections::HashMap;
use std::ops::Range;

use super::Cuda;
use super::driver::{Graph, Pinned, Stream};
use super::kernels::BLOCK_QUERIES;
use super::region::Region;
use super::sampler::Drawer;
use super::scores::Scorer;
use crate::shared::machine::{FEW_ROWS, chunk_slots, decode_rows, partial_bytes};
use crate::{AttentionShape, CHUNK, OpsError, PAGE, PageShape, Rows, StepLimits, blocks};

/// The position of a row that only fills its bucket, and the index of a row of logits that does.
const NOTHING: u32 = u32::MAX;

#[derive(Debug)]
pub struct Stage {
    limits: StepLimits,
    pinned: Pinned,
    region: Region,
    /// f32 `[decode rows][chunks][heads][dim]`, and (maximum, total) `[decode rows][chunks][heads]`.
    partial_sums: Region,
    partial_stats: Region,
    /// Of a row's chunks, `[decode rows][kv heads]`; zeros between launches.
    tickets: Region,
    block_rows: usize,
    graphs: HashMap<StepForm, KeptLaunches>,
    pub(super) drawer: Option<Drawer>,
    pub(super) scorer: Scorer,
}

/// Addresses of a step's words. They follow from the form of a decoding step, so that its graph finds them.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    pub tokens: u64,
    pub positions: u64,
    pub sequences: u64,
    /// Of logit rows, and then their positions and sequences.
    pub indices: u64,
    pub block_list: u64,
    /// Of texts: each row's segment, and its text's length.
    pub segments: u64,
    pub lengths: u64,
    /// Of sequences with states: first row, end, where drafts begin, slot. A decoding step has as many as rows, some of no rows.
    pub runs: u64,
    pub tables: u64,
    /// Words of a table.
    pub table_stride: usize,
}

impl Places {
    fn of(first: u64, counts: [usize; 5], table_stride: usize) -> Places {
        let [rows, logit_rows, blocks, texts, runs] = counts;
        let at = |word: usize| first + 4 * word as u64;
        // Pairs of words are read at once.
        let block_list = (3 * (rows + logit_rows)).next_multiple_of(2);
        let segments = block_list + 2 * blocks;
        let run_list = segments + 2 * texts;
        Places {
            tokens: first,
            positions: at(rows),
            sequences: at(2 * rows),
            indices: at(3 * rows),
            block_list: at(block_list),
            segments: at(segments),
            lengths: at(segments + texts),
            runs: at(run_list),
            tables: at(run_list + 4 * runs),
            table_stride,
        }
    }

    fn bytes(self, tables: usize) -> usize {
        (self.tables - self.tokens) as usize + 4 * tables * self.table_stride
    }
}

/// What a kept graph depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct StepForm {
    rows: usize,
    logit_rows: usize,
    chunk_slots: usize,
}

#[derive(Debug)]
enum KeptLaunches {
    /// Nothing yet, but they ran once: what a first launch may still load, a graph must not.
    Seen,
    Graph(Graph),
    /// The driver could not, or none is wanted.
    Nothing,
}

/// A step as kernels are told of it: counts, and addresses of what [`Stage`] holds.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub rows: usize,
    pub logit_rows: usize,
    /// The first rows, which are attended to chunk by chunk: all of a decoding step. The others are in blocks.
    pub decoding: usize,
    /// Chunks of keys that any of these sees; a power of two.
    pub chunk_slots: usize,
    pub blocks: usize,
    pub runs: usize,
    pub at: Places,
    pub partial_sums: u64,
    pub partial_stats: u64,
    pub tickets: u64,
    /// Whether rows that give logits may go on alone; see [`Step::few`].
    pub gives_few: bool,
}

impl Step {
    /// The step of the rows that give logits, where those may go on alone: all attend chunk by chunk.
    pub fn few(self) -> Option<Step> {
        let positions = self.at.indices + 4 * self.logit_rows as u64;
        let sequences = positions + 4 * self.logit_rows as u64;
        self.gives_few.then(|| Step {
            rows: self.logit_rows,
            decoding: self.logit_rows,
            chunk_slots: self.at.table_stride * PAGE / CHUNK,
            blocks: 0,
            at: Places { positions, sequences, ..self.at },
            gives_few: false,
            ..self
        })
    }

    /// Chunks that a row sees of a layer with this window, at most.
    pub fn chunk_slots(&self, shape: AttentionShape) -> usize {
        let seen = shape.window.map_or(usize::MAX, |window| window.div_ceil(CHUNK) + 1);
        self.chunk_slots.min(seen)
    }
}

/// Rows of a decoding step: those of a graph that is kept.
fn bucket(rows: usize) -> usize {
    match rows {
        0..=2 => rows,
        3..=16 => rows.next_multiple_of(4),
        _ => rows.next_multiple_of(16),
    }
}

impl Stage {
    pub fn new(
        gpu: &Cuda,
        shape: PageShape,
        heads: usize,
        limits: StepLimits,
    ) -> Result<Stage, OpsError> {
        let StepLimits { rows, logit_rows, positions } = limits;
        let stream: &Stream = &gpu.stream;
        let stride = chunk_slots(positions) * CHUNK / PAGE;
        let most = bucket(rows);
        let largest = Places::of(0, [most, bucket(logit_rows), rows, rows, most], stride);
        let bytes = largest.bytes(logit_rows.max(1));
        let [sums, stats, tickets] = partial_bytes(shape, heads, limits);
        Ok(Stage {
            limits,
            pinned: stream.pin(bytes)?,
            region: stream.allocate(bytes, "a step")?,
            partial_sums: stream.allocate(sums, "attention")?,
            partial_stats: stream.allocate(stats, "attention")?,
            tickets: stream.allocate(tickets, "attention")?,
            block_rows: (BLOCK_QUERIES * shape.kv_heads / heads).max(1),
            graphs: HashMap::new(),
            drawer: None,
            scorer: Scorer::default(),
        })
    }

    /// Whether keys are attended to chunk by chunk, row by row: rows of one sequence side by side, as of a prompt, share
    /// what they read if they are taken in blocks. So do those of whole texts, which alone see ahead.
    fn is_decode(&self, rows: &Rows<'_>) -> bool {
        if !rows.segments.is_empty() {
            return false;
        }
        let most = match 2 * rows.tables.len() >= rows.len() {
            true => decode_rows(self.limits),
            false => FEW_ROWS,
        };
        rows.len() <= most
    }

    /// The rows of sequences that decode beside prompts, which come first, and the others in blocks: (first row, rows).
    fn divide(&self, rows: &Rows<'_>) -> (usize, Vec<[u32; 2]>) {
        let most = if rows.segments.is_empty() { decode_rows(self.limits) } else { 0 };
        // No graph is kept of such a step, so that its last rows are in a block at any rate.
        let most = most.min(rows.len().saturating_sub(1));
        let blocks = blocks(rows.sequences, self.block_rows);
        let decode = |block: &&Range<usize>| block.len() < self.block_rows && block.end <= most;
        let (decoding, prompts) = blocks.split_at(blocks.iter().take_while(decode).count());
        let prompts = prompts.iter().map(|block| [block.start as u32, block.len() as u32]);
        (decoding.last().map_or(0, |block| block.end), prompts.collect())
    }

    /// Sends the rows, and says where they will be.
    pub fn send(&mut self, stream: &Stream, rows: Rows<'_>, logit_rows: &[usize]) -> Step {
        let StepLimits { rows: most, logit_rows: most_logits, positions } = self.limits;
        let is_decode = self.is_decode(&rows);
        let padded = if is_decode { bucket(rows.len()) } else { rows.len() };
        let padded_logits = if is_decode { bucket(logit_rows.len()) } else { logit_rows.len() };
        assert!(
            padded <= bucket(most) && padded_logits <= bucket(most_logits),
            "a step of more rows than its stage was made for"
        );
        let last = rows.positions.iter().max().map_or(0, |last| *last as usize);
        assert!(
            rows.tables.len() <= most_logits.max(1)
                && rows.tables.iter().all(|table| table.len() <= positions.div_ceil(PAGE))
                && last < positions.next_multiple_of(PAGE),
            "a step of more sequences, or longer ones, than its stage was made for"
        );
        let (decoding, blocks) = match is_decode {
            true => (padded, Vec::new()),
            false => self.divide(&rows),
        };
        let seen = rows.positions[..decoding.min(rows.len())].iter().max();
        let slots = chunk_slots(seen.map_or(0, |last| *last as usize + 1));
        let stride = chunk_slots(last + 1) * CHUNK / PAGE;
        // Of a decoding step there are graphs, and products read as many weights for one row as for all.
        let may_part = !is_decode && logit_rows.len() <= decode_rows(self.limits);
        let few = rows.few(logit_rows).filter(|_| may_part);
        let mut runs = runs(&rows);
        if is_decode && !runs.is_empty() {
            runs.resize(padded, [0; 4]);
        }
        let counts = [padded, padded_logits, blocks.len(), rows.segments.len(), runs.len()];
        let at = Places::of(self.region.address(), counts, stride);
        self.pinned.await_upload();
        let mut words = Words(self.pinned.bytes_mut());
        let mut put = |place: u64, numbers: &[u32]| {
            words.put((place - at.tokens) as usize / 4, numbers);
        };
        let pad = |numbers: &[u32], filler: u32| -> Vec<u32> {
            let fillers = std::iter::repeat_n(filler, padded - numbers.len());
            numbers.iter().copied().chain(fillers).collect()
        };
        put(at.tokens, &pad(rows.tokens, 0));
        put(at.positions, &pad(rows.positions, NOTHING));
        put(at.sequences, &pad(rows.sequences, 0));
        let mut indices: Vec<u32> = logit_rows.iter().map(|row| *row as u32).collect();
        indices.resize(padded_logits, NOTHING);
        put(at.indices, &indices);
        if let Some([_, positions, sequences]) = &few {
            put(at.indices + 4 * padded_logits as u64, &[&positions[..], sequences].concat());
        }
        put(at.block_list, blocks.as_flattened());
        if !rows.segments.is_empty() {
            put(at.segments, rows.segments);
            let lengths = rows.lengths();
            let of_rows = rows.sequences.iter().map(|text| lengths[*text as usize] as u32);
            put(at.lengths, &of_rows.collect::<Vec<_>>());
        }
        put(at.runs, runs.as_flattened());
        for (index, table) in rows.tables.iter().enumerate() {
            // Pages beyond the step's last position may be held already, and are not read.
            put(at.tables + 4 * (index * stride) as u64, &table[..table.len().min(stride)]);
        }
        stream.upload(&self.pinned, &self.region, at.bytes(rows.tables.len()));
        Step {
            rows: padded,
            logit_rows: padded_logits,
            decoding,
            chunk_slots: slots,
            blocks: blocks.len(),
            runs: runs.len(),
            at,
            partial_sums: self.partial_sums.address(),
            partial_stats: self.partial_stats.address(),
            tickets: self.tickets.address(),
            gives_few: few.is_some(),
        }
    }

    /// Runs a step's launches; those of decoding are kept from the second time on.
    pub fn run(&mut self, stream: &Stream, step: Step, mut body: impl FnMut(Step)) {
        if step.blocks > 0 {
            return body(step);
        }
        let Step { rows, logit_rows, chunk_slots, .. } = step;
        let form = StepForm { rows, logit_rows, chunk_slots };
        match self.graphs.get_mut(&form) {
            None => {
                body(step);
                self.graphs.insert(form, KeptLaunches::Seen);
            }
            Some(kept @ KeptLaunches::Seen) => {
                *kept = stream
                    .capture(|| body(step))
                    .map_or(KeptLaunches::Nothing, KeptLaunches::Graph);
            }
            Some(KeptLaunches::Graph(graph)) => stream.replay(graph),
            Some(KeptLaunches::Nothing) => body(step),
        }
    }
}

/// The rows of each sequence where these have states; see [`Places::runs`].
fn runs(rows: &Rows<'_>) -> Vec<[u32; 4]> {
    if rows.states.is_empty() {
        return Vec::new();
    }
    let run = |rows_of: Range<usize>| {
        let own = rows.states[rows.sequences[rows_of.start] as usize];
        let (first, end) = (rows_of.start as u32, rows_of.end as u32);
        [first, end, end - own.drafted, own.slot]
    };
    blocks(rows.sequences, usize::MAX).into_iter().map(run).collect()
}

pub struct Words<'a>(pub &'a mut [u8]);

impl Words<'_> {
    pub fn clear(&mut self, at: usize, count: usize) {
        self.0[4 * at..][..4 * count].fill(0);
    }

    pub fn put(&mut self, at: usize, words: &[u32]) {
        let to = self.0[4 * at..][..4 * words.len()].as_chunks_mut::<4>().0;
        for (to, word) in to.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::machine::MOST_DECODE_ROWS;

    #[test]
    fn buckets_hold_their_rows_and_are_few() {
        let mut buckets: Vec<usize> = (1..=MOST_DECODE_ROWS).map(bucket).collect();
        assert!(buckets.iter().zip(1..).all(|(bucket, rows)| *bucket >= rows));
        buckets.dedup();
        assert_eq!(buckets, [1, 2, 4, 8, 12, 16, 32, 48, 64, 80, 96, 112, 128]);
    }
}
