//! The engine's thread: take new requests, compute a step, report results.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use rayon::prelude::*;

use super::constraint::{Compiler, State};
use super::request::FinishReason;
use super::runner::{Head, Runner};
use super::scheduler::{ScheduledRows, Scheduler};
use super::sequence::Sequence;
use super::stats::{EngineSnapshot, EngineStats};
use super::{EngineError, EngineOptions};
use crate::model::{CostModel, Decoder};
use crate::ops::sampling::{Drawn, SamplingRequest, TokenLogprobs, forbid, logprobs, philox};
use crate::ops::{Backend, OpsError};
use crate::tokenizer::{Piece, Tokenizer};

pub struct Core<B: Backend> {
    scheduler: Scheduler,
    runner: Runner<B>,
    compiler: Compiler,
    tokenizer: Arc<Tokenizer>,
    ops: B,
    /// One bit for each row of the embedding table: whether a token has this id. The other rows are padding.
    present: Arc<[u32]>,
    costs: CostModel,
    stats: EngineStats,
}

/// What an engine's thread is sent.
pub enum Message {
    Sequence(Box<Sequence>),
    /// To be told how the engine stands.
    Snapshot(OnSnapshot),
}

/// Takes a snapshot, on the engine's thread: it must return at once and never panic.
pub type OnSnapshot = Box<dyn FnOnce(EngineSnapshot) + Send>;

/// The result of sampling one row of logits.
enum Draw {
    Token(u32, Option<TokenLogprobs>),
    /// The grammar failed, or allows no token.
    Dead,
}

impl<B: Backend> Core<B> {
    pub fn new(
        decoder: Decoder<B>,
        tokenizer: Arc<Tokenizer>,
        eos_ids: &[u32],
        ops: B,
        options: EngineOptions,
    ) -> Result<Core<B>, EngineError> {
        let vocab_size = decoder.config.vocab_size;
        let pieces = tokenizer.pieces();
        let is_present = |id: usize| !matches!(pieces.get(id), None | Some(Piece::Absent));
        let word = |word: usize| {
            let ids = (32 * word..vocab_size.min(32 * word + 32)).filter(|id| is_present(*id));
            ids.fold(0, |bits, id| bits | 1 << (id % 32))
        };
        Ok(Core {
            scheduler: Scheduler::new(options),
            compiler: Compiler::new(tokenizer.clone(), vocab_size, eos_ids),
            present: (0..vocab_size.div_ceil(32)).map(word).collect(),
            costs: CostModel::new(&decoder.config, decoder.precision(), B::MACHINE),
            stats: EngineStats { pages: options.pages, ..EngineStats::default() },
            runner: Runner::new(decoder, ops.clone(), options)?,
            tokenizer,
            ops,
        })
    }

    /// Serves until the inbox is closed and every request done.
    ///
    /// # Errors
    /// When the machine fails, or the engine itself panics.
    pub fn run(&mut self, inbox: &Receiver<Message>) -> Result<(), EngineError> {
        match catch_unwind(AssertUnwindSafe(|| self.serve(inbox))) {
            Ok(served) => Ok(served?),
            Err(panic) => Err(EngineError::died(panic.as_ref())),
        }
    }

