//! What a model answers: the engine's events of each choice as chunks.

use std::time::Instant;

use serde_json::json;

use super::choice::{ChoiceText, Delta, ThinkEnd, refuse_broken};
use super::events::Answering;
use super::logprobs::{self, ListWriter, Lists, Offset};
use super::reply::{self, Choice, Head, Logprobs, Own};
use crate::engine::{Completion, Event};
use crate::record::{FinishReason, Usage};
use crate::serve::audit::{About, Pending};
use crate::serve::budget::Reserved;
use crate::serve::error::{ApiError, Code};
use crate::serve::generation::{ChoiceEvent, Generation};

/// The endpoint of a response.
pub enum Form {
    Chat { think_end: Option<ThinkEnd> },
    Text { echoed: Option<Vec<String>> },
}

/// A response and its choices.
pub struct Answer {
    head: Head,
    form: Form,
    /// Fields of the request that had no effect.
    ignored: Vec<String>,
    generation: Generation,
    choices: Vec<ChoiceState>,
    /// Its lines of the audit trail, and what its body takes of the budget while the trail keeps it.
    told: Option<(Pending, Option<Reserved>)>,
}

struct ChoiceState {
    text: ChoiceText,
    /// What is not sent yet.
    kept: Delta,
    /// Behind what was sent, for `text_offset`.
    offset: Offset,
    /// Whether its prompt was already echoed.
    is_echoed: bool,
    done: Option<Box<Completion>>,
    last_at: Option<Instant>,
}

impl Answer {
    pub fn new(head: Head, form: Form, ignored: Vec<String>, generation: Generation) -> Answer {
        let think_end = match &form {
            Form::Chat { think_end } => think_end.clone(),
            Form::Text { .. } => None,
        };
        let choice = |_| ChoiceState {
            text: ChoiceText::new(think_end.clone()),
            kept: Delta::default(),
            offset: Offset::default(),
            is_echoed: false,
            done: None,
            last_at: None,
        };
        let count = generation.prompts.len() * generation.samples;
        Answer {
            head,
            form,
            ignored,
            generation,
            choices: (0..count).map(choice).collect(),
            told: None,
        }
    }

    /// With its lines in the audit trail.
    pub fn told(self, pending: Pending, reserved: Option<Reserved>) -> Answer {
        Answer { told: Some((pending, reserved)), ..self }
    }

    /// The chunk of an event, if it brings one.
    fn take(&mut self, told: ChoiceEvent) -> Result<Option<Choice>, ApiError> {
        let ChoiceEvent { choice: index, at, event } = told;
        let generation = &self.generation;
        let metrics = &generation.metrics;
        let choice = &mut self.choices[index];
        let mut delta = match event {
            Event::Admitted { .. } => {
                return Ok(self.head.is_chat.then(|| Choice::begun(index)));
            }
            Event::Piece { text, tokens, logprobs } => {
                match choice.last_at.replace(at) {
                    Some(last) => metrics.inter_token(at - last, tokens.len()),
                    None => metrics.first_token(at - generation.begun_at),
                }
                choice.text.take(&text, &tokens, logprobs)
            }
            Event::Done(completion) => {
                let completion = completion?;
                metrics.finished(&completion, at - generation.begun_at);
                refuse_broken(&completion, generation.format_field)?;
                choice.done = Some(completion);
                choice.text.finish()
            }
        };
        let is_done = choice.done.is_some();
        // The log-probabilities of an echoed prompt come last.
        let echoes = matches!(self.form, Form::Text { echoed: Some(_) });
        if echoes && generation.logprobs.is_some() {
            choice.kept.add(delta);
            if !is_done {
                return Ok(None);
            }
            delta = std::mem::take(&mut choice.kept);
        }
        let is_empty = delta.content.is_empty() && delta.reasoning.is_empty();
        if is_empty && delta.entries.is_empty() && !is_done {
            return Ok(None);
        }
        let finish_reason = self.finish_reason(index);
        Ok(Some(Choice { finish_reason, ..self.chunk(index, delta) }))
    }

