//! Completion requests for plain texts or token ids, without a chat template.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::decoding::{Decoding, MOST_LOGPROBS};
use super::fields::{Fields, Whole, names, parse, take};
use crate::serve::error::ApiError;

/// A text or its token ids, which are used unchanged.
#[derive(Clone, Debug, PartialEq)]
pub enum TextPrompt {
    Text(String),
    Ids(Vec<u32>),
}

/// What texts come as.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "is of another type; expected a string, an array of strings, an array of token ids, or an array of such arrays"
)]
pub enum Texts {
    Text(String),
    List(Vec<String>),
    Ids(Vec<u32>),
    Lists(Vec<Vec<u32>>),
}

impl Texts {
    /// The texts of the field of this name.
    ///
    /// # Errors
    /// None, too many, or one without a token id.
    pub fn list(self, field: &str, most: usize) -> Result<Vec<TextPrompt>, ApiError> {
        let list: Vec<TextPrompt> = match self {
            Texts::Text(text) => vec![TextPrompt::Text(text)],
            Texts::Ids(ids) => vec![TextPrompt::Ids(ids)],
            Texts::List(texts) => texts.into_iter().map(TextPrompt::Text).collect(),
            Texts::Lists(lists) => lists.into_iter().map(TextPrompt::Ids).collect(),
        };
        if list.is_empty() || list.len() > most {
            let message = format!("{field} has {} texts; expected 1 to {most}", list.len());
            return Err(ApiError::invalid(field, message));
        }
        match list.iter().position(|text| *text == TextPrompt::Ids(Vec::new())) {
            None => Ok(list),
            Some(place) => {
                let place = format!("{field}[{place}]");
                Err(ApiError::invalid(&place, format!("{place} is empty")))
            }
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct CompletionRequest {
    pub model: Option<String>,
    pub prompt: Texts,
    logprobs: Option<Whole<0, MOST_LOGPROBS>>,
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
    /// Unknown fields.
    #[serde(skip)]
    pub ignored: Vec<String>,
}

impl CompletionRequest {
    pub fn read(body: &[u8]) -> Result<CompletionRequest, ApiError> {
        let mut fields = parse(body)?;
        // Some clients send the flag of chat completions.
        if fields.get("logprobs") == Some(&Value::Bool(false)) {
            fields.shift_remove("logprobs");
        }
        let request = take(&mut fields, |own: &mut CompletionRequest| &mut own.rest)?;
        let mut decoding = Decoding::take(&mut fields)?;
        // OpenAI's default.
        let max_tokens = decoding.max_tokens.get_or_insert(Whole(16)).0;
        if max_tokens == 0 && !request.echo {
            let message = "max_tokens is 0 without echo: nothing is asked for";
            return Err(ApiError::invalid("max_tokens", message));
        }
        let mut ignored = names(&fields);
        ignored.append(&mut decoding.ignored);
        Ok(CompletionRequest { decoding, ignored, ..request })
    }

    /// The number of top log-probabilities for each token; `None` for no log-probabilities.
    pub fn logprobs(&self) -> Option<usize> {
        self.logprobs.map(Whole::count)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> Result<CompletionRequest, ApiError> {
        CompletionRequest::read(body.to_string().as_bytes())
    }

    fn prompts_of(prompt: Value) -> Result<Vec<TextPrompt>, ApiError> {
        read(json!({"prompt": prompt}))?.prompt.list("prompt", 8)
    }

    #[test]
    fn prompts_come_in_four_forms() {
        let prompts = |value: Value| prompts_of(value).unwrap();
        let text = |text: &str| TextPrompt::Text(text.to_owned());
        assert_eq!(prompts(json!("a")), [text("a")]);
        assert_eq!(prompts(json!(["a", "b"])), [text("a"), text("b")]);
        assert_eq!(prompts(json!([1, 2])), [TextPrompt::Ids(vec![1, 2])]);
        assert_eq!(
            prompts(json!([[1], [2]])),
            [TextPrompt::Ids(vec![1]), TextPrompt::Ids(vec![2])]
        );
        for bad in [
            json!(["a", [1]]),
            json!([["a"]]),
            json!([1, "a"]),
            json!([]),
            json!([[]]),
            json!(1),
            json!([-1]),
        ] {
            assert!(prompts_of(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_lm_eval_sends_is_understood() {
        let body = json!({"model": "m", "prompt": [[5, 6, 7]], "echo": true, "logprobs": 1, "max_tokens": 1, "temperature": 0, "seed": 1234});
        let read = read(body).unwrap();
        assert!(read.echo && read.ignored.is_empty());
        assert_eq!((read.logprobs(), read.decoding.max_tokens()), (Some(1), Some(1)));
    }

    #[test]
    fn nothing_may_be_generated_only_where_something_else_is_asked_for() {
        assert!(read(json!({"prompt": "a", "max_tokens": 0})).is_err());
        read(json!({"prompt": "a", "max_tokens": 0, "echo": true})).unwrap();
        assert_eq!(read(json!({"prompt": "a"})).unwrap().decoding.max_tokens(), Some(16));
    }
}
