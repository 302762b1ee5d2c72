//! The engine's thread: take new requests, compute a step, report results.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use super::draw::{Draw, append, force, sampling_request};
use super::runner::{Runner, Tip};
use super::scheduler::{ScheduledRows, Scheduler};
use super::scores::name_tokens_alone;
use super::sequence::Sequence;
use super::stats::{EngineSnapshot, EngineStats};
use super::turns::{POLL, Place, Turns};
use super::usage::FinishReason;
use super::{EngineError, EngineOptions};
use crate::model::{CostModel, Decoder};
use crate::ops::sampling::SamplingRequest;
use crate::ops::{Backend, OpsError};
use crate::tokenizer::Tokenizer;

pub struct Core<B: Backend> {
    scheduler: Scheduler,
    runner: Runner<B>,
    tokenizer: Arc<Tokenizer>,
    ops: B,
    /// One bit for each row of the embedding table: whether a token has this id. The other rows are padding.
    present: Arc<[u32]>,
    name: String,
    costs: CostModel,
    stats: EngineStats,
    /// Since when the machine has had nothing to do, where requests were at hand.
    idle_since: Option<Instant>,
    /// Among the engines of its machine.
    place: Place,
}

pub enum Message {
    Sequence(Box<Sequence>),
    /// To be told how the engine stands.
    Snapshot(OnSnapshot),
    Turns(Arc<Turns>),
}

/// Takes a snapshot, on the engine's thread: it must return at once and never panic.
pub type OnSnapshot = Box<dyn FnOnce(EngineSnapshot) + Send>;

impl<B: Backend> Core<B> {
    pub fn new(
        name: &str,
        decoder: Decoder<B>,
        tokenizer: Arc<Tokenizer>,
        ops: B,
        options: EngineOptions,
    ) -> Result<Core<B>, EngineError> {
        let vocab_size = decoder.config.vocab_size;
        let slots = match decoder.config.delta {
            None => 0,
            Some(_) => options.slots.max(options.max_batch).max(1),
        };
        let options = EngineOptions { slots, ..options };
        Ok(Core {
            scheduler: Scheduler::new(options),
            present: tokenizer.present(vocab_size),
            name: name.to_owned(),
            costs: CostModel::new(&decoder.config, decoder.precision, B::MACHINE),
            stats: EngineStats { pages: options.pages, ..EngineStats::default() },
            runner: Runner::new(decoder, ops.clone(), options)?,
            tokenizer,
            ops,
            idle_since: None,
            place: Place::default(),
        })
    }

    /// Serves until the inbox is closed and every request done.
    pub fn run(&mut self, inbox: &Receiver<Message>) -> Result<(), EngineError> {
        match catch_unwind(AssertUnwindSafe(|| self.serve(inbox))) {
            Ok(served) => Ok(served?),
            Err(panic) => Err(EngineError::died(panic.as_ref())),
        }
    }

