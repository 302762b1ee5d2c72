//! Splits the text of a choice into reasoning and content while it is generated.

use crate::engine::{Completion, TokenLogprobs};
use crate::record::FinishReason;
use crate::serve::error::{ApiError, Code};

/// The tag that opens the reasoning in all supported models.
const OPEN: &str = "<think>";

/// A token of the content, with its log-probabilities if they were requested.
#[derive(Clone, Debug)]
pub struct TokenEntry {
    pub id: u32,
    pub logprobs: Option<TokenLogprobs>,
}

/// The new part of a choice.
#[derive(Clone, Debug, Default)]
pub struct Delta {
    pub reasoning: String,
    pub content: String,
    /// The tokens of the content, without those of the reasoning.
    pub entries: Vec<TokenEntry>,
}

impl Delta {
    pub fn add(&mut self, next: Delta) {
        self.reasoning += &next.reasoning;
        self.content += &next.content;
        self.entries.extend(next.entries);
    }

    pub fn is_empty(&self) -> bool {
        self.content.is_empty() && self.reasoning.is_empty() && self.entries.is_empty()
    }
}

/// The token that ends a model's reasoning.
#[derive(Clone, Debug)]
pub struct ThinkEnd {
    pub id: u32,
    /// Its text; empty if it has none.
    pub tag: String,
}

/// The state of a choice.
#[derive(Debug)]
enum Place {
    /// At the beginning: an opening tag may follow.
    Start(ThinkEnd),
    Thinking(ThinkEnd),
    /// Right after the reasoning: newlines are dropped.
    Behind,
    Answer,
}

/// Splits the text of one choice.
#[derive(Debug)]
pub struct ChoiceText {
    place: Place,
    /// Text that may be part of the opening tag. The closing one is a token, which comes whole.
    held: String,
    pub reasoning_tokens: usize,
}

impl ChoiceText {
    /// `think_end` is the token that ends the reasoning, if the choice begins with reasoning.
    pub fn new(think_end: Option<ThinkEnd>) -> ChoiceText {
        let place = think_end.map_or(Place::Answer, Place::Start);
        ChoiceText { place, held: String::new(), reasoning_tokens: 0 }
    }

    /// The delta of a piece of text. The concatenated deltas do not depend on how the text is cut into pieces.
    pub fn take(
        &mut self,
        text: &str,
        tokens: &[u32],
        logprobs: Vec<Option<TokenLogprobs>>,
    ) -> Delta {
        let mut delta = Delta::default();
        let mut logprobs = logprobs.into_iter();
        let mut has_ended = false;
        for &id in tokens {
            let logprobs = logprobs.next().flatten();
            match &self.place {
                Place::Start(end) | Place::Thinking(end) if !has_ended => {
                    self.reasoning_tokens += 1;
                    has_ended = end.id == id;
                }
                _ => delta.entries.push(TokenEntry { id, logprobs }),
            }
        }
        self.held.push_str(text);
        self.release(has_ended, &mut delta);
        delta
    }

    /// The rest of the text at the end of the choice.
    pub fn finish(&mut self) -> Delta {
        let mut delta = Delta::default();
        match &self.place {
            Place::Start(_) | Place::Thinking(_) => {
                delta.reasoning = std::mem::take(&mut self.held)
            }
            Place::Behind | Place::Answer => delta.content = std::mem::take(&mut self.held),
        }
        delta
    }

    /// Moves the text that is no part of a tag into `delta`. `has_ended`: the token that ends the reasoning has come.
    fn release(&mut self, has_ended: bool, delta: &mut Delta) {
        if let Place::Start(end) = &self.place {
            let begins = self.held.trim_start();
            if begins.len() < OPEN.len() && OPEN.starts_with(begins) && !has_ended {
                return;
            }
            let rest =
                begins.strip_prefix(OPEN).map(|rest| rest.strip_prefix('\n').unwrap_or(rest));
            let is_cut = begins.len() == OPEN.len() && rest.is_some() && !has_ended;
            if is_cut {
                // A newline may still follow.
                return;
            }
            if let Some(rest) = rest {
                self.held = rest.to_owned();
            }
            self.place = Place::Thinking(end.clone());
        }
        if let Place::Thinking(end) = &self.place {
            let text = std::mem::take(&mut self.held);
            if !has_ended {
                delta.reasoning = text;
                return;
            }
            let at = text.find(&end.tag).filter(|_| !end.tag.is_empty()).unwrap_or(text.len());
            let (before, behind) = text.split_at(at);
            delta.reasoning = before.to_owned();
            self.held = behind.strip_prefix(&end.tag).unwrap_or(behind).to_owned();
            self.place = Place::Behind;
        }
        if let Place::Behind = self.place {
            let kept = self.held.trim_start_matches('\n').to_owned();
            self.held = kept;
            if self.held.is_empty() {
                return;
            }
            self.place = Place::Answer;
        }
        delta.content = std::mem::take(&mut self.held);
    }
}

/// Refuses a completion that did not end regularly; `format` is the field that gave its grammar.
pub fn refuse_broken(completion: &Completion, format: &str) -> Result<(), ApiError> {
    match completion.finish_reason {
        FinishReason::Stop | FinishReason::Length => Ok(()),
        FinishReason::Constraint => {
            let problem = completion.problem.as_deref().unwrap_or("the grammar cannot go on");
            Err(ApiError::of(
                Code::SchemaTooComplex,
                format,
                format!("the grammar gave up after {} tokens: {problem}", completion.tokens.len()),
            ))
        }
        FinishReason::Cancelled | FinishReason::Refusal => {
            Err(ApiError::new(Code::Internal, "the completion was cancelled"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u32 = 9;

    /// The sums of reasoning and content of these pieces; a piece has a token of its own, or that which ends the thinking.
    fn split(pieces: &[(&str, u32)]) -> (String, String, usize) {
        let end = ThinkEnd { id: END, tag: "</think>".to_owned() };
        let mut choice = ChoiceText::new(Some(end));
        let (mut reasoning, mut content, mut entries) = (String::new(), String::new(), 0);
        for (text, token) in pieces {
            let delta = choice.take(text, &[*token], vec![None]);
            reasoning += &delta.reasoning;
            content += &delta.content;
            entries += delta.entries.len();
        }
        let rest = choice.finish();
        (reasoning + &rest.reasoning, content + &rest.content, entries)
    }

    #[test]
    fn thinking_is_split_from_the_answer_however_the_text_is_cut() {
        let expected = ("why\n".to_owned(), "B".to_owned(), 2);
        assert_eq!(
            split(&[("<think>\nwhy\n", 1), ("</think>", END), ("\n\n", 2), ("B", 3)]),
            expected
        );
        assert_eq!(
            split(&[
                ("<thi", 1),
                ("nk>", 1),
                ("\nwhy\n", 1),
                ("</think>\n", END),
                ("\n", 2),
                ("B", 3)
            ]),
            expected
        );
        assert_eq!(split(&[("why\n</think>\n\nB", END)]).1, "B");
        assert_eq!(split(&[("<think>why", 1)]), ("why".to_owned(), String::new(), 0));
        // Written out in other tokens it is no end.
        assert_eq!(split(&[("a </think> b", 1), ("</think>c", END)]).1, "c");
    }

    #[test]
    fn without_thinking_everything_is_the_answer() {
        let mut choice = ChoiceText::new(None);
        let delta = choice.take("<think>a", &[1, 2], vec![]);
        assert_eq!(
            (delta.content.as_str(), delta.entries.len(), choice.reasoning_tokens),
            ("<think>a", 2, 0)
        );
    }
}
