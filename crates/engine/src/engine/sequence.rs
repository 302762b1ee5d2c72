//! One request in progress: its tokens, its pages, and the text generated so far.

use super::EngineError;
use super::constraint::State;
use super::events::{Event, Events};
use super::prefix::EntryId;
use super::request::{Completion, Request, TokenLogprobs};
use super::scores::Scores;
use super::text::{Part, Text};
use super::usage::{FinishReason, Usage};
use crate::ops::PAGE;
use crate::tokenizer::Tokenizer;

/// Where a grammar waits for the end of thinking, this share of the tokens is left to what it holds.
const AFTER_THINKING: usize = 4;

pub struct Sequence {
    /// Arrival order; the youngest is preempted first.
    pub age: u64,
    is_admitted: bool,
    pub scores: Scores,
    pub request: Request,
    pub tokens: Vec<u32>,
    /// Draft tokens, verified in the current step; empty between steps.
    pub draft: Vec<u32>,
    /// Tokens whose keys and values lie in pages.
    pub computed: usize,
    pub pages: Vec<u32>,
    /// Where its state of recurrent layers is while it runs, and after how many pages copies of it are to be kept, in ascending order.
    pub slot: Option<u32>,
    pub marks: Vec<usize>,
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
    pub failure: Option<EngineError>,
    /// Of the completion so far; what was cached of its prompt when it was first admitted.
    pub usage: Usage,
    pub preemptions: usize,
    text: Text,
    /// From which byte of the text on stop strings count; `None`: not yet.
    stops_from: Option<usize>,
    pub events: Events,
}

impl Sequence {
    /// `grammar` is the request's at its start.
    pub fn new(age: u64, request: Request, grammar: Option<State>, events: Events) -> Sequence {
        let holds_later = request.constraint.as_ref().is_some_and(|one| one.after.is_some());
        let (grammar, later_grammar) = match holds_later {
            true => (None, grammar),
            false => (grammar, None),
        };
        Sequence {
            age,
            is_admitted: false,
            scores: Scores::new(&request),
            tokens: request.tokens.clone(),
            draft: Vec::new(),
            ended: (request.max_tokens == 0).then_some(FinishReason::Length),
            usage: Usage { prompt_tokens: request.tokens.len(), ..Usage::default() },
            stops_from: request.stop.after.is_none().then_some(0),
            request,
            computed: 0,
            pages: Vec::new(),
            chain: Vec::new(),
            slot: None,
            marks: Vec::new(),
            failure: None,
            grammar,
            later_grammar,
            is_thinking_cut: false,
            preemptions: 0,
            text: Text::default(),
            events,
        }
    }

    /// Up to `most` of the tokens that are said to come next; none once others have come than were said to.
    pub fn expected(&self, most: usize) -> &[u32] {
        let next = self.request.expected.strip_prefix(self.said()).unwrap_or_default();
        &next[..next.len().min(most)]
    }

    /// Notes that it joins the batch, with so many of its prompt's tokens in pages. Says whether this is the first time.
    pub fn admit(&mut self, cached_tokens: usize) -> bool {
        let is_first = !std::mem::replace(&mut self.is_admitted, true);
        if is_first {
            self.usage.cached_tokens = cached_tokens;
            self.events.send(Event::Admitted { cached_tokens });
        }
        is_first
    }

    /// Tokens whose keys and values are still to be computed; after the last of them, logits. Of a sequence that ended,
    /// those up to its last wanted row.
    pub fn pending(&self) -> usize {
        let end = match self.ended {
            None => self.tokens.len(),
            Some(_) => self.scores.end(),
        };
        end.saturating_sub(self.computed)
    }

    /// Leading pages that may be taken from the prefix index: the last token, and tokens from the first wanted row on, are
    /// computed here, for their logits.
    pub fn reusable_pages(&self) -> usize {
        let last = self.tokens.len() - 1;
        self.scores.first().map_or(last, |row| last.min(row)) / PAGE
    }

    /// Ends it with `failure` instead of a completion; the first one counts.
    pub fn fail(&mut self, failure: EngineError) {
        self.failure.get_or_insert(failure);
        self.scores.give_up();
        self.ended = Some(FinishReason::Constraint);
    }

    /// Why it ended, once nothing of it is to be computed any more. One whose thinking was ended for it is cut by its
    /// length, though its text is whole.
    pub fn done(&self) -> Option<FinishReason> {
        let ended = self.ended.filter(|_| self.scores.are_complete())?;
        let is_cut = self.is_thinking_cut && ended == FinishReason::Stop;
        Some(if is_cut { FinishReason::Length } else { ended })
    }

    /// Counts `rows` as computed, but for those of rejected draft tokens, and from a row on that became wanted meanwhile:
    /// what these left in pages lies beyond `computed`, and is written over. Gives how many drafted tokens it got.
    pub fn advance(&mut self, rows: usize) -> usize {
        let draft = std::mem::take(&mut self.draft);
        let known = self.computed + rows - draft.len();
        let said = self.tokens[known..].iter().zip(&draft);
        let accepted = said.take_while(|(said, drafted)| said == drafted).count();
        let first_wanted = self.scores.first().unwrap_or(usize::MAX);
        // Drafts leave no trace in a state: those that were right are computed again, with what comes next.
        let kept = if self.slot.is_some() { 0 } else { accepted };
        self.computed = (known + kept).min(first_wanted);
        accepted
    }

    pub fn completion_tokens(&self) -> usize {
        self.tokens.len() - self.prompt_tokens()
    }

    pub fn prompt_tokens(&self) -> usize {
        self.usage.prompt_tokens
    }

    pub fn said(&self) -> &[u32] {
        &self.tokens[self.prompt_tokens()..]
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
        self.usage.forced_tokens += usize::from(forced);
        self.scores.push(logprobs, forced && self.request.forced_logprobs);
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
        let settled = self.scores.settled(self.completion_tokens());
        let part = match is_last {
            true => self.text.take_rest(),
            false => self.text.take(&self.request.stop.strings, settled),
        };
        let Some(Part { text, tokens }) = part else {
            return;
        };
        let logprobs = match self.request.logprobs {
            Some(_) => self.scores.of_completion[tokens.clone()].to_vec(),
            None => Vec::new(),
        };
        let tokens = self.said()[tokens].to_vec();
        self.events.send(Event::Piece { text, tokens, logprobs });
    }

    /// Ends it with a completion, or its failure.
    pub fn finish(mut self, finish_reason: FinishReason) {
        if let Some(failure) = self.failure.take() {
            return self.events.end(Err(failure));
        }
        self.give_pieces(true);
        let completion = Completion {
            tokens: self.said().to_vec(),
            text: self.text.whole(),
            finish_reason,
            usage: Usage { completion_tokens: self.completion_tokens(), ..self.usage },
            problem: (finish_reason == FinishReason::Constraint).then(|| self.problem()),
            logprobs: self.scores.of_completion,
            prompt_logprobs: self.scores.of_prompt,
            preemptions: self.preemptions,
        };
        self.events.end(Ok(completion));
    }

    /// Why its grammar could not go on.
    fn problem(&self) -> String {
        let problem = self.grammar.as_ref().and_then(State::problem);
        problem.unwrap_or_else(|| "the grammar allows no token here".to_owned())
    }
}