    fn chunk(&mut self, index: usize, delta: Delta) -> Choice {
        let Delta { reasoning, content, entries } = delta;
        let generation = &self.generation;
        let tokenizer = &generation.model.backbone.description.tokenizer;
        match &self.form {
            Form::Chat { .. } => {
                let said = |text: String| Some(text).filter(|text| !text.is_empty());
                let (content, reasoning_content) = (said(content), said(reasoning));
                let delta = reply::Delta { role: None, content, reasoning_content };
                let logprobs = generation.logprobs.map(|_| logprobs::chat(tokenizer, &entries));
                Choice { logprobs, ..Choice::of_chat(index, delta) }
            }
            Form::Text { echoed } => {
                let prompt = index / generation.samples;
                let choice = &mut self.choices[index];
                let echo = echoed
                    .as_ref()
                    .filter(|_| !choice.is_echoed)
                    .map(|texts| texts[prompt].as_str());
                let mut lists = Lists::default();
                let mut writer = ListWriter {
                    tokenizer,
                    top: generation.logprobs.unwrap_or(0),
                    offset: std::mem::take(&mut choice.offset),
                };
                if let Some(text) = echo {
                    let ids = &generation.prompts[prompt];
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
                Choice {
                    index,
                    text: Some(format!("{}{content}", echo.unwrap_or_default())),
                    logprobs: generation.logprobs.map(|_| Logprobs::Text(lists)),
                    ..Choice::default()
                }
            }
        }
    }

    /// What the audit trail has of it: the text and tokens of every choice, whether streamed or not.
    pub fn about(&self) -> About {
        let done = self.choices.iter().map(|choice| choice.done.as_ref());
        let said =
            done.map(|done| done.map(|done| json!({"text": done.text, "tokens": done.tokens})));
        About {
            model: self.head.model.clone(),
            fingerprint: self.head.fingerprint.clone(),
            seed: Some(self.generation.seed),
            request: self.generation.digest.clone(),
            output: said.collect(),
            usage: json!(self.used()),
            finish: (0..self.choices.len()).map(|index| self.finish_reason(index)).collect(),
        }
    }

    fn finish_reason(&self, index: usize) -> Option<&'static str> {
        let done = self.choices[index].done.as_ref()?;
        Some(if done.finish_reason == FinishReason::Length { "length" } else { "stop" })
    }
}

impl Answering for Answer {
    async fn next(&mut self) -> Result<Vec<Choice>, ApiError> {
        let lost = || ApiError::new(Code::Internal, "the completion was lost");
        let mut told = Some(self.generation.events.recv().await.ok_or_else(lost)?);
        let mut chunks = Vec::new();
        // Events that have arrived meanwhile are sent together.
        while let Some(event) = told {
            chunks.extend(self.take(event)?);
            told = self.generation.events.try_recv().ok();
        }
        Ok(chunks)
    }

    fn is_done(&self) -> bool {
        self.choices.iter().all(|choice| choice.done.is_some())
    }

    fn head(&self) -> &Head {
        &self.head
    }

    /// Of all choices that have ended; each prompt counts once.
    fn used(&self) -> reply::Usage {
        let mut sum = Usage::default();
        let mut reasoning = 0;
        for (index, choice) in self.choices.iter().enumerate() {
            let used = choice.done.as_ref().map(|done| done.usage).unwrap_or_default();
            reasoning += choice.text.reasoning_tokens;
            sum.completion_tokens += used.completion_tokens;
            if index % self.generation.samples == 0 {
                sum.prompt_tokens += used.prompt_tokens;
                sum.cached_tokens += used.cached_tokens;
            }
        }
        reply::Usage::of(sum, reasoning)
    }

    fn own(&self) -> Own {
        Own {
            seed: self.generation.seed as i64,
            request: self.generation.digest.clone(),
            ignored: self.ignored.clone(),
            item: None,
            record: None,
            records: None,
        }
    }

    async fn end(&mut self) -> Result<(), ApiError> {
        match self.told.take() {
            Some((mut pending, _reserved)) => pending.done(self.about()).await,
            None => Ok(()),
        }
    }

    fn failed(&mut self, error: &ApiError) {
        if let Some((mut pending, _reserved)) = self.told.take() {
            pending.failed(error, self.about());
        }
    }

    fn sent(&mut self, text: &str) {
        if let Some((pending, _)) = &mut self.told {
            pending.sent(text);
        }
    }
}
