//! What an engine did, counted by its own thread and handed over when it ends or is asked.

use std::time::Duration;

use super::scheduler::{DECODE_ROWS, ScheduledRows, Scheduler};
use crate::model::CostModel;

#[derive(Clone, Debug, Default)]
pub struct EngineStats {
    /// Steps of decoding sequences alone.
    pub decode: Work,
    /// Steps with a chunk of a prompt in them.
    pub prefill: Work,
    pub counts: Counts,
    /// Tokens of completions that were sampled, and those that grammars dictated.
    pub sampled_tokens: u64,
    pub forced_tokens: u64,
    pub pages: usize,
    /// Pages that sequences held at once, at most.
    pub pages_peak: usize,
    /// Tokens that sequences drafted, and of them those that were then drawn or dictated.
    pub drafted_tokens: u64,
    pub accepted_tokens: u64,
}

/// What a scheduler counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sequences that joined the batch.
    pub admitted: u64,
    /// The tokens of their prompts.
    pub prompt_tokens: u64,
    /// The prompt tokens that were found in the prefix index.
    pub cached_tokens: u64,
    /// How often a sequence made room for older ones.
    pub preemptions: u64,
    /// Sequences that nobody waited for any more.
    pub cancelled: u64,
}

/// How an engine stands between two steps.
#[derive(Clone, Debug)]
pub struct EngineSnapshot {
    /// Sequences in the running batch, and those that wait for it.
    pub running: usize,
    pub waiting: usize,
    /// Pages that sequences hold, of `stats.pages`.
    pub pages_in_use: usize,
    /// Tokens of the prompts of both that are still to be computed.
    pub pending_prompt_tokens: usize,
    pub stats: EngineStats,
}

/// Steps of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    pub steps: u64,
    pub rows: u64,
    /// At least.
    pub bytes_read: u64,
    /// In forward pass, masks and sampling; waiting for other engines is left out.
    pub busy: Duration,
    /// From a step's draws to the start of the next one, where there is one: tokens are accepted, forced and appended, and the
    /// next step is scheduled. A GPU has nothing to do then.
    pub idle: Duration,
}

impl EngineStats {
    /// The counters of a step of these rows.
    pub(super) fn work(&mut self, scheduled: &[ScheduledRows]) -> &mut Work {
        match scheduled.iter().any(|part| part.rows > DECODE_ROWS) {
            true => &mut self.prefill,
            false => &mut self.decode,
        }
    }

    /// Counts a step of which `logit_rows` rows gave logits; its rows are not yet counted as computed.
    pub(super) fn record_step(
        &mut self,
        costs: &CostModel,
        scheduler: &Scheduler,
        scheduled: &[ScheduledRows],
        logit_rows: usize,
        busy: Duration,
    ) {
        let span = |part: &ScheduledRows| {
            let computed = scheduler.running[part.sequence].computed;
            computed..computed + part.rows
        };
        let rows: usize = scheduled.iter().map(|part| part.rows).sum();
        let work = self.work(scheduled);
        work.steps += 1;
        work.rows += rows as u64;
        work.bytes_read += costs.step(scheduled.iter().map(span), logit_rows);
        work.busy += busy;
        self.pages_peak = self.pages_peak.max(scheduler.pool.in_use());
    }
}
