//! What a model answers to the calls: tokens, alone or several calls at once.

use serde::{Deserialize, Serialize};

use super::calls::{Call, MAX_TOKENS};
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::engine::{Constraint, FinishReason, Request, Stop, Ticket};
use crate::panel::PanelError;
use crate::panel::backbone::Backbone;
use crate::record::Message;

/// What came of a call: a line of a golden file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub call: String,
    /// Over the prompt's token ids, four bytes each, the lowest first.
    pub prompt_sha256: String,
    pub tokens: Vec<u32>,
    pub finish_reason: FinishReason,
}

/// Where an answer differs from what it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub call: String,
    /// Of the first token that differs, from 0; `None` where it is not a token.
    pub position: Option<usize>,
    /// In words.
    pub what: String,
}

/// How calls are asked.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// Some after one another, some at once, as each says.
    AsTold,
    /// All after one another.
    Alone,
    /// All at once.
    Together,
}

/// Asks the calls, and gives the answers in their order. No way finds pages of keys and values that another computed.
///
/// # Errors
/// A prompt that cannot be made, or an engine that fails.
pub fn answer(backbone: &Backbone, calls: &[Call], way: Way) -> Result<Vec<Answer>, Failure> {
    let mut answers = Vec::with_capacity(calls.len());
    let mut waiting = Vec::new();
    for call in calls {
        let begun = begin(backbone, call, way)?;
        let is_together = match way {
            Way::AsTold => call.together,
            Way::Alone => false,
            Way::Together => true,
        };
        match is_together {
            true => waiting.push(begun),
            false => answers.push(begun.finish()?),
        }
    }
    for begun in waiting {
        answers.push(begun.finish()?);
    }
    Ok(answers)
}

/// A call on its way.
struct PendingCall {
    call: &'static str,
    prompt_sha256: String,
    ticket: Ticket,
}

fn begin(backbone: &Backbone, call: &Call, way: Way) -> Result<PendingCall, Failure> {
    let messages = [Message::new("user", call.prompt.as_str())];
    let tokens = backbone.description.tokenise(&messages, false)?;
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    let grammar = call.grammar.clone();
    let request = Request {
        tokens,
        sampling: call.sampling,
        seed: call.seed,
        constraint: grammar.map(|grammar| Constraint { grammar, after: None }),
        stop: Stop { ids: backbone.description.generation.eos_ids.clone(), ..Stop::default() },
        max_tokens: MAX_TOKENS,
        salt: Some([way as u8; 16]),
        ..Request::default()
    };
    let ticket = backbone.engine.submit(request).map_err(PanelError::from)?;
    Ok(PendingCall { call: call.name, prompt_sha256: sha256(bytes), ticket })
}

impl PendingCall {
    fn finish(self) -> Result<Answer, Failure> {
        let completion = self.ticket.wait().map_err(PanelError::from)?;
        Ok(Answer {
            call: self.call.to_owned(),
            prompt_sha256: self.prompt_sha256,
            tokens: completion.tokens,
            finish_reason: completion.finish_reason,
        })
    }
}

/// Where answers differ from the `expected` ones, which `other` has.
pub fn differences(expected: &[Answer], found: &[Answer], other: &str) -> Vec<Difference> {
    let pairs = expected.iter().zip(found);
    pairs.filter_map(|(expected, found)| difference(expected, found, other)).collect()
}

fn difference(expected: &Answer, found: &Answer, other: &str) -> Option<Difference> {
    if expected == found {
        return None;
    }
    let told = |position, what| Some(Difference { call: found.call.clone(), position, what });
    if expected.call != found.call {
        return told(None, format!("{other} has the call {} in its place", expected.call));
    }
    if expected.prompt_sha256 != found.prompt_sha256 {
        return told(None, format!("its prompt has other tokens than {other} says"));
    }
    let pairs = expected.tokens.iter().zip(&found.tokens);
    let same = pairs.take_while(|(expected, found)| expected == found).count();
    match (expected.tokens.get(same), found.tokens.get(same)) {
        (Some(expected), Some(found)) => {
            told(Some(same), format!("token {} is {found}; {other} has {expected}", same + 1))
        }
        (Some(_), None) => told(
            Some(same),
            format!("it ends after {same} tokens; {other} has {}", expected.tokens.len()),
        ),
        (None, Some(_)) => {
            told(Some(same), format!("it goes on after {same} tokens, where that of {other} ends"))
        }
        (None, None) => {
            let (found, expected) = (found.finish_reason, expected.finish_reason);
            told(None, format!("it ended by {found:?}; {other} says {expected:?}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(tokens: &[u32]) -> Answer {
        Answer {
            call: "greedy".to_owned(),
            prompt_sha256: "00".to_owned(),
            tokens: tokens.to_vec(),
            finish_reason: FinishReason::Length,
        }
    }

    #[test]
    fn the_first_difference_is_told() {
        let golden = answered(&[5, 6, 7]);
        let told = |found: &Answer| {
            let found = difference(&golden, found, "the file")?;
            Some((found.position, found.what))
        };
        assert_eq!(told(&golden), None);
        let other = told(&answered(&[5, 9, 8])).unwrap();
        assert_eq!(other, (Some(1), "token 2 is 9; the file has 6".to_owned()));
        assert_eq!(told(&answered(&[5, 6])).unwrap().0, Some(2));
        assert_eq!(told(&answered(&[5, 6, 7, 8])).unwrap().0, Some(3));
        let stopped = Answer { finish_reason: FinishReason::Stop, ..golden.clone() };
        assert!(told(&stopped).unwrap().1.contains("Stop"));
        let elsewhere = Answer { prompt_sha256: "01".to_owned(), ..golden.clone() };
        assert!(told(&elsewhere).unwrap().1.contains("prompt"));
    }
}
