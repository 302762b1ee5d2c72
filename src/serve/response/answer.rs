//! What a model answers: submits the requests of all choices to the engine, and makes chunks of its events.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::choice::{ChoiceText, Delta, ThinkEnd, refuse_broken};
use super::events::{Answering, Started};
use super::logprobs::{self, ListWriter, Lists, Offset};
use super::reply::{self, Choice, Logprobs, Own, Reply};
use crate::engine::{Completion, Constraint, Event, Request, RequestHandle, Stop};
use crate::panel::request::digest;
use crate::record::{FinishReason, Usage};
use crate::serve::app::App;
use crate::serve::error::{ApiError, too_long};
use crate::serve::guard::{Caller, turn};
use crate::serve::metrics::ModelMetrics;
use crate::serve::models::ServedModel;
use crate::serve::queue::Place;
use crate::serve::request::decoding::Decoding;
use crate::serve::request::fields::listed;

/// The most log-probabilities of a response.
const MOST_LOGPROB_ENTRIES: usize = 1 << 17;

/// The endpoint of a response.
pub enum Form {
    /// A grammar applies, and stops count, after the end of the thinking.
    Chat {
        think_end: Option<ThinkEnd>,
    },
    Text {
        echoed: Option<Vec<String>>,
    },
}

impl Form {
    fn think_end(&self) -> Option<&ThinkEnd> {
        match self {
            Form::Chat { think_end } => think_end.as_ref(),
            Form::Text { .. } => None,
        }
    }
}

/// The completions to generate, with tokenised prompts.
pub struct Wanted {
    pub model: Arc<ServedModel>,
    /// Each gets `decoding.n` completions.
    pub prompts: Vec<Vec<u32>>,
    pub decoding: Decoding,
    pub form: Form,
    /// The number of top log-probabilities for each token of the completion.
    pub logprobs: Option<usize>,
    /// The number of top log-probabilities for each token of a prompt that is echoed.
    pub prompt_logprobs: Option<usize>,
}

/// A response and its choices. Requests of choices that have not ended are cancelled on drop.
pub struct Answer {
    head: Reply,
    wanted: Wanted,
    /// Fields of the request that had no effect.
    ignored: Vec<String>,
    seed: u64,
    /// The digest of the requests of all choices: equal digests mean equal completions.
    digest: String,
    /// Ordered by prompt, then by sample.
    choices: Vec<ChoiceState>,
    begun_at: Instant,
    metrics: ModelMetrics,
    events: UnboundedReceiver<ChoiceEvent>,
    _place: Place,
    _handles: Vec<RequestHandle>,
}

struct ChoiceEvent {
    choice: usize,
    at: Instant,
    event: Event,
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

impl Wanted {
    /// Submits all requests to the model's engine. Blocks while the grammar is compiled.
    ///
    /// # Errors
    /// A prompt that leaves no room, a grammar that does not compile, a full queue, an engine that died.
    pub fn begin(
        self,
        app: &App,
        mut ignored: Vec<String>,
        caller: Option<&Caller>,
    ) -> Result<Started<Answer>, ApiError> {
        let Wanted { model, prompts, decoding, .. } = &self;
        let samples = decoding.n();
        let tokens: usize = prompts.iter().map(Vec::len).sum::<usize>() * samples;
        self.refuse_many_logprobs()?;
        let seed = app.seed(decoding.seed())?;
        let (engine, identity) = (&model.backbone.engine, &model.backbone.identity);
        if let Some(format) = &decoding.format {
            // The grammar is compiled before a place in the queue is taken.
            let compiled = engine.compile(&format.grammar);
            compiled.map_err(|error| ApiError::from(error).at(format.field))?;
        }
        // Before anything is made for each of them.
        let place = app.queue()?.enter(prompts.len() * samples, tokens, caller)?;
        let (salt, turn) = (caller.map(Caller::salt), turn(caller));
        let mut requests = Vec::with_capacity(prompts.len() * samples);
        for prompt in prompts {
            for sample in 0..samples {
                let mut request = self.request(prompt, Decoding::seed_of_choice(seed, sample))?;
                (request.salt, request.caller) = (salt, turn);
                requests.push(request);
            }
        }
        let most = requests.iter().map(|request| request.max_tokens).max().unwrap_or(0);
        let metrics = app.metrics.of_model(&model.id);
        metrics.asked(samples, most);
        let digests: Vec<String> =
            requests.iter().map(|request| digest(identity, request)).collect();
        let digest = match digests.as_slice() {
            [one] => one.clone(),
            several => crate::digest::sha256(several.join(" ")),
        };
        let choice = |_: &Request| ChoiceState {
            text: ChoiceText::new(self.form.think_end().cloned()),
            kept: Delta::default(),
            offset: Offset::default(),
            is_echoed: false,
            done: None,
            last_at: None,
        };
        let choices = requests.iter().map(choice).collect();
        let (sender, events) = unbounded_channel();
        let mut handles = Vec::with_capacity(requests.len());
        for (choice, request) in requests.into_iter().enumerate() {
            let sender = sender.clone();
            let on_event = move |event: Event| {
                // If the receiver is gone, so is the handle, and the engine cancels the request.
                let _ = sender.send(ChoiceEvent { choice, at: Instant::now(), event });
            };
            handles.push(engine.submit_with(request, Box::new(on_event))?);
        }
        ignored.extend(decoding.without_effect.iter().map(ToString::to_string));
        let stream = decoding.streaming();
        let is_chat = matches!(self.form, Form::Chat { .. });
        let answering = Answer {
            head: Reply::new(is_chat, &model.id, &model.fingerprint),
            ignored: listed(&ignored),
            seed,
            digest,
            choices,
            begun_at: Instant::now(),
            metrics,
            events,
            _place: place,
            _handles: handles,
            wanted: self,
        };
        Ok(Started { answering, stream })
    }

