//! Parses completion requests for plain texts or token ids, without a chat template.

use serde_json::Value;

use super::decoding::{Decoding, MOST_LOGPROBS};
use super::fields::{Fields, ids, integer, required, wrong_type};
use crate::serve::error::{ApiError, Code};

const MOST_PROMPTS: usize = 256;
/// OpenAI's default, where a request does not say.
const DEFAULT_MAX_TOKENS: usize = 16;

#[derive(Clone, Debug, PartialEq)]
pub enum TextPrompt {
    Text(String),
    /// Used unchanged.
    Ids(Vec<u32>),
}

#[derive(Clone, Debug)]
pub struct CompletionRequest {
    pub model: Option<String>,
    pub prompts: Vec<TextPrompt>,
    /// Its `max_tokens` is always set.
    pub decoding: Decoding,
    /// The number of top log-probabilities for each token; `None` for no log-probabilities.
    pub logprobs: Option<usize>,
    /// Whether the response repeats the prompt before its completion.
    pub echo: bool,
    /// Whether the tokenizer adds its special tokens, such as BOS.
    pub add_special_tokens: bool,
    /// Whether tokens are written as `token_id:N` in the log-probabilities.
    pub tokens_as_ids: bool,
    /// Unknown fields.
    pub ignored: Vec<String>,
}

impl CompletionRequest {
    pub fn read(body: &[u8]) -> Result<CompletionRequest, ApiError> {
        let mut fields = Fields::parse(body)?;
        let model = fields.text("model")?;
        let prompts = texts("prompt", fields.take("prompt"), MOST_PROMPTS)?;
        let mut decoding = Decoding::read(&mut fields)?;
        let max_tokens = decoding.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
        decoding.max_tokens = Some(max_tokens);
        let logprobs = match fields.take("logprobs") {
            // Some clients send the flag of chat completions.
            None | Some(Value::Bool(false)) => None,
            Some(value) => Some(integer("logprobs", &value, &(0..=MOST_LOGPROBS as i64))? as usize),
        };
        let echo = fields.flag("echo")?.unwrap_or(false);
        if max_tokens == 0 && !echo && decoding.prompt_logprobs.is_none() {
            return Err(ApiError::invalid(
                "max_tokens",
                "max_tokens is 0 without echo or prompt_logprobs: nothing is asked for",
            ));
        }
        let inside = decoding.ignored.clone();
        Ok(CompletionRequest {
            model,
            prompts,
            decoding,
            logprobs,
            echo,
            add_special_tokens: fields.flag("add_special_tokens")?.unwrap_or(true),
            tokens_as_ids: fields.flag("return_tokens_as_token_ids")?.unwrap_or(false),
            ignored: fields.rest().into_iter().chain(inside).collect(),
        })
    }
}

/// Parses a string, a list of strings, a list of token ids, or a list of such lists.
pub fn texts(field: &str, value: Option<Value>, most: usize) -> Result<Vec<TextPrompt>, ApiError> {
    const EXPECTED: &str =
        "a string, an array of strings, an array of token ids, or an array of such arrays";
    let list = match required(value, field)? {
        Value::String(text) => return Ok(vec![TextPrompt::Text(text)]),
        Value::Array(list) if list.is_empty() => {
            return Err(ApiError::invalid(field, format!("{field} is empty")));
        }
        Value::Array(list) => list,
        other => return Err(wrong_type(field, &other, EXPECTED)),
    };
    let mixed = || {
        ApiError::of(Code::InvalidType, field, format!("{field} mixes types; expected {EXPECTED}"))
    };
    if list[0].is_number() {
        return Ok(vec![TextPrompt::Ids(ids(field, &list.into())?)]);
    }
    if list.len() > most {
        let message = format!("{field} has {} texts; at most {most} are taken", list.len());
        return Err(ApiError::invalid(field, message));
    }
    let is_text = list[0].is_string();
    let numbered = list.into_iter().enumerate();
    let prompt = |(index, value): (usize, Value)| match value {
        Value::String(text) if is_text => Ok(TextPrompt::Text(text)),
        Value::Array(list) if !is_text && list.is_empty() => {
            let name = format!("{field}[{index}]");
            Err(ApiError::invalid(&name, format!("{name} is empty")))
        }
        Value::Array(_) if !is_text => {
            ids(&format!("{field}[{index}]"), &value).map(TextPrompt::Ids)
        }
        _ => Err(mixed()),
    };
    numbered.map(prompt).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> Result<CompletionRequest, ApiError> {
        CompletionRequest::read(body.to_string().as_bytes())
    }

    #[test]
    fn prompts_come_in_four_forms() {
        let prompts = |value: Value| read(json!({"prompt": value})).unwrap().prompts;
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
            assert!(read(json!({"prompt": bad})).is_err(), "{bad}");
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
    fn nothing_may_be_generated_only_where_something_else_is_asked_for() {
        assert!(read(json!({"prompt": "a", "max_tokens": 0})).is_err());
        read(json!({"prompt": "a", "max_tokens": 0, "echo": true})).unwrap();
        read(json!({"prompt": "a", "max_tokens": 0, "prompt_logprobs": 1})).unwrap();
        assert_eq!(read(json!({"prompt": "a"})).unwrap().decoding.max_tokens, Some(16));
    }
}
