//! What a model answers: the engine's events of each choice as chunks.

use std::time::Instant;

use serde_json::{Value, json};

use super::choice::{ChoiceText, Delta, ThinkEnd, refuse_broken};
use super::events::Answering;
use super::logprobs::{self, ListWriter, Lists, Offset};
use super::reply::{self, Choice, Head, Logprobs, OfPrompt, Own};
use crate::engine::{Completion, Event, TokenLogprobs};
use crate::record::{FinishReason, Usage};
use crate::serve::audit::{About, Pending, Told};
use crate::serve::budget::Reserved;
use crate::serve::error::{ApiError, Code};
use crate::serve::generation::{ChoiceEvent, Generation};

/// The parameters of the request that the response needs.
pub struct Heading {
    pub head: Head,
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
    heading: Heading,
    generation: Generation,
    choices: Vec<ChoiceState>,
    samples: usize,
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
    /// So far.
    usage: Usage,
    done: Option<Box<Completion>>,
    last_at: Option<Instant>,
}

impl Answer {
    pub fn new(heading: Heading, generation: Generation) -> Answer {
        let think_end = match &heading.form {
            Form::Chat { think_end } => think_end.clone(),
            Form::Text { .. } => None,
        };
        let choice = |_| ChoiceState {
            text: ChoiceText::new(think_end.clone()),
            kept: Delta::default(),
            offset: Offset::default(),
            is_echoed: false,
            usage: Usage::default(),
            done: None,
            last_at: None,
        };
        let choices: Vec<ChoiceState> = generation.prompt_tokens.iter().map(choice).collect();
        let samples = choices.len() / heading.prompts.len().max(1);
        Answer { heading, generation, choices, samples, told: None }
    }

    /// With its lines in the audit trail.
    pub fn told(self, pending: Pending, reserved: Option<Reserved>) -> Answer {
        Answer { told: Some((pending, reserved)), ..self }
    }

    /// The chunks of an event.
    fn take(&mut self, told: ChoiceEvent) -> Result<Vec<Choice>, ApiError> {
        let ChoiceEvent { choice: index, at, event } = told;
        let generation = &self.generation;
        let metrics = &generation.model.metrics;
        let choice = &mut self.choices[index];
        let mut delta = match event {
            Event::Admitted { cached_tokens } => {
                choice.usage.cached_tokens = cached_tokens;
                let is_chat = self.heading.head.is_chat;
                return Ok(is_chat.then(|| Choice::begun(index)).into_iter().collect());
            }
            Event::Piece { text, tokens, logprobs } => {
                choice.usage.prompt_tokens = generation.prompt_tokens[index];
                choice.usage.completion_tokens += tokens.len();
                match choice.last_at.replace(at) {
                    Some(last) => metrics.inter_token(at - last, tokens.len()),
                    None => metrics.first_token(at - generation.begun_at),
                }
                choice.text.take(&text, &tokens, logprobs)
            }
            Event::Done(completion) => {
                let completion = completion?;
                metrics.finished(&completion, at - generation.begun_at);
                refuse_broken(&completion, &generation.format_field)?;
                generation.keep(index, &completion, at - generation.begun_at);
                choice.usage = completion.usage;
                choice.done = Some(completion);
                choice.text.finish()
            }
        };
        let is_done = choice.done.is_some();
        // The log-probabilities of an echoed prompt come last.
        let echoes = matches!(self.heading.form, Form::Text { echoed: Some(_), .. });
        if echoes && self.heading.logprobs.is_some() {
            choice.kept.add(delta);
            if !is_done {
                return Ok(Vec::new());
            }
            delta = std::mem::take(&mut choice.kept);
        }
        let is_empty = delta.content.is_empty() && delta.reasoning.is_empty();
        let says_nothing = is_empty && delta.entries.is_empty() && !self.heading.token_ids;
        if says_nothing && !is_done {
            return Ok(Vec::new());
        }
        let mut chunk = self.chunk(index, delta);
        if is_done {
            chunk.finish_reason = self.finish_reason(index);
            chunk.prompt = self.of_prompt(index);
        }
        Ok(vec![chunk])
    }

