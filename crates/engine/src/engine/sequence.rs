//! One request in progress: its tokens, its pages, and the text generated so far.

use std::collections::VecDeque;
use std::time::Instant;

use super::EngineError;
use super::constraint::State;
use super::events::{Event, Events};
use super::prefix::EntryId;
use super::request::{Completion, Request, Timings, TokenLogprobs};
use super::text::{Part, Text};
use super::usage::{FinishReason, Usage};
use crate::ops::PAGE;
use crate::tokenizer::Tokenizer;

/// Where a grammar waits for the end of thinking, this share of the tokens is left to what it holds.
const AFTER_THINKING: usize = 4;

pub struct Sequence {
    /// Arrival order; the youngest is preempted first.
    pub age: u64,
    asked_at: Instant,
    admitted_at: Option<Instant>,
    /// When its first token was sampled.
    pub first_at: Option<Instant>,
    pub request: Request,
    /// Prompt and completion.
    pub tokens: Vec<u32>,
    /// Draft tokens, verified in the current step; empty between steps.
    pub draft: Vec<u32>,
    /// Tokens whose keys and values lie in pages.
    pub computed: usize,
    pub pages: Vec<u32>,
    /// Index entries of the leading pages that have been entered or found.
    pub chain: Vec<EntryId>,
    /// The grammar's state, once it holds.
    pub grammar: Option<State>,
    /// The grammar's state, while the token after which it holds has not come.
    later_grammar: Option<State>,
    /// Whether thinking was ended for what must come after it.
    is_thinking_cut: bool,
    /// Why the completion ended; the sequence stays while rows of it are wanted.
    pub ended: Option<FinishReason>,
    /// Why there is no completion, where the model failed.
    failure: Option<EngineError>,
    /// Rows that are still to give the log-probability of the token after them, which is known: one of the prompt, or one
    /// that the grammar dictated. In ascending order, none of them computed.
    wanted: VecDeque<usize>,
    prompt_tokens: usize,
    /// Of the prompt, found when the sequence was first admitted.
    pub cached_tokens: Option<usize>,
    pub forced_tokens: usize,
    pub preemptions: usize,
    text: Text,
    /// From which byte of the text on stop strings count; `None`: not yet.
    stops_from: Option<usize>,
    logprobs: Vec<Option<TokenLogprobs>>,
    prompt_logprobs: Vec<Option<TokenLogprobs>>,
    events: Events,
}

/// How many tokens a sequence drafted for a step, and how many of them it then got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftOutcome {
    pub drafted: usize,
    pub accepted: usize,
}

impl Sequence {
    /// `grammar` is the request's at its start.
    pub fn new(age: u64, request: Request, grammar: Option<State>, events: Events) -> Sequence {
        let prompt_tokens = request.tokens.len();
        let scored = request.prompt_logprobs.map_or(0, |_| prompt_tokens);
        let holds_later = request.constraint.as_ref().is_some_and(|one| one.after.is_some());
        let (grammar, later_grammar) = match holds_later {
            true => (None, grammar),
            false => (grammar, None),
        };
        Sequence {
            age,
            asked_at: Instant::now(),
            admitted_at: None,
            first_at: None,
            tokens: request.tokens.clone(),
            draft: Vec::new(),
            prompt_tokens,
            ended: (request.max_tokens == 0).then_some(FinishReason::Length),
            wanted: (0..scored.saturating_sub(1)).collect(),
            prompt_logprobs: vec![None; scored],
            stops_from: request.stop.after.is_none().then_some(0),
            request,
            computed: 0,
            pages: Vec::new(),
            chain: Vec::new(),
            failure: None,
            grammar,
            later_grammar,
            is_thinking_cut: false,
            cached_tokens: None,
            forced_tokens: 0,
            preemptions: 0,
            text: Text::default(),
            logprobs: Vec::new(),
            events,
        }
    }

    /// Up to `most` of the tokens that are said to come next; none once others have come than were said to.
    pub fn expected(&self, most: usize) -> &[u32] {
        let said = &self.tokens[self.prompt_tokens..];
        let next = self.request.expected.strip_prefix(said).unwrap_or_default();
        &next[..next.len().min(most)]
    }

    /// Whether nobody waits for it any more.
    pub fn is_cancelled(&self) -> bool {
        self.events.is_cancelled()
    }

