//! One token of one sequence: what may be drawn and how, and what follows from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::constraint::State;
use super::request::Stop;
use super::sequence::Sequence;
use super::spelling::only;
use super::usage::FinishReason;
use crate::ops::sampling::{Drawn, SamplingRequest, TokenLogprobs, philox};
use crate::tokenizer::Tokenizer;

/// The result of sampling one row of logits.
pub enum Draw {
    Token(u32, Option<TokenLogprobs>),
    /// The grammar failed, or allows no token.
    Dead,
    /// The logits are no numbers.
    Broken,
}

impl From<Drawn> for Draw {
    fn from(Drawn { token, logprobs, is_broken }: Drawn) -> Draw {
        let is_scored = logprobs.as_ref().is_none_or(|logprobs| !logprobs.chosen.is_nan());
        match token {
            _ if is_broken => Draw::Broken,
            Some(token) if is_scored => Draw::Token(token, logprobs),
            Some(_) => Draw::Broken,
            None => Draw::Dead,
        }
    }
}

/// What to sample for a sequence from its row of logits: one of the tokens `present`, its log-probability among all rows, as a client
/// finds that normalises logits. `None` when its grammar failed.
pub fn sampling_request(sequence: &mut Sequence, present: &Arc<[u32]>) -> Option<SamplingRequest> {
    let end_of_thinking = sequence.end_of_thinking();
    let mut allowed = match &mut sequence.grammar {
        Some(grammar) => grammar.allowed(present)?,
        None => match end_of_thinking {
            Some(token) => only(&[token], present.len()),
            None => present.clone(),
        },
    };
    let request = &sequence.request;
    if sequence.completion_tokens() < request.min_tokens {
        allowed = without_stops(allowed, &request.stop);
    }
    let mut seen = Vec::new();
    if request.sampling.penalty().is_some() {
        seen.clone_from(&sequence.tokens);
        seen.sort_unstable();
        seen.dedup();
    }
    Some(SamplingRequest {
        sampling: request.sampling.settled(),
        allowed,
        seen,
        added: additions(sequence),
        random: philox(request.seed, sequence.tokens.len() as u64),
        logprobs: request.logprobs,
    })
}

/// `allowed` without the ids that would end a completion before its time, unless a grammar leaves nothing else.
fn without_stops(allowed: Arc<[u32]>, stop: &Stop) -> Arc<[u32]> {
    let mut without = allowed.to_vec();
    for id in &stop.ids {
        if let Some(word) = without.get_mut(*id as usize / 32) {
            *word &= !(1 << (id % 32));
        }
    }
    if without.iter().all(|word| *word == 0) { allowed } else { without.into() }
}

/// What is added to logits: the request's bias, less its penalties on the tokens of the completion so far.
fn additions(sequence: &Sequence) -> Vec<(u32, f32)> {
    let request = &sequence.request;
    let mut added: BTreeMap<u32, f32> = BTreeMap::new();
    for (token, bias) in &request.logit_bias {
        *added.entry(*token).or_default() += bias;
    }
    let frequency = request.sampling.frequency_penalty.unwrap_or(0.0);
    let presence = request.sampling.presence_penalty.unwrap_or(0.0);
    if frequency != 0.0 || presence != 0.0 {
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        for token in sequence.said() {
            *counts.entry(*token).or_default() += 1;
        }
        for (token, count) in counts {
            *added.entry(token).or_default() -= frequency * count as f32 + presence;
        }
    }
    added.into_iter().collect()
}

/// Appends a sampled token and the tokens that the grammar forces after it. Gives the reason if the completion ends.
pub fn append(
    sequence: &mut Sequence,
    token: u32,
    logprobs: Option<TokenLogprobs>,
    tokenizer: &Tokenizer,
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
    sequence.start_grammar_after(token);
    force(sequence, tokenizer)
}

/// Appends the tokens that the grammar forces from here, all at once.
pub fn force(sequence: &mut Sequence, tokenizer: &Tokenizer) -> Option<FinishReason> {
    let mut tokens = sequence.grammar.as_mut()?.force().into_iter();
    let reason = tokens.find_map(|token| sequence.push(token, None, true, tokenizer));
    // The grammar has taken every token already, those that a limit cut off too.
    let whole = tokens.len() == 0;
    let complete = sequence.grammar.as_ref().is_some_and(State::is_complete);
    if whole && complete { Some(FinishReason::Stop) } else { reason }
}
