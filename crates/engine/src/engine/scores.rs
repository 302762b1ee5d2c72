//! The log-probabilities that a request asks for: those that came, and the rows that are still to give some.

use std::collections::VecDeque;

use super::request::{Request, TokenLogprobs};
use crate::ops::sampling;

/// Rows are counted from the prompt's first; each gives the log-probability of the token after it.
pub struct Scores {
    prompt_tokens: usize,
    /// How many of the likeliest tokens are wanted beside one of the prompt, and of the completion; `None`: no log-probabilities.
    asked: [Option<usize>; 2],
    /// The rows whose next token is known: one of the prompt, or one that the grammar dictated. In ascending order, none of them
    /// computed.
    wanted: VecDeque<usize>,
    /// One a token where asked for.
    pub of_prompt: Vec<Option<TokenLogprobs>>,
    pub of_completion: Vec<Option<TokenLogprobs>>,
}

impl Scores {
    pub fn new(request: &Request) -> Scores {
        let prompt_tokens = request.tokens.len();
        let scored = request.prompt_logprobs.map_or(0, |_| prompt_tokens);
        Scores {
            prompt_tokens,
            asked: [request.prompt_logprobs, request.logprobs],
            wanted: (0..scored.saturating_sub(1)).collect(),
            of_prompt: vec![None; scored],
            of_completion: Vec::new(),
        }
    }

    /// Whether no row is wanted any more.
    pub fn are_complete(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The first wanted row.
    pub fn first(&self) -> Option<usize> {
        self.wanted.front().copied()
    }

    /// Rows up to the last wanted one.
    pub fn end(&self) -> usize {
        self.wanted.back().map_or(0, |row| row + 1)
    }

    /// The wanted rows before the row `end`.
    pub fn before(&self, end: usize) -> impl Iterator<Item = usize> {
        self.wanted.iter().copied().take_while(move |row| *row < end)
    }

    /// How many of `rows` rows from `start` on may be computed where at most `most` of the wanted ones may; and how many wanted ones
    /// are among them.
    pub fn rows_within(&self, start: usize, rows: usize, most: usize) -> (usize, usize) {
        let wanted = self.wanted.partition_point(|row| *row < start + rows);
        match self.wanted.get(most).filter(|_| wanted > most) {
            Some(first_beyond) => (first_beyond - start, most),
            None => (rows, wanted),
        }
    }

    /// How many of the likeliest tokens are to be given beside the one after a wanted row.
    pub fn likeliest(&self, row: usize) -> usize {
        self.asked[usize::from(row + 1 >= self.prompt_tokens)].unwrap_or(0)
    }

    /// Takes what the first wanted row gave.
    pub fn take(&mut self, score: TokenLogprobs) {
        let Some(row) = self.wanted.pop_front() else {
            return;
        };
        match (row + 1).checked_sub(self.prompt_tokens) {
            Some(token) => self.of_completion[token] = Some(score),
            None => self.of_prompt[row + 1] = Some(score),
        }
    }

    /// Takes what was drawn of the completion's next token, where log-probabilities are asked for; where it is `wanted`, the row before
    /// it is yet to give it.
    pub fn push(&mut self, drawn: Option<TokenLogprobs>, wanted: bool) {
        if self.asked[1].is_none() {
            return;
        }
        if wanted {
            self.wanted.push_back(self.prompt_tokens + self.of_completion.len() - 1);
        }
        self.of_completion.push(drawn);
    }

    /// Nothing is wanted any more.
    pub fn give_up(&mut self) {
        self.wanted.clear();
    }

    /// Tokens of the completion, which has so many, before the first whose log-probabilities are still to come.
    pub fn settled(&self, tokens: usize) -> usize {
        self.first().map_or(tokens, |row| (row + 1).saturating_sub(self.prompt_tokens))
    }
}

/// Leaves out rows that no token has: they count in the distribution, and nobody can be told of them.
pub fn name_tokens_alone(logprobs: &mut sampling::TokenLogprobs, present: &[u32]) {
    let is_token = |id: u32| present[id as usize / 32] >> (id % 32) & 1 == 1;
    logprobs.top.retain(|(id, _)| is_token(*id));
}
