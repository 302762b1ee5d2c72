//! An answer as it grows: what events add to its choices, as chunks of a stream or as one object in the end.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::choice::{ChoiceText, Delta, ThinkEnd, TokenEntry, refuse_broken};
use super::logprobs::{self, ListWriter, Lists};
use crate::engine::{Completion, Event, TokenLogprobs};
use crate::record::{FinishReason, Usage};
use crate::serve::error::ApiError;
use crate::serve::generation::{ChoiceEvent, Generation};
use crate::serve::models::ServedModel;

/// What an answer repeats of its request.
pub struct Heading {
    pub id: String,
    pub created: u64,
    pub model: Arc<ServedModel>,
    pub seed: u64,
    pub digest: String,
    /// Fields of the request that had no effect.
    pub ignored: Vec<String>,
    /// Whether token ids are given.
    pub token_ids: bool,
    /// The tokens of each prompt.
    pub prompts: Vec<Vec<u32>>,
    /// How many of the likeliest tokens stand beside each of the answer; `None`: no log-probabilities.
    pub logprobs: Option<usize>,
    /// The same in vLLM's form, of the prompt.
    pub prompt_logprobs: Option<usize>,
    pub form: Form,
}

/// Which endpoint answers.
pub enum Form {
    Chat { think_end: Option<ThinkEnd> },
    Text { echoed: Option<Vec<String>>, tokens_as_ids: bool },
}

/// An answer with its choices.
pub struct Answer {
    pub heading: Heading,
    choices: Vec<Choice>,
    samples: usize,
}

/// What there is of one choice.
struct Choice {
    text: ChoiceText,
    content: String,
    reasoning: String,
    entries: Vec<TokenEntry>,
    tokens: Vec<u32>,
    /// Characters of the text so far, as `text_offset` counts.
    offset: usize,
    /// Whether its prompt was given back, where that was asked for.
    is_echoed: bool,
    done: Option<Box<Completion>>,
    admitted_at: Option<Instant>,
    last_at: Option<Instant>,
}