    /// Notes that it joins the batch, with so many of its prompt's tokens in pages. Says whether this is the first time.
    pub fn admit(&mut self, cached_tokens: usize) -> bool {
        let is_first = self.cached_tokens.is_none();
        if is_first {
            self.cached_tokens = Some(cached_tokens);
            self.admitted_at = Some(Instant::now());
            self.events.send(Event::Admitted { cached_tokens });
        }
        is_first
    }

    /// Tokens whose keys and values are still to be computed; after the last of them, logits. Of a sequence that ended,
    /// those up to its last wanted row.
    pub fn pending(&self) -> usize {
        let end = match self.ended {
            None => self.tokens.len(),
            Some(_) => self.wanted.back().map_or(0, |row| row + 1),
        };
        end.saturating_sub(self.computed)
    }

    /// The wanted rows before the row `end`.
    pub fn wanted_rows(&self, end: usize) -> impl Iterator<Item = usize> {
        self.wanted.iter().copied().take_while(move |row| *row < end)
    }

    /// How many of the next `rows` rows may be computed where at most `most` of the wanted ones may; and how many wanted ones
    /// are among them.
    pub fn rows_within(&self, rows: usize, most: usize) -> (usize, usize) {
        let wanted = self.wanted.partition_point(|row| *row < self.computed + rows);
        match self.wanted.get(most).filter(|_| wanted > most) {
            Some(first_beyond) => (first_beyond - self.computed, most),
            None => (rows, wanted),
        }
    }

    /// Leading pages that may be taken from the prefix index: the last token, and tokens from the first wanted row on, are
    /// computed here, for their logits.
    pub fn reusable_pages(&self) -> usize {
        let last = self.tokens.len() - 1;
        self.wanted.front().map_or(last, |row| last.min(*row)) / PAGE
    }

    /// The token after a wanted row, and how many of the likeliest tokens are to be given beside it.
    pub fn wanted_score(&self, row: usize) -> (u32, usize) {
        let count = match row + 1 < self.prompt_tokens {
            true => self.request.prompt_logprobs,
            false => self.request.logprobs,
        };
        (self.tokens[row + 1], count.unwrap_or(0))
    }

    /// Takes the log-probabilities that the first wanted row gave.
    pub fn take_score(&mut self, score: TokenLogprobs) {
        let Some(row) = self.wanted.pop_front() else {
            return;
        };
        match (row + 1).checked_sub(self.prompt_tokens) {
            Some(token) => self.logprobs[token] = Some(score),
            None => self.prompt_logprobs[row + 1] = Some(score),
        }
    }

    /// Ends it with `failure` instead of a completion; the first one counts.
    pub fn fail(&mut self, failure: EngineError) {
        self.failure.get_or_insert(failure);
        self.wanted.clear();
        self.ended = Some(FinishReason::Constraint);
    }

    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Why it ended, once nothing of it is to be computed any more. One whose thinking was ended for it is cut by its
    /// length, though its text is whole.
    pub fn done(&self) -> Option<FinishReason> {
        let ended = self.ended.filter(|_| self.wanted.is_empty())?;
        let is_cut = self.is_thinking_cut && ended == FinishReason::Stop;
        Some(if is_cut { FinishReason::Length } else { ended })
    }

    /// Counts `rows` as computed, but for those of rejected draft tokens, and from a row on that became wanted meanwhile:
    /// what these left in pages lies beyond `computed`, and is written over.
    pub fn advance(&mut self, rows: usize) -> DraftOutcome {
        let draft = std::mem::take(&mut self.draft);
        let known = self.computed + rows - draft.len();
        let said = self.tokens[known..].iter().zip(&draft);
        let accepted = said.take_while(|(said, drafted)| said == drafted).count();
        let first_wanted = self.wanted.front().copied().unwrap_or(usize::MAX);
        self.computed = (known + accepted).min(first_wanted);
        DraftOutcome { drafted: draft.len(), accepted }
    }

    pub fn completion_tokens(&self) -> usize {
        self.tokens.len() - self.prompt_tokens
    }

    pub fn prompt_tokens(&self) -> usize {
        self.prompt_tokens
    }

    /// The entry that the next page would lie under, and that page's tokens, if all are known.
    pub fn next_page(&self) -> Option<(EntryId, &[u32; PAGE])> {
        let pages = self.tokens.as_chunks::<PAGE>().0;
        let root = EntryId::Root(self.request.salt);
        let parent = self.chain.last().copied().unwrap_or(root);
        pages.get(self.chain.len()).map(|tokens| (parent, tokens))
    }

