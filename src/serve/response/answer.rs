//! The response of a completion: collects the engine's events by choice, and writes them as chunks of a stream or as one object.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::choice::{ChoiceText, Delta, ThinkEnd, refuse_broken};
use super::logprobs::{self, ListWriter, Lists, Offset};
use crate::audit::case;
use crate::engine::{Completion, Event, TokenLogprobs};
use crate::record::{FinishReason, Usage};
use crate::serve::audit::{About, Told};
use crate::serve::error::ApiError;
use crate::serve::generation::{ChoiceEvent, Generation};
use crate::serve::models::ServedModel;

/// The parameters of the request that the response needs.
pub struct Heading {
    pub id: String,
    pub created: u64,
    pub model: Arc<ServedModel>,
    pub seed: u64,
    pub digest: String,
    /// Fields of the request that had no effect.
    pub ignored: Vec<String>,
    pub token_ids: bool,
    pub prompts: Vec<Vec<u32>>,
    /// The number of top log-probabilities for each token; `None` for no log-probabilities.
    pub logprobs: Option<usize>,
    /// The same for the tokens of the prompt, in vLLM's form.
    pub prompt_logprobs: Option<usize>,
    pub form: Form,
}

/// The endpoint of a response.
pub enum Form {
    Chat { think_end: Option<ThinkEnd> },
    Text { echoed: Option<Vec<String>>, tokens_as_ids: bool },
}

/// A response and its choices.
pub struct Answer {
    pub heading: Heading,
    choices: Vec<Choice>,
    samples: usize,
}

struct Choice {
    text: ChoiceText,
    /// What is not sent yet.
    kept: Delta,
    /// Behind what was sent, for `text_offset`.
    offset: Offset,
    /// Whether its prompt was already echoed.
    is_echoed: bool,
    /// So far.
    usage: Usage,
    done: Option<Box<Completion>>,
    admitted_at: Option<Instant>,
    last_at: Option<Instant>,
}

/// The effect of an event on a choice.
pub enum Step {
    /// The engine has begun with it.
    Begun,
    Grown(Delta),
    /// It has ended, with the text that was held back.
    Done(Delta),
}

impl Answer {
    pub fn new(heading: Heading, generation: &Generation) -> Answer {
        let think_end = match &heading.form {
            Form::Chat { think_end } => think_end.clone(),
            Form::Text { .. } => None,
        };
        let choice = |_| Choice {
            text: ChoiceText::new(think_end.clone()),
            kept: Delta::default(),
            offset: Offset::default(),
            is_echoed: false,
            usage: Usage::default(),
            done: None,
            admitted_at: None,
            last_at: None,
        };
        let choices: Vec<Choice> = generation.prompt_tokens.iter().map(choice).collect();
        let samples = choices.len() / heading.prompts.len().max(1);
        Answer { heading, choices, samples }
    }

    /// Applies an event, and updates metrics.
    pub fn take(
        &mut self,
        told: ChoiceEvent,
        generation: &mut Generation,
    ) -> Result<Step, ApiError> {
        let ChoiceEvent { choice: index, at, event } = told;
        let metrics = &generation.model.metrics;
        let choice = &mut self.choices[index];
        match event {
            Event::Admitted { cached_tokens } => {
                choice.usage.cached_tokens = cached_tokens;
                choice.admitted_at = Some(at);
                Ok(Step::Begun)
            }
            Event::Piece { text, tokens, logprobs } => {
                choice.usage.prompt_tokens = generation.prompt_tokens[index];
                choice.usage.completion_tokens += tokens.len();
                match choice.last_at.replace(at) {
                    Some(last) => metrics.inter_token(at - last, tokens.len()),
                    None => {
                        metrics.first_token(at - generation.begun_at);
                    }
                }
                let delta = choice.text.take(&text, &tokens, logprobs);
                Ok(Step::Grown(delta))
            }
            Event::Done(Err(error)) => Err(error.into()),
            Event::Done(Ok(completion)) => {
                metrics.finished(&completion, at - generation.begun_at);
                refuse_broken(&completion, &generation.format_field)?;
                generation.keep(index, &completion, at - generation.begun_at);
                let delta = choice.text.finish();
                choice.usage = completion.usage;
                choice.done = Some(completion);
                Ok(Step::Done(delta))
            }
        }
    }

    /// Whether every choice has ended.
    pub fn is_done(&self) -> bool {
        self.choices.iter().all(|choice| choice.done.is_some())
    }

    /// Keeps a delta for the whole response.
    pub fn keep(&mut self, index: usize, delta: Delta) {
        let Delta { reasoning, content, entries, tokens } = &mut self.choices[index].kept;
        *reasoning += &delta.reasoning;
        *content += &delta.content;
        entries.extend(delta.entries);
        tokens.extend(delta.tokens);
    }

