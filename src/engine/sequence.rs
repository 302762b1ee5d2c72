//! One request in progress: its tokens, its pages, and the text generated so far.

use std::time::Instant;

use super::constraint::{Constraint, State};
use super::events::{Event, Events};
use super::prefix::{EntryId, ROOT};
use super::request::{Completion, FinishReason, Request, Timings, TokenLogprobs, Usage};
use crate::ops::PAGE;
use crate::tokenizer::Tokenizer;

pub struct Sequence {
    /// Arrival order; the youngest is preempted first.
    pub age: u64,
    pub asked_at: Instant,
    admitted_at: Option<Instant>,
    /// When its first and its last token so far were sampled.
    first_at: Option<Instant>,
    sampled_at: Option<Instant>,
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
    prompt_tokens: usize,
    /// Of the prompt, found when the sequence was first admitted.
    pub cached_tokens: Option<usize>,
    pub forced_tokens: usize,
    pub preemptions: usize,
    text: Vec<u8>,
    /// Of each token of the completion, where its bytes end in `text`.
    ends: Vec<usize>,
    given: Given,
    logprobs: Vec<Option<TokenLogprobs>>,
    events: Events,
}

/// What was already given as pieces.
#[derive(Clone, Copy, Debug, Default)]
struct Given {
    bytes: usize,
    tokens: usize,
}

/// How many tokens a sequence drafted for a step, and how many of them it then got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftOutcome {
    pub drafted: usize,
    pub accepted: usize,
}

impl Sequence {
    pub fn new(age: u64, request: Request, events: Events) -> Sequence {
        Sequence {
            age,
            asked_at: Instant::now(),
            admitted_at: None,
            first_at: None,
            sampled_at: None,
            tokens: request.tokens.clone(),
            draft: Vec::new(),
            prompt_tokens: request.tokens.len(),
            request,
            computed: 0,
            pages: Vec::new(),
            chain: Vec::new(),
            grammar: None,
            cached_tokens: None,
            forced_tokens: 0,
            preemptions: 0,
            text: Vec::new(),
            ends: Vec::new(),
            given: Given::default(),
            logprobs: Vec::new(),
            events,
        }
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

    /// Notes that a token was sampled. Gives when the one before it was.
    pub fn sampled(&mut self, now: Instant) -> Option<Instant> {
        self.first_at.get_or_insert(now);
        self.sampled_at.replace(now)
    }

    /// Tokens whose keys and values are still to be computed; after the last of them, logits.
    pub fn pending(&self) -> usize {
        self.tokens.len() - self.computed
    }

    /// Counts `rows` as computed, but for those of rejected draft tokens: what these left in pages lies beyond
    /// `computed`, and is written over.
    pub fn advance(&mut self, rows: usize) -> DraftOutcome {
        let draft = std::mem::take(&mut self.draft);
        let known = self.computed + rows - draft.len();
        let said = self.tokens[known..].iter().zip(&draft);
        let accepted = said.take_while(|(said, drafted)| said == drafted).count();
        self.computed = known + accepted;
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
        let parent = self.chain.last().copied().unwrap_or(ROOT);
        pages.get(self.chain.len()).map(|tokens| (parent, tokens))
    }

    /// The constraint that holds after `token`, if one begins there.
    pub fn constraint_after(&self, token: u32) -> Option<&Constraint> {
        let constraint = self.request.constraint.as_ref()?;
        (self.grammar.is_none() && constraint.after == Some(token)).then_some(constraint)
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
        }
        let is_end = !forced && self.request.stop.ids.contains(&token);
        let mut is_stopped = is_end;
        if !is_end {
            self.text.extend_from_slice(tokenizer.bytes(token));
            if let Some(end) = self.find_stop(tokenizer.bytes(token).len()) {
                self.text.truncate(end);
                is_stopped = true;
            }
        }
        self.ends.push(self.text.len());
        if is_stopped {
            return Some(FinishReason::Stop);
        }
        (self.completion_tokens() >= self.request.max_tokens).then_some(FinishReason::Length)
    }

