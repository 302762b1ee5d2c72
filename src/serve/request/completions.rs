//! Completion requests for plain texts or token ids, without a chat template.

use serde::Deserialize;

use super::decoding::{Decoding, MOST_LOGPROBS};
use super::fields::{Fields, parse, take, within};
use crate::serve::error::ApiError;

/// A text or its token ids, which are used unchanged.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Prompt {
    Text(String),
    Ids(Vec<u32>),
}

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "is of another type; expected a string, an array of token ids, or an array of those"
)]
enum Prompts {
    One(Prompt),
    Several(Vec<Prompt>),
}

#[derive(Debug, Deserialize)]
pub struct CompletionRequest {
    pub model: Option<String>,
    prompt: Prompts,
    /// The number of top log-probabilities for each token; `None` for no log-probabilities.
    pub logprobs: Option<usize>,
    /// Whether the response repeats the prompt before its completion.
    #[serde(default)]
    pub echo: bool,
    /// Whether the tokenizer adds its special tokens, such as BOS; it does where nobody says.
    pub add_special_tokens: Option<bool>,
    #[serde(flatten)]
    rest: Fields,
    /// Its `max_tokens` is always set.
    #[serde(skip)]
    pub decoding: Decoding,
    /// Fields without effect.
    #[serde(skip)]
    pub ignored: Vec<String>,
}

impl CompletionRequest {
    pub fn read(body: &[u8]) -> Result<CompletionRequest, ApiError> {
        let mut fields = parse(body)?;
        let mut request = take(&mut fields, |own: &mut CompletionRequest| &mut own.rest)?;
        request.decoding = Decoding::take(&mut fields)?;
        within("logprobs", request.logprobs.map(|top| top as f64), 0.0..=MOST_LOGPROBS)?;
        // OpenAI's default.
        request.decoding.max_tokens.get_or_insert(16);
        request.ignored = fields.into_iter().map(|(name, _)| name).collect();
        Ok(request)
    }

    pub fn prompts(&mut self) -> Vec<Prompt> {
        match std::mem::replace(&mut self.prompt, Prompts::Several(Vec::new())) {
            Prompts::One(one) => vec![one],
            Prompts::Several(several) => several,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(body: Value) -> Result<CompletionRequest, ApiError> {
        CompletionRequest::read(body.to_string().as_bytes())
    }

    fn prompts_of(prompt: Value) -> Result<Vec<Prompt>, ApiError> {
        Ok(read(json!({"prompt": prompt}))?.prompts())
    }

    #[test]
    fn prompts_come_in_four_forms() {
        let prompts = |value: Value| prompts_of(value).unwrap();
        let text = |text: &str| Prompt::Text(text.to_owned());
        assert_eq!(prompts(json!("a")), [text("a")]);
        assert_eq!(prompts(json!(["a", "b"])), [text("a"), text("b")]);
        assert_eq!(prompts(json!([1, 2])), [Prompt::Ids(vec![1, 2])]);
        assert_eq!(prompts(json!([[1], [2]])), [Prompt::Ids(vec![1]), Prompt::Ids(vec![2])]);
        for bad in [json!([["a"]]), json!([1, "a"]), json!(1), json!([-1])] {
            assert!(prompts_of(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_lm_eval_sends_is_understood() {
        let body = json!({"model": "m", "prompt": [[5, 6, 7]], "echo": true, "logprobs": 1, "max_tokens": 1, "temperature": 0, "seed": 1234});
        let read = read(body).unwrap();
        assert!(read.echo && read.ignored.is_empty());
        assert_eq!((read.logprobs, read.decoding.max_tokens), (Some(1), Some(1)));
    }

    #[test]
    fn sixteen_tokens_are_generated_where_nothing_is_said() {
        assert_eq!(read(json!({"prompt": "a"})).unwrap().decoding.max_tokens, Some(16));
    }
}