    pub fn whole(mut self) -> Value {
        let choices: Vec<Value> = (0..self.choices.len()).map(|index| self.choice(index)).collect();
        let mut answer = self.envelope(match self.heading.form {
            Form::Chat { .. } => "chat.completion",
            Form::Text { .. } => "text_completion",
        });
        answer["choices"] = choices.into();
        answer["usage"] = self.usage();
        answer["wardround"] = self.own_fields();
        if let Form::Chat { .. } = self.heading.form {
            self.add_prompt(&mut answer, 0);
        }
        answer
    }

    /// Adds the fields about a choice's prompt: of a chat to the response, of a text to each choice.
    fn add_prompt(&self, value: &mut Value, index: usize) {
        if self.heading.prompt_logprobs.is_some() {
            value["prompt_logprobs"] = self.prompt_logprobs(index);
        }
        if self.heading.token_ids {
            value["prompt_token_ids"] = json!(self.heading.prompts[index / self.samples]);
        }
    }

    fn choice(&mut self, index: usize) -> Value {
        let delta = std::mem::take(&mut self.choices[index].kept);
        let mut value = self.part(index, delta, "message");
        if let Form::Text { .. } = self.heading.form {
            self.add_prompt(&mut value, index);
        }
        value["finish_reason"] = self.finish_reason(index);
        value
    }

    /// The object of a choice with a delta, in a chunk or a whole response. `field` has the text of a chat: `delta` or `message`.
    fn part(&mut self, index: usize, delta: Delta, field: &str) -> Value {
        let Delta { reasoning, content, entries, tokens } = delta;
        let tokenizer = self.heading.model.backbone.description.tokenizer.clone();
        let mut value = json!({"index": index});
        match &self.heading.form {
            Form::Chat { .. } => {
                let mut message = json!({});
                if field == "message" {
                    message["role"] = "assistant".into();
                }
                if field == "message" || !content.is_empty() || reasoning.is_empty() {
                    message["content"] = content.into();
                }
                if !reasoning.is_empty() {
                    message["reasoning_content"] = reasoning.into();
                }
                if field == "message" {
                    message["refusal"] = Value::Null;
                }
                value[field] = message;
                let chat = |_| logprobs::chat(&tokenizer, &entries);
                value["logprobs"] = self.heading.logprobs.map_or(Value::Null, chat);
            }
            Form::Text { echoed, tokens_as_ids } => {
                let prompt = index / self.samples;
                let choice = &mut self.choices[index];
                let echo = echoed
                    .as_ref()
                    .filter(|_| !choice.is_echoed)
                    .map(|texts| texts[prompt].as_str());
                value["text"] = format!("{}{content}", echo.unwrap_or_default()).into();
                let mut lists = Lists::default();
                let mut writer = ListWriter {
                    tokenizer: &tokenizer,
                    as_ids: *tokens_as_ids,
                    top: self.heading.logprobs.unwrap_or(0),
                    offset: std::mem::take(&mut choice.offset),
                };
                if let Some(text) = echo {
                    let ids = &self.heading.prompts[prompt];
                    writer.offset = Offset::of_prompt(text, &tokenizer.decode_shown(ids));
                    let done = choice.done.as_ref();
                    let found = done.map_or(&[][..], |done| &done.prompt_logprobs);
                    let found = found.iter().map(Option::as_ref).chain(std::iter::repeat(None));
                    for (id, found) in ids.iter().zip(found) {
                        writer.add_shown(&mut lists, *id, found);
                    }
                    writer.offset = Offset::behind(text);
                }
                for entry in &entries {
                    writer.add(&mut lists, entry.id, entry.logprobs.as_ref());
                }
                (choice.offset, choice.is_echoed) = (writer.offset, true);
                value["logprobs"] = self.heading.logprobs.map_or(Value::Null, |_| lists.json());
            }
        }
        if self.heading.token_ids {
            value["token_ids"] = json!(tokens);
        }
        value
    }

    fn prompt_logprobs(&self, index: usize) -> Value {
        let tokenizer = &self.heading.model.backbone.description.tokenizer;
        let found: &[Option<TokenLogprobs>] =
            self.choices[index].done.as_ref().map_or(&[], |done| &done.prompt_logprobs);
        let top = self.heading.prompt_logprobs.unwrap_or(0);
        logprobs::prompt(tokenizer, &self.heading.prompts[index / self.samples], found, top)
    }

