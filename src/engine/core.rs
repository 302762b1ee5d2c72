//! The engine's thread: take what arrived, step, tell.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use rayon::prelude::*;

use super::constraint::{Compiler, State};
use super::request::{FinishReason, TokenLogprobs};
use super::runner::Runner;
use super::sampler::Sampler;
use super::scheduler::{Scheduler, Share};
use super::sequence::Sequence;
use super::stats::EngineStats;
use super::{EngineError, EngineOptions};
use crate::model::{CostModel, Decoder};
use crate::ops::Ops;
use crate::tokenizer::{Piece, Tokenizer};

pub struct Core {
    scheduler: Scheduler,
    runner: Runner,
    compiler: Compiler,
    tokenizer: Arc<Tokenizer>,
    ops: Ops,
    /// Ids in the model's table that no token has: rows of padding.
    absent: Vec<u32>,
    costs: CostModel,
    stats: EngineStats,
}

/// What came of one row of logits.
enum Draw {
    Token(u32, Option<TokenLogprobs>),
    /// The grammar could not say what may follow, or nothing may.
    Dead,
}

impl Core {
    pub fn new(
        decoder: Decoder,
        tokenizer: Arc<Tokenizer>,
        eos_ids: &[u32],
        ops: Ops,
        options: EngineOptions,
    ) -> Result<Core, EngineError> {
        let vocab_size = decoder.config.vocab_size;
        let pieces = tokenizer.pieces();
        let is_absent = |id: &u32| matches!(pieces.get(*id as usize), None | Some(Piece::Absent));
        Ok(Core {
            scheduler: Scheduler::new(options.pages, options.max_batch, options.prefill_rows),
            compiler: Compiler::new(tokenizer.clone(), vocab_size, eos_ids)?,
            absent: (0..vocab_size as u32).filter(is_absent).collect(),
            costs: CostModel::new(&decoder.config, decoder.precision()),
            stats: EngineStats {
                pages: options.pages,
                ..EngineStats::default()
            },
            runner: Runner::new(decoder, options.pages),
            tokenizer,
            ops,
        })
    }

    /// Serves until every handle is gone and every request done; gives what it counted.
    pub fn run(mut self, arrivals: &Receiver<Sequence>) -> EngineStats {
        loop {
            if self.scheduler.is_idle() {
                match arrivals.recv() {
                    Ok(sequence) => self.add(sequence),
                    Err(_) => return self.stats,
                }
            }
            while let Ok(sequence) = arrivals.try_recv() {
                self.add(sequence);
            }
            self.step();
        }
    }

    /// Schedule, forward, sample, finish.
    fn step(&mut self) {
        self.scheduler.drop_cancelled();
        let shares = self.scheduler.schedule();
        if shares.is_empty() {
            return;
        }
        let ops = self.ops.clone();
        let draws = ops.run(|| self.compute(&shares));
        self.advance(&shares);
        self.finish(draws);
    }

    /// Forward and sample, while the other engines wait.
    fn compute(&mut self, shares: &[Share]) -> Vec<(usize, Draw)> {
        let started = Instant::now();
        let ready = self
            .runner
            .forward(&self.ops, &self.scheduler.running, shares);
        let draws = self.sample(&ready);
        let (costs, busy) = (&self.costs, started.elapsed());
        self.stats
            .record_step(costs, &self.scheduler, shares, ready.len(), busy);
        draws
    }

    /// A grammar that holds from the start dictates its first tokens before anything is computed.
    fn add(&mut self, mut sequence: Sequence) {
        let constraint = sequence.request.constraint.clone();
        if let Some(constraint) = constraint.filter(|constraint| constraint.after.is_none()) {
            match self.compiler.start(&constraint.grammar) {
                Ok(state) => sequence.grammar = Some(state),
                Err(error) => return sequence.refuse(error),
            }
            if let Some(reason) = force(&mut sequence, &self.tokenizer) {
                return sequence.finish(reason);
            }
        }
        self.scheduler.add(sequence);
    }

    /// Masks and draws, a row a task; each depends on its own sequence alone.
    fn sample(&mut self, ready: &[Share]) -> Vec<(usize, Draw)> {
        let running = &mut self.scheduler.running;
        let mut rows: Vec<Option<&mut [f32]>> = running.iter().map(|_| None).collect();
        for (share, logits) in ready.iter().zip(self.runner.logits()) {
            rows[share.sequence] = Some(logits);
        }
        let (ops, absent) = (&self.ops, &self.absent);
        let tasks = running.par_iter_mut().zip(rows).enumerate();
        tasks
            .filter_map(|(index, (sequence, logits))| Some((index, sequence, logits?)))
            .map_init(Sampler::default, |sampler, (index, sequence, logits)| {
                (index, draw(ops, sampler, sequence, absent, logits))
            })
            .collect()
    }

    /// Counts what was computed, and enters the pages that are full.
    fn advance(&mut self, shares: &[Share]) {
        for share in shares {
            self.scheduler.running[share.sequence].computed += share.rows;
            self.scheduler.register_pages(share.sequence);
        }
    }

    /// Appends the drawn tokens; sequences that end leave.
    fn finish(&mut self, mut draws: Vec<(usize, Draw)>) {
        let now = Instant::now();
        draws.sort_unstable_by_key(|(index, _)| std::cmp::Reverse(*index));
        for (index, draw) in draws {
            let sequence = &mut self.scheduler.running[index];
            let reason = match draw {
                Draw::Dead => Some(FinishReason::Constraint),
                Draw::Token(token, logprobs) => {
                    self.stats.record_token(sequence, now);
                    append(
                        sequence,
                        token,
                        logprobs,
                        &self.tokenizer,
                        &mut self.compiler,
                    )
                }
            };
            sequence.give_pieces(false);
            if let Some(reason) = reason {
                self.scheduler.remove(index).finish(reason);
            }
        }
    }
}

fn draw(
    ops: &Ops,
    sampler: &mut Sampler,
    sequence: &mut Sequence,
    absent: &[u32],
    logits: &mut [f32],
) -> Draw {
    for &id in absent {
        logits[id as usize] = f32::NEG_INFINITY;
    }
    let unchanged = sequence
        .request
        .logprobs
        .map(|count| (count, logits.to_vec()));
    if let Some(grammar) = &mut sequence.grammar
        && !grammar.mask(logits)
    {
        return Draw::Dead;
    }
    let request = &sequence.request;
    let mut seen = Vec::new();
    if request.sampling.repetition_penalty.is_some() {
        seen.clone_from(&sequence.tokens);
        seen.sort_unstable();
        seen.dedup();
    }
    let place = (request.seed, sequence.tokens.len() as u64);
    match sampler.draw(ops, logits, &seen, &request.sampling, place) {
        Some(token) => {
            let logprobs =
                unchanged.map(|(count, logits)| sampler.logprobs(ops, &logits, token, count));
            Draw::Token(token, logprobs)
        }
        None => Draw::Dead,
    }
}

/// Appends a drawn token, and what the grammar dictates after it. Gives the reason if the completion ends.
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

/// Appends the tokens that the grammar dictates from here, all at once.
fn force(sequence: &mut Sequence, tokenizer: &Tokenizer) -> Option<FinishReason> {
    let mut tokens = sequence.grammar.as_mut()?.force().into_iter();
    let reason = tokens.find_map(|token| sequence.push(token, None, true, tokenizer));
    // The grammar has taken every token already, those that a limit cut off too.
    let whole = tokens.len() == 0;
    let complete = sequence.grammar.as_ref().is_some_and(State::is_complete);
    if whole && complete {
        Some(FinishReason::Stop)
    } else {
        reason
    }
}
