//! Which sequences run in the next step, and with how many rows: decode rows first, then chunks of prompts, under a budget.

use super::block_pool::BlockPool;
use super::rotation::Rotation;
use super::sequence::Sequence;
use super::snapshots::find_state;
use super::stats::Counts;
use super::{EngineOptions, draft};
use crate::ops::PAGE;

/// A sequence with no more pending rows than this is decoding: one sampled token and those that it forced. A draft does
/// not raise this limit.
pub const DECODE_ROWS: usize = 32;

pub struct Scheduler {
    waiting: Rotation<Sequence>,
    /// By age, oldest first.
    pub running: Vec<Sequence>,
    pub pool: BlockPool,
    pub counts: Counts,
    pub options: EngineOptions,
}

/// Rows of one running sequence in a step: its next `rows` tokens, those of its draft among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledRows {
    /// Index into `running`.
    pub sequence: usize,
    pub rows: usize,
}

impl Scheduler {
    pub fn new(options: EngineOptions) -> Scheduler {
        Scheduler {
            waiting: Rotation::default(),
            running: Vec::new(),
            pool: BlockPool::new(options.pages, options.slots),
            counts: Counts::default(),
            options,
        }
    }

    pub fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    pub fn add(&mut self, sequence: Sequence) {
        self.waiting.push(sequence.request.caller, sequence);
    }

    /// Decides the next step. The pages of all its rows are allocated when this returns.
    pub fn schedule(&mut self) -> Vec<ScheduledRows> {
        self.admit();
        loop {
            let mut scheduled = self.divide();
            match scheduled.iter().try_for_each(|part| self.make_room(*part)) {
                Ok(()) => {
                    scheduled.iter_mut().for_each(|part| self.add_draft(part));
                    return scheduled;
                }
                // Out of pages: the youngest makes room, and the step is divided anew.
                Err(OutOfPages) => self.preempt(self.running.len() - 1),
            }
        }
    }

    /// Moves waiting sequences to the running ones while there is room: first of callers of whom none runs, then in rotation. Where the batch
    /// is full, the youngest of whoever has most makes room for a caller who has none of it.
    fn admit(&mut self) {
        while !self.waiting.is_empty() {
            let is_full = self.running.len() >= self.options.max_batch.max(1);
            let giving = if is_full { self.giving() } else { None };
            let next = match is_full {
                true if giving.is_none() => return,
                true => self.next(true),
                false => self.next(true).or_else(|| self.next(false)),
            };
            let Some(mut sequence) = next else { return };
            if let Some(index) = giving {
                self.preempt(index);
            }
            if self.options.slots > 0 {
                sequence.slot = self.pool.snapshots.begin(sequence.chain.last().copied());
            }
            let found = sequence.computed.min(sequence.prompt_tokens());
            if sequence.admit(found) {
                self.counts.admitted += 1;
                self.counts.prompt_tokens += sequence.prompt_tokens() as u64;
                self.counts.cached_tokens += found as u64;
            }
            let at = self.running.partition_point(|other| other.age < sequence.age);
            self.running.insert(at, sequence);
        }
    }

    /// The next that waits, with the pages of its prefix. One whose prefix is being computed by another waits for it without holding up the
    /// rest; one for which pages are missing holds up all.
    fn next(&mut self, of_new_callers: bool) -> Option<Sequence> {
        let has_states = self.options.slots > 0;
        let (running, pool, mut is_full) = (&mut self.running, &mut self.pool, false);
        self.waiting.take(|sequence| {
            let caller = sequence.request.caller;
            let is_new = || running.iter().all(|other| other.request.caller != caller);
            if is_full || (of_new_callers && !is_new()) {
                return false;
            }
            find_prefix(pool, sequence);
            let waits = match has_states {
                true => find_state(running, pool, sequence),
                false => shares_next_page(running, sequence),
            };
            let wanted = (sequence.tokens.len() + 1).div_ceil(PAGE) - sequence.pages.len();
            is_full = !waits && wanted > pool.available() && !running.is_empty();
            if waits || is_full {
                forget_prefix(pool, sequence);
            }
            !waits && !is_full
        })
    }

    /// The youngest of the caller that has most of the batch, and more than one.
    fn giving(&self) -> Option<usize> {
        let count = |caller| self.running.iter().filter(|one| one.request.caller == caller).count();
        let counts = self.running.iter().map(|one| count(one.request.caller)).enumerate();
        let several = counts.filter(|(_, count)| *count > 1);
        several.max_by_key(|(_, count)| *count).map(|(index, _)| index)
    }

    /// Shares the step's rows: all decoding sequences, then prompts, oldest first.
    fn divide(&self) -> Vec<ScheduledRows> {
        let mut left = self.options.prefill_rows.max(1);
        let mut known_left = self.options.known_logit_rows;
        let mut scheduled = Vec::with_capacity(self.running.len());
        for is_decode in [true, false] {
            for (index, sequence) in self.running.iter().enumerate() {
                let pending = sequence.pending();
                if (pending <= DECODE_ROWS) != is_decode {
                    continue;
                }
                let rows = if is_decode { pending } else { pending.min(left) };
                let rows = sequence.rows_to_mark(rows);
                let (rows, known) =
                    sequence.scores.rows_within(sequence.computed, rows, known_left);
                known_left -= known;
                left -= if is_decode { 0 } else { rows };
                if rows > 0 {
                    scheduled.push(ScheduledRows { sequence: index, rows });
                }
            }
        }
        scheduled
    }