    /// Lets the grammar hold from here if `token` is what it holds after.
    pub fn start_grammar_after(&mut self, token: u32) {
        let after = self.request.constraint.as_ref().and_then(|constraint| constraint.after);
        if self.grammar.is_none() && after == Some(token) {
            self.grammar = self.later_grammar.take();
        }
    }

    /// The token that the grammar waits for, once no more than its share of the tokens is left.
    pub fn end_of_thinking(&mut self) -> Option<u32> {
        let after = self.request.constraint.as_ref()?.after?;
        let left = self.request.max_tokens.saturating_sub(self.completion_tokens());
        let is_last =
            self.later_grammar.is_some() && left <= 1 + self.request.max_tokens / AFTER_THINKING;
        self.is_thinking_cut |= is_last;
        is_last.then_some(after)
    }

    /// Appends a token of the completion. Gives the reason if it ends here.
    pub fn push(
        &mut self,
        token: u32,
        logprobs: Option<TokenLogprobs>,
        forced: bool,
        tokenizer: &Tokenizer,
    ) -> Option<FinishReason> {
        self.tokens.push(token);
        self.forced_tokens += usize::from(forced);
        if self.request.logprobs.is_some() {
            self.logprobs.push(logprobs);
            if forced && self.request.forced_logprobs {
                self.wanted.push_back(self.tokens.len() - 2);
            }
        }
        let stop = &self.request.stop;
        let is_end = !forced && stop.ids.contains(&token);
        self.text.push(if is_end { &[] } else { tokenizer.bytes(token) });
        let may_stop = self.completion_tokens() >= self.request.min_tokens;
        let start = self.stops_from.filter(|_| may_stop);
        if is_end || start.is_some_and(|start| self.text.cut(&stop.strings, start)) {
            return Some(FinishReason::Stop);
        }
        if stop.after == Some(token) {
            self.stops_from.get_or_insert(self.text.len());
        }
        (self.completion_tokens() >= self.request.max_tokens).then_some(FinishReason::Length)
    }

    /// Gives the text that can no longer become part of a stop string or of a cut character, with its tokens; at the end
    /// all that is left.
    pub fn give_pieces(&mut self, is_last: bool) {
        if !self.request.pieces {
            return;
        }
        let settled = self.settled();
        let part = match is_last {
            true => self.text.take_rest(),
            false => self.text.take(&self.request.stop.strings, settled),
        };
        let Some(Part { text, tokens }) = part else {
            return;
        };
        let logprobs = match self.request.logprobs {
            Some(_) => self.logprobs[tokens.clone()].to_vec(),
            None => Vec::new(),
        };
        let tokens = self.tokens[self.prompt_tokens..][tokens].to_vec();
        self.events.send(Event::Piece { text, tokens, logprobs });
    }

    /// Tokens of the completion before the first whose log-probabilities are still to come.
    fn settled(&self) -> usize {
        let next = self.wanted.front().map(|row| (row + 1).saturating_sub(self.prompt_tokens));
        next.unwrap_or(self.completion_tokens())
    }

    /// Ends it with a completion, or its failure.
    pub fn finish(mut self, finish_reason: FinishReason) {
        if let Some(failure) = self.failure.take() {
            return self.events.end(Err(failure));
        }
        self.give_pieces(true);
        let completion = Completion {
            tokens: self.tokens[self.prompt_tokens..].to_vec(),
            text: self.text.whole(),
            finish_reason,
            usage: Usage {
                prompt_tokens: self.prompt_tokens,
                cached_tokens: self.cached_tokens.unwrap_or(0),
                completion_tokens: self.completion_tokens(),
                forced_tokens: self.forced_tokens,
            },
            timings: self.timings(Instant::now()),
            problem: (finish_reason == FinishReason::Constraint).then(|| self.problem()),
            logprobs: self.logprobs,
            prompt_logprobs: self.prompt_logprobs,
            preemptions: self.preemptions,
        };
        self.events.end(Ok(completion));
    }

    /// Why its grammar could not go on.
    fn problem(&self) -> String {
        let problem = self.grammar.as_ref().and_then(State::problem);
        problem.unwrap_or_else(|| "the grammar allows no token here".to_owned())
    }

    fn timings(&self, now: Instant) -> Timings {
        let admitted_at = self.admitted_at.unwrap_or(now);
        let first_at = self.first_at.unwrap_or(now);
        Timings {
            queued: admitted_at - self.asked_at,
            prefill: first_at - admitted_at,
            decode: now - first_at,
        }
    }

    /// Ends it without a word to whoever asked.
    pub fn silence(&mut self) {
        self.events.silence();
    }
}