    /// Refuses log-probabilities of more tokens than a response may hold: each takes a kilobyte on its way.
    fn refuse_many_logprobs(&self) -> Result<(), ApiError> {
        let Wanted { model, prompts, decoding, .. } = self;
        let count = |prompt: &Vec<u32>| {
            let room = model.context().saturating_sub(prompt.len());
            let generated = decoding.max_tokens().unwrap_or(room).min(room);
            let of_completion = self.logprobs.map_or(0, |top| generated * (top + 1));
            let of_prompt = self.prompt_logprobs.map_or(0, |top| prompt.len() * (top + 1));
            decoding.n() * (of_completion + of_prompt)
        };
        let entries: usize = prompts.iter().map(count).sum();
        match entries <= MOST_LOGPROB_ENTRIES {
            true => Ok(()),
            false => {
                let message = format!(
                    "the response would have up to {entries} log-probabilities; at most {MOST_LOGPROB_ENTRIES} are sent: ask for fewer \
                     tokens, choices, prompts or top log-probabilities at a time"
                );
                Err(ApiError::invalid("logprobs", message))
            }
        }
    }

    fn request(&self, prompt: &[u32], seed: u64) -> Result<Request, ApiError> {
        let Wanted { model, decoding, .. } = self;
        let vocabulary = model.backbone.description.config.vocab_size;
        let logit_bias = decoding.biases();
        if let Some((id, _)) = logit_bias.iter().find(|(id, _)| *id as usize >= vocabulary) {
            let most = vocabulary - 1;
            let message = format!("logit_bias has token {id}; the model's tokens end at {most}");
            return Err(ApiError::invalid("logit_bias", message));
        }
        let context = model.context();
        let room = context.saturating_sub(prompt.len());
        if room == 0 && decoding.max_tokens() != Some(0) {
            return Err(too_long(prompt.len(), decoding.max_tokens().unwrap_or(1), context));
        }
        let asked = decoding.max_tokens().unwrap_or(room);
        let generation = &model.backbone.description.generation;
        let strings = decoding.stops().to_vec();
        // Where a model thinks first, what the request names ends the answer; the model's own tokens end the whole.
        let constrain_after = self.form.think_end().map(|end| end.id);
        let after = constrain_after.filter(|_| !strings.is_empty());
        let ids = if decoding.ignore_eos { Vec::new() } else { generation.eos_ids.clone() };
        Ok(Request {
            tokens: prompt.to_vec(),
            sampling: decoding.sampling(generation.sampling),
            seed,
            constraint: decoding
                .format
                .clone()
                .map(|format| Constraint { grammar: format.grammar, after: constrain_after }),
            stop: Stop { ids, strings, after },
            max_tokens: asked.min(room),
            logit_bias,
            logprobs: self.logprobs,
            forced_logprobs: self.logprobs.is_some(),
            prompt_logprobs: self.prompt_logprobs,
            pieces: true,
            ..Request::default()
        })
    }
}

impl Answer {
    /// The chunk of an event, if it brings one.
    fn take(&mut self, told: ChoiceEvent) -> Result<Option<Choice>, ApiError> {
        let ChoiceEvent { choice: index, at, event } = told;
        let metrics = &self.metrics;
        let choice = &mut self.choices[index];
        let mut delta = match event {
            Event::Admitted { .. } => {
                let is_chat = matches!(self.wanted.form, Form::Chat { .. });
                return Ok(is_chat.then(|| Choice::begun(index)));
            }
            Event::Piece { text, tokens, logprobs } => {
                match choice.last_at.replace(at) {
                    Some(last) => metrics.inter_token(at - last, tokens.len()),
                    None => metrics.first_token(at - self.begun_at),
                }
                choice.text.take(&text, &tokens, logprobs)
            }
            Event::Done(completion) => {
                let completion = completion?;
                metrics.finished(&completion, at - self.begun_at);
                let format = self.wanted.decoding.format.as_ref().map_or("", |format| format.field);
                refuse_broken(&completion, format)?;
                choice.done = Some(completion);
                choice.text.finish()
            }
        };
        let is_done = choice.done.is_some();
        // The log-probabilities of an echoed prompt come last.
        let echoes = matches!(self.wanted.form, Form::Text { echoed: Some(_) });
        if echoes && self.wanted.logprobs.is_some() {
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
        let Wanted { model, prompts, decoding, form, logprobs, .. } = &self.wanted;
        let tokenizer = &model.backbone.description.tokenizer;
        match form {
            Form::Chat { .. } => {
                let said = |text: String| Some(text).filter(|text| !text.is_empty());
                let (content, reasoning_content) = (said(content), said(reasoning));
                let delta = reply::Delta { role: None, content, reasoning_content };
                let logprobs = logprobs.map(|_| logprobs::chat(tokenizer, &entries));
                Choice { logprobs, ..Choice::of_chat(index, delta) }
            }
            Form::Text { echoed } => {
                let prompt = index / decoding.n();
                let choice = &mut self.choices[index];
                let echo = echoed
                    .as_ref()
                    .filter(|_| !choice.is_echoed)
                    .map(|texts| texts[prompt].as_str());
                let mut lists = Lists::default();
                let mut writer = ListWriter {
                    tokenizer,
                    top: logprobs.unwrap_or(0),
                    offset: std::mem::take(&mut choice.offset),
                };
                if let Some(text) = echo {
                    let ids = &prompts[prompt];
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
                    logprobs: logprobs.map(|_| Logprobs::Text(lists)),
                    ..Choice::default()
                }
            }
        }
    }

    fn finish_reason(&self, index: usize) -> Option<&'static str> {
        let done = self.choices[index].done.as_ref()?;
        Some(if done.finish_reason == FinishReason::Length { "length" } else { "stop" })
    }
}

impl Answering for Answer {
    async fn next(&mut self) -> Result<Vec<Choice>, ApiError> {
        let mut told = Some(self.events.recv().await.ok_or_else(ApiError::failed)?);
        let mut chunks = Vec::new();
        // Events that have arrived meanwhile are sent together.
        while let Some(event) = told {
            chunks.extend(self.take(event)?);
            told = self.events.try_recv().ok();
        }
        Ok(chunks)
    }

    fn is_done(&self) -> bool {
        self.choices.iter().all(|choice| choice.done.is_some())
    }

    fn head(&self) -> &Reply {
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
            if index % self.wanted.decoding.n() == 0 {
                sum.prompt_tokens += used.prompt_tokens;
                sum.cached_tokens += used.cached_tokens;
            }
        }
        reply::Usage::of(sum, reasoning)
    }

    fn own(&self) -> Own {
        Own {
            seed: self.seed as i64,
            request: self.digest.clone(),
            ignored: self.ignored.clone(),
            item: None,
            record: None,
        }
    }

    /// The text and tokens of every choice.
    fn output(&self) -> (Value, Value) {
        let done = self.choices.iter().map(|choice| choice.done.as_ref());
        let said =
            done.map(|done| done.map(|done| json!({"text": done.text, "tokens": done.tokens})));
        let finish = (0..self.choices.len()).map(|index| self.finish_reason(index));
        (said.collect(), finish.collect())
    }
}
