//! Splits the text of a choice into reasoning and content while it is generated.

use crate::engine::{Completion, TokenLogprobs};
use crate::record::FinishReason;
use crate::serve::error::{ApiError, Code};

/// What opens the reasoning; Gemma 4 names its channel behind the tag.
const OPENINGS: [&str; 3] = ["<think>thought\n", "<think>\n", "<think>"];

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

/// Splits the text of one choice.
#[derive(Debug, Default)]
pub struct ChoiceText {
    /// While the choice is reasoning.
    think_end: Option<ThinkEnd>,
    /// The text of the reasoning so far, its opening tag too; and how much of it was sent.
    thought: String,
    sent: usize,
    /// Right after the reasoning newlines are dropped.
    is_behind: bool,
    pub reasoning_tokens: usize,
    /// What is not sent yet.
    pub kept: Delta,
}

impl ChoiceText {
    /// `think_end` is the token that ends the reasoning, if the choice begins with reasoning.
    pub fn new(think_end: Option<ThinkEnd>) -> ChoiceText {
        ChoiceText { is_behind: think_end.is_some(), think_end, ..ChoiceText::default() }
    }

    /// Keeps a piece of text. The concatenated deltas do not depend on how the text is cut into pieces: the closing tag is a token,
    /// which comes whole.
    pub fn take(&mut self, text: &str, tokens: &[u32], logprobs: Vec<Option<TokenLogprobs>>) {
        let mut logprobs = logprobs.into_iter();
        let thinking = self.think_end.take();
        let mut has_ended = thinking.is_none();
        for &id in tokens {
            let logprobs = logprobs.next().flatten();
            match &thinking {
                Some(end) if !has_ended => {
                    self.reasoning_tokens += 1;
                    has_ended = end.id == id;
                }
                _ => self.kept.entries.push(TokenEntry { id, logprobs }),
            }
        }
        let mut content = text;
        if let Some(end) = thinking {
            let is_tagged = has_ended && !end.tag.is_empty();
            let split = text.split_once(&end.tag).filter(|_| is_tagged);
            let (before, behind) = split.unwrap_or((text, ""));
            self.thought += before;
            let reasoning = self.shown(has_ended)[self.sent..].to_owned();
            self.sent += reasoning.len();
            self.kept.reasoning += &reasoning;
            content = behind;
            self.think_end = (!has_ended).then_some(end);
        }
        if self.is_behind {
            content = content.trim_start_matches('\n');
            self.is_behind = content.is_empty();
        }
        self.kept.content += content;
    }

    /// The reasoning without its opening tag; nothing while that may still come.
    fn shown(&self, has_ended: bool) -> &str {
        let begins = self.thought.trim_start();
        if !has_ended && OPENINGS.iter().any(|opening| opening.starts_with(begins)) {
            return "";
        }
        let rest = OPENINGS.iter().find_map(|opening| begins.strip_prefix(opening));
        rest.unwrap_or(&self.thought)
    }
}

/// Refuses a completion that did not end regularly; `format` is the field that gave its grammar.
pub fn refuse_broken(completion: &Completion, format: &str) -> Result<(), ApiError> {
    match completion.finish_reason {
        FinishReason::Stop | FinishReason::Length => Ok(()),
        FinishReason::Constraint => {
            let problem = completion.problem.as_deref().unwrap_or("the grammar cannot go on");
            Err(ApiError::of(
                Code::SCHEMA_TOO_COMPLEX,
                format,
                format!("the grammar gave up after {} tokens: {problem}", completion.tokens.len()),
            ))
        }
        FinishReason::Cancelled | FinishReason::Refusal => {
            Err(ApiError::new(Code::INTERNAL, "the completion was cancelled"))
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
        for (text, token) in pieces {
            choice.take(text, &[*token], vec![None]);
        }
        (choice.kept.reasoning, choice.kept.content, choice.kept.entries.len())
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
        assert_eq!(
            split(&[
                ("<think>", 1),
                ("thou", 1),
                ("ght\nwhy\n", 1),
                ("</think>", END),
                ("B", 2),
                ("", 3)
            ]),
            expected
        );
        assert_eq!(split(&[("<think>thought", 1), ("</think>B", END)]).0, "thought");
        assert_eq!(split(&[("why\n</think>\n\nB", END)]).1, "B");
        assert_eq!(split(&[("<think>why", 1)]), ("why".to_owned(), String::new(), 0));
        // Written out in other tokens it is no end.
        assert_eq!(split(&[("a </think> b", 1), ("</think>c", END)]).1, "c");
    }

    #[test]
    fn without_thinking_everything_is_the_answer() {
        let mut choice = ChoiceText::new(None);
        choice.take("<think>a", &[1, 2], vec![]);
        assert_eq!(
            (choice.kept.content.as_str(), choice.kept.entries.len(), choice.reasoning_tokens),
            ("<think>a", 2, 0)
        );
    }
}