    /// The first chunk of a choice of a chat.
    pub fn first_chunk(&self, index: usize) -> Option<Value> {
        match self.heading.form {
            Form::Chat { .. } => Some(self.chunk(json!([{
                "index": index, "delta": {"role": "assistant", "content": ""}, "logprobs": null, "finish_reason": null
            }]))),
            Form::Text { .. } => None,
        }
    }

    /// Whether a choice can be sent only at its end, because the log-probabilities of an echoed prompt come last.
    pub fn waits_for_end(&self) -> bool {
        let echoes = matches!(self.heading.form, Form::Text { echoed: Some(_), .. });
        echoes && self.heading.logprobs.is_some()
    }

    /// The chunk of a delta; `None` if it has nothing to send.
    pub fn delta_chunk(&mut self, index: usize, delta: Delta) -> Option<Value> {
        let is_empty = delta.content.is_empty() && delta.reasoning.is_empty();
        if is_empty && delta.entries.is_empty() && !self.heading.token_ids {
            return None;
        }
        let mut part = self.part(index, delta, "delta");
        part["finish_reason"] = Value::Null;
        Some(self.chunk(json!([part])))
    }

    /// The last chunk of a choice, with the fields about its prompt; with everything if the choice is sent only at its end.
    pub fn last_chunk(&mut self, index: usize) -> Value {
        let mut part = match (self.waits_for_end(), &self.heading.form) {
            (true, _) => {
                let delta = std::mem::take(&mut self.choices[index].kept);
                self.part(index, delta, "delta")
            }
            (false, Form::Chat { .. }) => json!({"index": index, "delta": {}, "logprobs": null}),
            // The echo of a prompt without a completion.
            (false, Form::Text { .. }) => {
                let mut part = self.part(index, Delta::default(), "delta");
                part["logprobs"] = Value::Null;
                part
            }
        };
        part["finish_reason"] = self.finish_reason(index);
        if let Form::Text { .. } = self.heading.form {
            self.add_prompt(&mut part, index);
            return self.chunk(json!([part]));
        }
        let mut chunk = self.chunk(json!([part]));
        if index == 0 {
            self.add_prompt(&mut chunk, index);
        }
        chunk
    }

    pub fn usage_chunk(&self) -> Value {
        let mut chunk = self.chunk(json!([]));
        chunk["usage"] = self.usage();
        chunk
    }

    fn chunk(&self, choices: Value) -> Value {
        let mut chunk = self.envelope(match self.heading.form {
            Form::Chat { .. } => "chat.completion.chunk",
            Form::Text { .. } => "text_completion",
        });
        chunk["choices"] = choices;
        chunk
    }

    fn envelope(&self, object: &str) -> Value {
        let Heading { id, created, model, .. } = &self.heading;
        json!({
            "id": id, "object": object, "created": created, "model": model.id,
            "system_fingerprint": model.fingerprint, "choices": [],
        })
    }

    /// What no other server's responses have: the seed, the request's digest, and the fields without effect.
    pub fn own_fields(&self) -> Value {
        let Heading { seed, digest, ignored, .. } = &self.heading;
        json!({"seed": *seed as i64, "request": digest, "ignored": ignored})
    }

    fn finish_reason(&self, index: usize) -> Value {
        match self.choices[index].done.as_ref().map(|done| done.finish_reason) {
            Some(FinishReason::Length) => "length".into(),
            Some(_) => "stop".into(),
            None => Value::Null,
        }
    }
}

impl Told for Answer {
    fn about(&self) -> About {
        let Heading { model, seed, digest, .. } = &self.heading;
        About {
            model: model.id.clone(),
            fingerprint: model.fingerprint.clone(),
            seed: Some(*seed),
            request: digest.clone(),
        }
    }

    /// The text and tokens of every choice, whether streamed or not.
    fn outputs(&self) -> Value {
        let done = self.choices.iter().map(|choice| choice.done.as_ref());
        done.map(|done| done.map(|done| json!({"text": done.text, "tokens": done.tokens})))
            .collect()
    }

    fn finish_reasons(&self) -> Value {
        (0..self.choices.len()).map(|index| self.finish_reason(index)).collect()
    }

    /// The token usage of all choices so far; each prompt counts once.
    fn usage(&self) -> Value {
        let mut sum = Usage::default();
        let mut reasoning = 0;
        for (index, choice) in self.choices.iter().enumerate() {
            reasoning += choice.text.reasoning_tokens;
            sum.completion_tokens += choice.usage.completion_tokens;
            if index % self.samples == 0 {
                sum.prompt_tokens += choice.usage.prompt_tokens;
                sum.cached_tokens += choice.usage.cached_tokens;
            }
        }
        let mut usage = case::usage(sum);
        usage["completion_tokens_details"]["reasoning_tokens"] = reasoning.into();
        usage
    }
}