    fn serve(&mut self, inbox: &Receiver<Message>) -> Result<(), OpsError> {
        loop {
            if self.scheduler.is_idle() {
                self.idle_since = None;
                self.waits();
                match inbox.recv() {
                    Ok(message) => self.receive(message),
                    Err(_) => return Ok(()),
                }
            }
            while let Ok(message) = inbox.try_recv() {
                self.receive(message);
            }
            while self.waits() {
                self.idle_since = None; // The machine is at work for others.
                match inbox.recv_timeout(POLL) {
                    Ok(message) => self.receive(message),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            self.step()?;
            self.place.stepped();
        }
    }

    /// Tells the machine's other engines how many sequences there are, and whether to wait for more.
    fn waits(&mut self) -> bool {
        let sequences = self.scheduler.running.len() + self.scheduler.waiting();
        self.place.waits(sequences, self.scheduler.options.max_batch)
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Sequence(sequence) => self.add(*sequence),
            Message::Snapshot(on_snapshot) => {
                self.scheduler.drop_cancelled();
                on_snapshot(self.snapshot());
            }
            Message::Turns(turns) => self.place = Place::new(turns),
        }
    }

    /// Queues a sequence. A grammar that holds from the start forces its first tokens before anything is computed.
    fn add(&mut self, mut sequence: Sequence) {
        if sequence.ended.is_none() {
            sequence.ended = force(&mut sequence, &self.tokenizer);
            self.stats.forced_tokens += sequence.usage.forced_tokens as u64;
        }
        match sequence.done() {
            Some(reason) => sequence.finish(reason),
            None => self.scheduler.add(sequence),
        }
    }

    /// Schedule, forward, sample, append.
    fn step(&mut self) -> Result<(), OpsError> {
        self.scheduler.drop_cancelled();
        let scheduled = self.scheduler.schedule();
        if scheduled.is_empty() {
            return Ok(());
        }
        if let Some(since) = self.idle_since.take() {
            self.stats.work(&scheduled).idle += since.elapsed();
        }
        let ops = self.ops.clone();
        ops.run(|| self.compute(&scheduled))?;
        self.advance(&scheduled);
        self.finish();
        Ok(())
    }

    /// Forward, sample, append; where a draft token equals the sampled one, the next row is sampled too. Where a CPU does all
    /// this, the other engines wait.
    fn compute(&mut self, scheduled: &[ScheduledRows]) -> Result<(), OpsError> {
        let started = Instant::now();
        self.runner.copy_states(self.scheduler.pool.snapshots.copies.drain(..));
        let tips = self.runner.forward(&self.scheduler.running, scheduled);
        let mut draws = self.sample(&tips)?;
        self.score()?;
        let (costs, busy) = (&self.costs, started.elapsed());
        let logit_rows = self.runner.logit_rows();
        self.stats.record_step(costs, &self.scheduler, scheduled, logit_rows, busy);
        loop {
            let drawn_at = Instant::now();
            let tips = self.append(draws);
            if tips.is_empty() {
                self.idle_since = Some(drawn_at);
                return Ok(());
            }
            let started = Instant::now();
            draws = self.sample(&tips)?;
            let work = self.stats.work(scheduled);
            work.idle += started - drawn_at;
            work.busy += started.elapsed();
        }
    }

    /// Computes the grammars' masks in parallel and samples; each sequence's result depends on it alone.
    fn sample(&mut self, tips: &[Tip]) -> Result<Vec<(Tip, Draw)>, OpsError> {
        let mut is_ready = vec![false; self.scheduler.running.len()];
        for tip in tips {
            is_ready[tip.sequence] = true;
        }
        let present = &self.present;
        let tasks = self.scheduler.running.iter_mut().zip(is_ready).collect();
        let requests: Vec<Option<SamplingRequest>> =
            self.ops.map_each(tasks, |(sequence, is_ready)| {
                is_ready.then(|| sampling_request(sequence, present))?
            });
        // Neither tips nor their rows come in the order of their sequences.
        let mut by_row = vec![None; tips.iter().map(|tip| tip.row + 1).max().unwrap_or(0)];
        for tip in tips {
            by_row[tip.row].clone_from(&requests[tip.sequence]);
        }
        let mut drawn = self.runner.draw(&by_row)?;
        let take = |tip: &Tip| (*tip, Draw::from(std::mem::take(&mut drawn[tip.row])));
        Ok(tips.iter().map(take).collect())
    }

    /// Gives sequences the log-probabilities of tokens that were known before their rows were computed.
    fn score(&mut self) -> Result<(), OpsError> {
        let known = self.runner.known();
        if known.is_empty() {
            return Ok(());
        }
        let running = &mut self.scheduler.running;
        let wanted = known.iter().map(|known| {
            let sequence = &running[known.sequence];
            (sequence.tokens[known.row + 1], sequence.scores.likeliest(known.row))
        });
        let wanted: Vec<(u32, usize)> = wanted.collect();
        let scores = self.runner.score(&wanted)?;
        for (known, mut score) in self.runner.known().iter().zip(scores) {
            name_tokens_alone(&mut score, &self.present);
            let sequence = &mut running[known.sequence];
            match score.chosen.is_nan() {
                true => sequence.fail(EngineError::not_finite(&self.name, known.row)),
                false => sequence.scores.take(score),
            }
        }
        Ok(())
    }

    /// Appends the drawn tokens, sequences side by side: each takes its own, and what its grammar forces after it. Gives the
    /// tips of sequences that may go on in this step.
    fn append(&mut self, draws: Vec<(Tip, Draw)>) -> Vec<Tip> {
        let running = &mut self.scheduler.running;
        let mut drawn: Vec<Option<(Tip, Draw)>> = running.iter().map(|_| None).collect();
        for (tip, draw) in draws {
            if matches!(draw, Draw::Token(..)) {
                self.stats.sampled_tokens += 1;
            }
            drawn[tip.sequence] = Some((tip, draw));
        }
        let (tokenizer, name, present) = (&self.tokenizer, &self.name, &self.present);
        let append_one = |(sequence, drawn): (&mut Sequence, Option<(Tip, Draw)>)| {
            let (tip, draw) = drawn?;
            match draw {
                _ if sequence.failure.is_some() => return None,
                Draw::Dead => sequence.ended = Some(FinishReason::Constraint),
                Draw::Broken => {
                    sequence.fail(EngineError::not_finite(name, sequence.tokens.len() - 1));
                    return None;
                }
                Draw::Token(token, mut logprobs) => {
                    logprobs.iter_mut().for_each(|one| name_tokens_alone(one, present));
                    sequence.ended = append(sequence, token, logprobs, tokenizer);
                }
            }
            sequence.give_pieces(false);
            match sequence.ended {
                None => tip.follow(sequence),
                Some(_) => None,
            }
        };
        let forced_before = forced_tokens(running);
        // Without a grammar a token is appended sooner than another thread hears of it.
        let has_grammars = running.iter().any(|sequence| sequence.grammar.is_some());
        let tasks = running.iter_mut().zip(drawn);
        let tips: Vec<Option<Tip>> = match has_grammars {
            true => self.ops.map_each(tasks.collect(), append_one),
            false => tasks.map(append_one).collect(),
        };
        self.stats.forced_tokens += forced_tokens(running) - forced_before;
        tips.into_iter().flatten().collect()
    }

    /// Counts what was computed, and enters the pages that are full.
    fn advance(&mut self, scheduled: &[ScheduledRows]) {
        for part in scheduled {
            let sequence = &mut self.scheduler.running[part.sequence];
            self.stats.drafted_tokens += sequence.draft.len() as u64;
            self.stats.accepted_tokens += sequence.advance(part.rows) as u64;
            self.scheduler.register_pages(part.sequence);
        }
    }

    /// Sequences that ended leave, unless log-probabilities of their tokens are still to come.
    fn finish(&mut self) {
        for index in (0..self.scheduler.running.len()).rev() {
            if let Some(reason) = self.scheduler.running[index].done() {
                self.scheduler.remove(index).finish(reason);
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

    pub fn stats(&self) -> EngineStats {
        EngineStats { counts: self.scheduler.counts, ..self.stats.clone() }
    }
}

fn forced_tokens(sequences: &[Sequence]) -> u64 {
    sequences.iter().map(|sequence| sequence.usage.forced_tokens as u64).sum()
}