    fn serve(&mut self, inbox: &Receiver<Message>) -> Result<(), OpsError> {
        loop {
            if self.scheduler.is_idle() {
                match inbox.recv() {
                    Ok(message) => self.receive(message),
                    Err(_) => return Ok(()),
                }
            }
            while let Ok(message) = inbox.try_recv() {
                self.receive(message);
            }
            self.step()?;
        }
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Sequence(sequence) => self.add(*sequence),
            Message::Snapshot(on_snapshot) => {
                self.scheduler.drop_cancelled();
                on_snapshot(self.snapshot());
            }
        }
    }

    fn snapshot(&self) -> EngineSnapshot {
        let Scheduler { running, pool, .. } = &self.scheduler;
        EngineSnapshot {
            running: running.len(),
            waiting: self.scheduler.waiting(),
            pages_in_use: pool.in_use(),
            pending_prompt_tokens: self.scheduler.pending_prompt_tokens(),
            stats: self.stats(),
        }
    }

    /// What was counted so far.
    pub fn stats(&self) -> EngineStats {
        EngineStats { counts: self.scheduler.counts, ..self.stats.clone() }
    }

    /// Schedule, forward, sample, append; where a draft token equals the sampled one, the next row is sampled too.
    fn step(&mut self) -> Result<(), OpsError> {
        self.scheduler.drop_cancelled();
        let scheduled = self.scheduler.schedule();
        if scheduled.is_empty() {
            return Ok(());
        }
        let ops = self.ops.clone();
        let mut draws = ops.run(|| self.compute(&scheduled))?;
        let mut ended = Vec::new();
        loop {
            let heads = self.append(draws, &mut ended);
            if heads.is_empty() {
                break;
            }
            draws = ops.run(|| self.sample_again(&heads, &scheduled))?;
        }
        self.advance(&scheduled);
        self.finish(ended);
        Ok(())
    }

    /// Forward and sample; where a CPU does both, the other engines wait.
    fn compute(&mut self, scheduled: &[ScheduledRows]) -> Result<Vec<(Head, Draw)>, OpsError> {
        let started = Instant::now();
        let heads = self.runner.forward(&self.scheduler.running, scheduled);
        let draws = self.sample(&heads)?;
        let (costs, busy) = (&self.costs, started.elapsed());
        let logit_rows = self.runner.logit_rows();
        self.stats.record_step(costs, &self.scheduler, scheduled, logit_rows, busy);
        Ok(draws)
    }

    /// Draws from rows of logits that the step computed already.
    fn sample_again(
        &mut self,
        heads: &[Head],
        scheduled: &[ScheduledRows],
    ) -> Result<Vec<(Head, Draw)>, OpsError> {
        let started = Instant::now();
        let draws = self.sample(heads)?;
        self.stats.work(scheduled).busy += started.elapsed();
        Ok(draws)
    }

    /// Queues a sequence. A grammar that holds from the start forces its first tokens before anything is computed.
    fn add(&mut self, mut sequence: Sequence) {
        let constraint = sequence.request.constraint.clone();
        if let Some(constraint) = constraint.filter(|constraint| constraint.after.is_none()) {
            match self.compiler.start(&constraint.grammar) {
                Ok(state) => sequence.grammar = Some(state),
                Err(error) => return sequence.refuse(error),
            }
            let reason = force(&mut sequence, &self.tokenizer);
            self.stats.forced_tokens += sequence.forced_tokens as u64;
            if let Some(reason) = reason {
                return sequence.finish(reason);
            }
        }
        self.scheduler.add(sequence);
    }

    /// Computes the grammars' masks in parallel and samples; each sequence's result depends on it alone.
    fn sample(&mut self, heads: &[Head]) -> Result<Vec<(Head, Draw)>, OpsError> {
        let mut is_ready = vec![false; self.scheduler.running.len()];
        for head in heads {
            is_ready[head.sequence] = true;
        }
        let present = &self.present;
        let tasks = self.scheduler.running.par_iter_mut().zip(is_ready);
        let mut requests: Vec<Option<SamplingRequest>> =
            tasks.map(|(sequence, is_ready)| is_ready.then(|| order(sequence, present))?).collect();
        // Neither heads nor their rows come in the order of their sequences.
        let mut ordered = vec![None; heads.iter().map(|head| head.row + 1).max().unwrap_or(0)];
        for head in heads {
            ordered[head.row] = requests[head.sequence].take();
        }
        let mut drawn = self.runner.draw(&ordered)?;
        let running = &self.scheduler.running;
        let draws = heads.iter().map(|head| {
            let count = running[head.sequence].request.logprobs;
            let drawn = std::mem::take(&mut drawn[head.row]);
            (*head, Draw::of(drawn, count, present))
        });
        Ok(draws.collect())
    }

    /// Appends the drawn tokens, and notes which sequences ended. Gives the heads of those that may go on in this step.
    fn append(
        &mut self,
        draws: Vec<(Head, Draw)>,
        ended: &mut Vec<(usize, FinishReason)>,
    ) -> Vec<Head> {
        let now = Instant::now();
        let mut heads = Vec::new();
        for (head, draw) in draws {
            let sequence = &mut self.scheduler.running[head.sequence];
            let forced_before = sequence.forced_tokens;
            let reason = match draw {
                Draw::Dead => Some(FinishReason::Constraint),
                Draw::Token(token, logprobs) => {
                    self.stats.record_token(sequence, now);
                    append(sequence, token, logprobs, &self.tokenizer, &mut self.compiler)
                }
            };
            self.stats.forced_tokens += (sequence.forced_tokens - forced_before) as u64;
            sequence.give_pieces(false);
            match reason {
                Some(reason) => ended.push((head.sequence, reason)),
                None => heads.extend(head.follow(sequence)),
            }
        }
        heads
    }

    /// Counts what was computed, and enters the pages that are full.
    fn advance(&mut self, scheduled: &[ScheduledRows]) {
        for part in scheduled {
            let draft = self.scheduler.running[part.sequence].advance(part.rows);
            self.stats.record_draft(draft);
            self.scheduler.register_pages(part.sequence);
        }
    }

    /// Sequences that ended leave.
    fn finish(&mut self, mut ended: Vec<(usize, FinishReason)>) {
        ended.sort_unstable_by_key(|(index, _)| std::cmp::Reverse(*index));
        for (index, reason) in ended {
            self.scheduler.remove(index).finish(reason);
        }
    }
}