/// What an event made of a choice.
pub enum Step {
    /// The engine began with it.
    Begun,
    Grown(Delta),
    /// With what was still held back.
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
            content: String::new(),
            reasoning: String::new(),
            entries: Vec::new(),
            tokens: Vec::new(),
            offset: 0,
            is_echoed: false,
            done: None,
            admitted_at: None,
            last_at: None,
        };
        let choices: Vec<Choice> = generation.prompt_tokens.iter().map(choice).collect();
        let samples = choices.len() / heading.prompts.len().max(1);
        Answer { heading, choices, samples }
    }

    /// Takes an event in, and tells metrics and queue of it.
    ///
    /// # Errors
    /// A grammar that could not go on; an engine that died.
    pub fn take(
        &mut self,
        told: ChoiceEvent,
        generation: &mut Generation,
    ) -> Result<Step, ApiError> {
        let ChoiceEvent { choice: index, at, event } = told;
        let metrics = &generation.model.metrics;
        let choice = &mut self.choices[index];
        match event {
            Event::Admitted { .. } => {
                choice.admitted_at = Some(at);
                Ok(Step::Begun)
            }
            Event::Piece { text, tokens, logprobs } => {
                match choice.last_at.replace(at) {
                    Some(last) => metrics.inter_token(at - last, tokens.len()),
                    None => {
                        metrics.first_token(at - generation.begun_at);
                        let began = choice.admitted_at.unwrap_or(generation.begun_at);
                        generation.prompt_computed(index, at - began);
                    }
                }
                let delta = choice.text.take(&text, &tokens, logprobs);
                Ok(Step::Grown(delta))
            }
            Event::Done(Err(error)) => Err(error.into()),
            Event::Done(Ok(completion)) => {
                metrics.finished(&completion, at - generation.begun_at);
                refuse_broken(&completion)?;
                let delta = choice.text.finish();
                choice.done = Some(completion);
                Ok(Step::Done(delta))
            }
        }
    }

    /// Whether every choice has ended.
    pub fn is_done(&self) -> bool {
        self.choices.iter().all(|choice| choice.done.is_some())
    }

    /// Keeps what a delta adds, for the whole.
    pub fn keep(&mut self, index: usize, delta: Delta) {
        let choice = &mut self.choices[index];
        choice.content += &delta.content;
        choice.reasoning += &delta.reasoning;
        choice.entries.extend(delta.entries);
        choice.tokens.extend(delta.tokens);
    }

    /// The whole answer.
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

    /// What was asked of a choice's prompt: beside the choices of a chat, in each choice of a text.
    fn add_prompt(&self, value: &mut Value, index: usize) {
        if self.heading.prompt_logprobs.is_some() {
            value["prompt_logprobs"] = self.prompt_logprobs(index);
        }
        if self.heading.token_ids {
            value["prompt_token_ids"] = json!(self.heading.prompts[index / self.samples]);
        }
    }

    fn choice(&mut self, index: usize) -> Value {
        let choice = &mut self.choices[index];
        let delta = Delta {
            reasoning: std::mem::take(&mut choice.reasoning),
            content: std::mem::take(&mut choice.content),
            entries: std::mem::take(&mut choice.entries),
            tokens: std::mem::take(&mut choice.tokens),
        };
        let mut value = self.part(index, delta, "message");
        if let Form::Text { .. } = self.heading.form {
            self.add_prompt(&mut value, index);
        }
        value["finish_reason"] = self.finish_reason(index);
        value
    }

    /// A choice's new part, as chunks and wholes both write it. `field`: where chat's text stands.
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
                    offset: choice.offset,
                };
                if echo.is_some() {
                    let done = choice.done.as_ref();
                    let found = done.map_or(&[][..], |done| &done.prompt_logprobs);
                    let found = found.iter().map(Option::as_ref).chain(std::iter::repeat(None));
                    for (id, found) in self.heading.prompts[prompt].iter().zip(found) {
                        writer.add(&mut lists, *id, found);
                    }
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
    pub fn opening(&self, index: usize) -> Option<Value> {
        match self.heading.form {
            Form::Chat { .. } => Some(self.chunk(json!([{
                "index": index, "delta": {"role": "assistant", "content": ""}, "logprobs": null, "finish_reason": null
            }]))),
            Form::Text { .. } => None,
        }
    }

    /// Whether nothing of a choice can be given before its end: the log-probabilities of an echoed prompt come last.
    pub fn waits_for_end(&self) -> bool {
        let echoes = matches!(self.heading.form, Form::Text { echoed: Some(_), .. });
        echoes && self.heading.logprobs.is_some()
    }

    /// A chunk with what is new.
    pub fn growth(&mut self, index: usize, delta: Delta) -> Option<Value> {
        let is_empty = delta.content.is_empty() && delta.reasoning.is_empty();
        if is_empty && delta.entries.is_empty() && !self.heading.token_ids {
            return None;
        }
        let mut part = self.part(index, delta, "delta");
        part["finish_reason"] = Value::Null;
        Some(self.chunk(json!([part])))
    }

    /// The last chunk of a choice; where the answer waited for its end, with everything. Only now there is all of the prompt.
    pub fn closing(&mut self, index: usize) -> Value {
        let mut part = match (self.waits_for_end(), &self.heading.form) {
            (true, _) => {
                let choice = &mut self.choices[index];
                let delta = Delta {
                    content: std::mem::take(&mut choice.content),
                    entries: std::mem::take(&mut choice.entries),
                    tokens: std::mem::take(&mut choice.tokens),
                    ..Delta::default()
                };
                self.part(index, delta, "delta")
            }
            (false, Form::Chat { .. }) => json!({"index": index, "delta": {}, "logprobs": null}),
            // An echo of which nothing came after.
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

    /// The chunk of the usage.
    pub fn usage_chunk(&self) -> Value {
        let mut chunk = self.chunk(json!([]));
        chunk["usage"] = self.usage();
        chunk["wardround"] = self.own_fields();
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

    fn own_fields(&self) -> Value {
        let Heading { seed, digest, ignored, .. } = &self.heading;
        json!({"seed": seed, "request": digest, "ignored": ignored})
    }

    /// What came of every choice, as the audit trail has it: the same however it was sent.
    pub fn outputs(&self) -> Value {
        let done = self.choices.iter().map(|choice| choice.done.as_ref());
        done.map(|done| done.map(|done| json!({"text": done.text, "tokens": done.tokens})))
            .collect()
    }

    pub fn finish_reasons(&self) -> Value {
        (0..self.choices.len()).map(|index| self.finish_reason(index)).collect()
    }

    fn finish_reason(&self, index: usize) -> Value {
        match self.choices[index].done.as_ref().map(|done| done.finish_reason) {
            Some(FinishReason::Length) => "length".into(),
            Some(_) => "stop".into(),
            None => Value::Null,
        }
    }

    /// The tokens of all choices that have ended; each prompt counts once.
    pub fn usage(&self) -> Value {
        let mut sum = Usage::default();
        let mut reasoning = 0;
        for (index, choice) in self.choices.iter().enumerate() {
            reasoning += choice.text.reasoning_tokens;
            let Some(done) = &choice.done else { continue };
            sum.completion_tokens += done.usage.completion_tokens;
            if index % self.samples == 0 {
                sum.prompt_tokens += done.usage.prompt_tokens;
                sum.cached_tokens += done.usage.cached_tokens;
            }
        }
        json!({
            "prompt_tokens": sum.prompt_tokens,
            "completion_tokens": sum.completion_tokens,
            "total_tokens": sum.prompt_tokens + sum.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": sum.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        })
    }
}