    fn chunk(&mut self, index: usize, delta: Delta) -> Choice {
        let Delta { reasoning, content, entries, tokens } = delta;
        let tokenizer = &self.generation.model.backbone.description.tokenizer;
        let token_ids = self.heading.token_ids.then_some(tokens);
        match &self.heading.form {
            Form::Chat { .. } => {
                let said = |text: String| Some(text).filter(|text| !text.is_empty());
                let (content, reasoning_content) = (said(content), said(reasoning));
                let delta = reply::Delta { role: None, content, reasoning_content };
                let logprobs = self.heading.logprobs.map(|_| logprobs::chat(tokenizer, &entries));
                Choice { logprobs, token_ids, ..Choice::of_chat(index, delta) }
            }
            Form::Text { echoed, tokens_as_ids } => {
                let prompt = index / self.samples;
                let choice = &mut self.choices[index];
                let echo = echoed
                    .as_ref()
                    .filter(|_| !choice.is_echoed)
                    .map(|texts| texts[prompt].as_str());
                let mut lists = Lists::default();
                let mut writer = ListWriter {
                    tokenizer,
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
                Choice {
                    index,
                    text: Some(format!("{}{content}", echo.unwrap_or_default())),
                    logprobs: self.heading.logprobs.map(|_| Logprobs::Text(lists)),
                    token_ids,
                    ..Choice::default()
                }
            }
        }
    }

    /// What was asked of a choice's prompt; of a chat, which has one prompt, with its first choice.
    fn of_prompt(&self, index: usize) -> OfPrompt {
        if self.heading.head.is_chat && index > 0 {
            return OfPrompt::default();
        }
        let tokenizer = &self.generation.model.backbone.description.tokenizer;
        let ids = &self.heading.prompts[index / self.samples];
        let found: &[Option<TokenLogprobs>] =
            self.choices[index].done.as_ref().map_or(&[], |done| &done.prompt_logprobs);
        let logprobs = |top| logprobs::prompt(tokenizer, ids, found, top);
        OfPrompt {
            prompt_logprobs: self.heading.prompt_logprobs.map(logprobs),
            prompt_token_ids: self.heading.token_ids.then(|| ids.clone()),
        }
    }

    fn finish_reason(&self, index: usize) -> Option<&'static str> {
        let done = self.choices[index].done.as_ref()?;
        Some(if done.finish_reason == FinishReason::Length { "length" } else { "stop" })
    }
}

impl Answering for Answer {
    async fn next(&mut self) -> Result<Vec<(Choice, reply::Usage)>, ApiError> {
        let lost = || ApiError::new(Code::Internal, "the completion was lost");
        let mut told = Some(self.generation.next().await.ok_or_else(lost)?);
        let mut chunks = Vec::new();
        // Events that have arrived meanwhile are sent together.
        while let Some(event) = told {
            let taken = self.take(event)?;
            chunks.extend(taken.into_iter().map(|choice| (choice, self.used())));
            told = self.generation.next_at_hand();
        }
        Ok(chunks)
    }

    fn is_done(&self) -> bool {
        self.choices.iter().all(|choice| choice.done.is_some())
    }

    fn head(&self) -> &Head {
        &self.heading.head
    }

    /// Of all choices; each prompt counts once.
    fn used(&self) -> reply::Usage {
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
        reply::Usage::of(sum, reasoning)
    }

    fn own(&self) -> Own {
        Own {
            seed: self.generation.seed as i64,
            request: self.generation.digest.clone(),
            ignored: self.heading.ignored.clone(),
            item: None,
            record: None,
            records: None,
        }
    }

    async fn end(&mut self) -> Result<(), ApiError> {
        match self.told.take() {
            Some((mut pending, _reserved)) => pending.done(&*self).await,
            None => Ok(()),
        }
    }

    fn failed(&mut self, error: &ApiError) {
        if let Some((mut pending, _reserved)) = self.told.take() {
            pending.failed(error, &*self);
        }
    }

    fn sent(&mut self, text: &str) {
        if let Some((pending, _)) = &mut self.told {
            pending.sent(text);
        }
    }
}

impl Told for Answer {
    fn about(&self) -> About {
        About {
            model: self.heading.head.model.clone(),
            fingerprint: self.heading.head.fingerprint.clone(),
            seed: Some(self.generation.seed),
            request: self.generation.digest.clone(),
        }
    }

    /// The text and tokens of every choice, whether streamed or not.
    fn outputs(&self) -> Value {
        let done = self.choices.iter().map(|choice| choice.done.as_ref());
        done.map(|done| done.map(|done| json!({"text": done.text, "tokens": done.tokens})))
            .collect()
    }

    fn usage(&self) -> Value {
        json!(self.used())
    }

    fn finish_reasons(&self) -> Value {
        (0..self.choices.len()).map(|index| self.finish_reason(index)).collect()
    }
}