    /// Where the first stop string begins that the last `added` bytes completed.
    fn find_stop(&self, added: usize) -> Option<usize> {
        let starts =
            self.request.stop.strings.iter().filter(|stop| !stop.is_empty()).filter_map(|stop| {
                let from = self.text.len().saturating_sub(added + stop.len() - 1);
                let found = self.text[from..]
                    .windows(stop.len())
                    .position(|window| window == stop.as_bytes());
                found.map(|at| from + at)
            });
        starts.min()
    }

    /// Gives the text that can no longer become part of a stop string or of a cut character.
    pub fn give_pieces(&mut self, is_last: bool) {
        if !self.request.pieces {
            return;
        }
        let end = match is_last {
            true => self.text.len(),
            false => self.ready(),
        };
        let left = &self.ends[self.given.tokens..];
        let tokens = match is_last {
            true => self.ends.len(),
            false => self.given.tokens + left.partition_point(|token_end| *token_end <= end),
        };
        let from = std::mem::replace(&mut self.given, Given { bytes: end, tokens });
        if from.bytes == end && !(is_last && from.tokens < tokens) {
            self.given = from;
            return;
        }
        let said = &self.tokens[self.prompt_tokens..];
        self.events.send(Event::Piece {
            text: String::from_utf8_lossy(&self.text[from.bytes..end]).into_owned(),
            tokens: said[from.tokens..tokens].to_vec(),
            logprobs: match self.request.logprobs {
                Some(_) => self.logprobs[from.tokens..tokens].to_vec(),
                None => Vec::new(),
            },
        });
    }

    /// Where the text that may be given ends: what may still become a stop string, or a character, is held back.
    fn ready(&self) -> usize {
        let stops = self.request.stop.strings.iter();
        let held = stops.map(|stop| stop.len().saturating_sub(1)).max().unwrap_or(0);
        let given = self.given.bytes;
        let end = self.text.len().saturating_sub(held).max(given);
        given + whole_characters(&self.text[given..end])
    }

    /// Ends it with a completion.
    pub fn finish(mut self, finish_reason: FinishReason) {
        self.give_pieces(true);
        let completion = Completion {
            tokens: self.tokens[self.prompt_tokens..].to_vec(),
            text: String::from_utf8_lossy(&self.text).into_owned(),
            finish_reason,
            usage: Usage {
                prompt_tokens: self.prompt_tokens,
                cached_tokens: self.cached_tokens.unwrap_or(0),
                completion_tokens: self.completion_tokens(),
                forced_tokens: self.forced_tokens,
            },
            timings: self.timings(Instant::now()),
            logprobs: self.logprobs,
            preemptions: self.preemptions,
        };
        self.events.end(Ok(completion));
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

    /// Ends it without a completion.
    pub fn refuse(self, error: super::EngineError) {
        self.events.end(Err(error));
    }

    /// Ends it without a word to whoever asked.
    pub fn silence(&mut self) {
        self.events.silence();
    }
}

/// Length of the longest part of `bytes` that does not end inside a character. Bytes that no continuation could
/// mend are whole as they are.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    match std::str::from_utf8(tail) {
        Err(error) if error.error_len().is_none() => bytes.len() - tail.len(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::whole_characters;

    #[test]
    fn a_cut_character_waits_for_its_rest() {
        let text = "aé€😀".as_bytes();
        assert_eq!(whole_characters(text), text.len());
        assert_eq!(whole_characters(&text[..text.len() - 1]), 6);
        assert_eq!(whole_characters(&text[..2]), 1);
        assert_eq!(whole_characters(b"a\xff"), 2);
        // A broken byte before it does not let a cut character through.
        assert_eq!(whole_characters(b"\xffa\xe2\x82"), 2);
    }
}