impl Draw {
    /// With the log-probabilities of the token and of the `count` likeliest, where they are wanted.
    fn of(drawn: Drawn, count: Option<usize>, present: &[u32]) -> Draw {
        let Some(token) = drawn.token else {
            return Draw::Dead;
        };
        let wanted = drawn.logits.zip(count);
        let logprobs = wanted.map(|(mut logits, count)| {
            forbid(present, &mut logits);
            logprobs(&logits, token, count)
        });
        Draw::Token(token, logprobs)
    }
}

/// What to sample for a sequence from its row of logits; `None` when its grammar failed.
fn order(sequence: &mut Sequence, present: &Arc<[u32]>) -> Option<SamplingRequest> {
    let allowed = match &mut sequence.grammar {
        Some(grammar) => grammar.allowed(present)?,
        None => present.clone(),
    };
    let request = &sequence.request;
    let mut seen = Vec::new();
    if request.sampling.penalty().is_some() {
        seen.clone_from(&sequence.tokens);
        seen.sort_unstable();
        seen.dedup();
    }
    Some(SamplingRequest {
        sampling: request.sampling,
        allowed,
        seen,
        random: philox(request.seed, sequence.tokens.len() as u64),
        keep_logits: request.logprobs.is_some(),
    })
}

/// Appends a sampled token and the tokens that the grammar forces after it. Gives the reason if the completion ends.
fn append(
    sequence: &mut Sequence,
    token: u32,
    logprobs: Option<TokenLogprobs>,
    tokenizer: &Tokenizer,
    compiler: &mut Compiler,
) -> Option<FinishReason> {
    let reason = sequence.push(token, logprobs, false, tokenizer);
    if let Some(grammar) = &mut sequence.grammar {
        if !grammar.accept(token) {
            return Some(FinishReason::Constraint);
        }
        if grammar.is_complete() {
            return Some(FinishReason::Stop);
        }
    }
    if reason.is_some() {
        return reason;
    }
    if let Some(constraint) = sequence.constraint_after(token) {
        match compiler.start(&constraint.grammar) {
            Ok(state) => sequence.grammar = Some(state),
            Err(_) => return Some(FinishReason::Constraint),
        }
    }
    force(sequence, tokenizer)
}

/// Appends the tokens that the grammar forces from here, all at once.
fn force(sequence: &mut Sequence, tokenizer: &Tokenizer) -> Option<FinishReason> {
    let mut tokens = sequence.grammar.as_mut()?.force().into_iter();
    let reason = tokens.find_map(|token| sequence.push(token, None, true, tokenizer));
    // The grammar has taken every token already, those that a limit cut off too.
    let whole = tokens.len() == 0;
    let complete = sequence.grammar.as_ref().is_some_and(State::is_complete);
    if whole && complete { Some(FinishReason::Stop) } else { reason }
}