    fn make_room(&mut self, part: ScheduledRows) -> Result<(), OutOfPages> {
        let sequence = &mut self.running[part.sequence];
        while sequence.pages.len() * PAGE < sequence.computed + part.rows {
            sequence.pages.push(self.pool.allocate().ok_or(OutOfPages)?);
        }
        Ok(())
    }

    /// Lets a decoding sequence draft, where pages are left: nobody makes room for guesses.
    fn add_draft(&mut self, part: &mut ScheduledRows) {
        let sequence = &mut self.running[part.sequence];
        if sequence.ended.is_some() || part.rows < sequence.pending() {
            return;
        }
        // The last token that it may say needs no row of its own.
        let left = sequence.request.max_tokens - sequence.completion_tokens() - 1;
        let room = DECODE_ROWS.saturating_sub(sequence.pending());
        let most = self.options.draft.min(room).min(left);
        if most == 0 {
            return;
        }
        sequence.draft = match sequence.request.expected.is_empty() {
            true => draft::look_up(&sequence.tokens, most),
            false => sequence.expected(most).to_vec(),
        };
        let drafted = ScheduledRows { rows: part.rows + sequence.draft.len(), ..*part };
        match self.make_room(drafted) {
            Ok(()) => *part = drafted,
            Err(OutOfPages) => self.running[part.sequence].draft.clear(),
        }
    }

    /// It goes back before what its caller has waiting. What it computed stays in the index while room lasts.
    fn preempt(&mut self, index: usize) {
        let mut sequence = self.running.remove(index);
        self.counts.preemptions += 1;
        forget_prefix(&mut self.pool, &mut sequence);
        self.pool.snapshots.end(&mut sequence.slot);
        sequence.preemptions += 1;
        self.waiting.push_first(sequence.request.caller, sequence);
    }

    /// Enters the pages that this step filled.
    pub fn register_pages(&mut self, index: usize) {
        let sequence = &mut self.running[index];
        while (sequence.chain.len() + 1) * PAGE <= sequence.computed {
            let Some((parent, tokens)) = sequence.next_page() else {
                break;
            };
            let page = sequence.pages[sequence.chain.len()];
            let entry = self.pool.index.insert(parent, tokens, page);
            sequence.chain.push(entry);
        }
        // A step ends at a mark, and goes past none.
        let Some(mark) = sequence.marks.first().filter(|mark| **mark * PAGE <= sequence.computed)
        else {
            return;
        };
        if let (Some(slot), Some(entry)) = (sequence.slot, sequence.chain.get(mark - 1)) {
            self.pool.snapshots.keep(*entry, slot);
        }
        sequence.marks.remove(0);
    }

    /// Takes a finished sequence out and gives its pages back.
    pub fn remove(&mut self, index: usize) -> Sequence {
        let mut sequence = self.running.remove(index);
        self.pool.release(&mut sequence.pages);
        self.pool.snapshots.end(&mut sequence.slot);
        sequence
    }

    pub fn drop_cancelled(&mut self) {
        let waited = self.waiting.len();
        self.waiting.retain(|sequence| !sequence.events.is_cancelled());
        self.counts.cancelled += (waited - self.waiting.len()) as u64;
        for index in (0..self.running.len()).rev() {
            if self.running[index].events.is_cancelled() {
                self.remove(index);
                self.counts.cancelled += 1;
            }
        }
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Tokens of prompts, here or waiting, that are still to be computed.
    pub fn pending_prompt_tokens(&self) -> usize {
        let all = self.waiting.iter().chain(&self.running);
        all.map(|sequence| sequence.prompt_tokens().saturating_sub(sequence.computed)).sum()
    }
}

struct OutOfPages;

/// Takes the pages that hold the start of a waiting sequence's tokens.
fn find_prefix(pool: &mut BlockPool, sequence: &mut Sequence) {
    let most = sequence.reusable_pages();
    while sequence.pages.len() < most {
        let Some((parent, tokens)) = sequence.next_page() else {
            break;
        };
        let Some((entry, page)) = pool.index.find(parent, tokens) else {
            break;
        };
        pool.share(page);
        sequence.pages.push(page);
        sequence.chain.push(entry);
        sequence.computed += PAGE;
    }
}

fn forget_prefix(pool: &mut BlockPool, sequence: &mut Sequence) {
    pool.release(&mut sequence.pages);
    sequence.chain.clear();
    sequence.computed = 0;
}

/// Whether a running sequence is about to compute the page that `sequence` needs next.
fn shares_next_page(running: &[Sequence], sequence: &Sequence) -> bool {
    let most = sequence.reusable_pages();
    let wanted = sequence.next_page().filter(|_| sequence.chain.len() < most);
    wanted.is_some() && running.iter().any(|other| other.next_page() == wanted)
}

#[cfg(test)]
mod tests;
