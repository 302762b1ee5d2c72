//! What a model answers: submits the requests of all choices to the engine, and makes chunks of its events.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::choice::{ChoiceText, Delta, ThinkEnd, TokenEntry, refuse_broken};
use super::events::Answering;
use super::logprobs;
use super::reply::{Choice, ChoicePart, Reply, usage};
use crate::engine::{Completion, Constraint, Event, Request, RequestHandle, Stop};
use crate::panel::request_digest::digest;
use crate::record::{FinishReason, Usage};
use crate::serve::app::App;
use crate::serve::audit::About;
use crate::serve::error::{ApiError, too_long};
use crate::serve::guard::{Caller, turn};
use crate::serve::models::ServedModel;
use crate::serve::queue::Place;
use crate::serve::request::decoding::Decoding;
use crate::serve::request::fields::listed;

/// The most log-probabilities of a response.
const MOST_LOGPROB_ENTRIES: usize = 1 << 17;

/// The completions to generate, with tokenised prompts.
pub struct Wanted {
    pub model: Arc<ServedModel>,
    pub is_chat: bool,
    /// Each gets `decoding.n` completions.
    pub prompts: Vec<Vec<u32>>,
    /// The texts of prompts that are repeated before their completions.
    pub echoed: Option<Vec<String>>,
    pub decoding: Decoding,
    /// Of a model that thinks first: a grammar applies, and stops count, after the end of its thinking.
    pub think_end: Option<ThinkEnd>,
    /// The number of top log-probabilities for each token of the completion.
    pub logprobs: Option<usize>,
    /// The number of top log-probabilities for each token of a prompt that is echoed.
    pub prompt_logprobs: Option<usize>,
    /// Fields of the request that have no effect.
    pub ignored: Vec<String>,
}

/// A response and its choices. Requests of choices that have not ended are cancelled on drop.
pub struct Answer {
    head: Reply,
    wanted: Wanted,
    seed: u64,
    /// The digest of the requests of all choices: equal digests mean equal completions.
    digest: String,
    /// Ordered by prompt, then by sample.
    choices: Vec<ChoiceState>,
    events: UnboundedReceiver<(usize, Event)>,
    _place: Place,
    _handles: Vec<RequestHandle>,
}

struct ChoiceState {
    text: ChoiceText,
    done: Option<Box<Completion>>,
}

impl Wanted {
    /// Submits all requests to the model's engine. Blocks while the grammar is compiled.
    ///
    /// # Errors
    /// A prompt that leaves no room, a grammar that does not compile, a full queue, an engine that died.
    pub fn begin(self, app: &App, caller: Option<&Caller>) -> Result<Box<dyn Answering>, ApiError> {
        let Wanted { model, prompts, decoding, .. } = &self;
        let samples = decoding.n();
        self.refuse_many_logprobs()?;
        let seed = app.seed(decoding.seed())?;
        let (engine, identity) = (&model.backbone.engine, &model.backbone.identity);
        if let Some(format) = &decoding.format {
            // The grammar is compiled before a place in the queue is taken.
            let compiled = engine.compile(&format.grammar);
            compiled.map_err(|error| ApiError::from(error).at(format.field))?;
        }
        // Before anything is made for each of them.
        let place = app.queue.enter(prompts.len() * samples, caller)?;
        let (salt, turn) = (caller.map(Caller::salt), turn(caller));
        let mut requests = Vec::with_capacity(prompts.len() * samples);
        for prompt in prompts {
            for sample in 0..samples {
                let request = self.request(prompt, Decoding::seed_of_choice(seed, sample))?;
                requests.push(Request { salt, caller: turn, ..request });
            }
        }
        let digests: Vec<String> =
            requests.iter().map(|request| digest(identity, request)).collect();
        let digest = match digests.as_slice() {
            [one] => one.clone(),
            several => crate::digest::sha256(several.join(" ")),
        };
        let choice =
            |_: &Request| ChoiceState { text: ChoiceText::new(self.think_end.clone()), done: None };
        let choices = requests.iter().map(choice).collect();
        let (sender, events) = unbounded_channel();
        let mut handles = Vec::with_capacity(requests.len());
        for (choice, request) in requests.into_iter().enumerate() {
            let sender = sender.clone();
            let on_event = move |event: Event| {
                // If the receiver is gone, so is the handle, and the engine cancels the request.
                let _ = sender.send((choice, event));
            };
            handles.push(engine.submit_with(request, Box::new(on_event))?);
        }
        Ok(Box::new(Answer {
            head: Reply::new(self.is_chat, &model.entry),
            seed,
            digest,
            choices,
            events,
            _place: place,
            _handles: handles,
            wanted: self,
        }))
    }

    /// Refuses log-probabilities of more tokens than a response may hold: each takes a kilobyte on its way.
    fn refuse_many_logprobs(&self) -> Result<(), ApiError> {
        let Wanted { model, prompts, decoding, .. } = self;
        let count = |prompt: &Vec<u32>| {
            let room = model.context.saturating_sub(prompt.len());
            let generated = decoding.max_tokens.unwrap_or(room).min(room);
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
        let context = model.context;
        let room = context.saturating_sub(prompt.len());
        if room == 0 && decoding.max_tokens != Some(0) {
            let error = too_long(prompt.len(), decoding.max_tokens.unwrap_or(1), context);
            return Err(error.at(if self.is_chat { "messages" } else { "prompt" }));
        }
        let generation = &model.backbone.description.generation;
        let strings = decoding.stops().to_vec();
        // Where a model thinks first, what the request names ends the answer; the model's own tokens end the whole.
        let constrain_after = self.think_end.as_ref().map(|end| end.id);
        let after = constrain_after.filter(|_| !strings.is_empty());
        let ids = if decoding.ignore_eos { Vec::new() } else { generation.eos_ids.clone() };
        let constraint = decoding.format.clone();
        Ok(Request {
            tokens: prompt.to_vec(),
            sampling: decoding.sampling(generation.sampling),
            seed,
            constraint: constraint
                .map(|format| Constraint { grammar: format.grammar, after: constrain_after }),
            stop: Stop { ids, strings, after },
            max_tokens: decoding.max_tokens.unwrap_or(room).min(room),
            logprobs: self.logprobs,
            forced_logprobs: self.logprobs.is_some(),
            prompt_logprobs: self.prompt_logprobs,
            pieces: true,
            ..Request::default()
        })
    }

    /// The log-probabilities of an echoed prompt come last, so that it is sent with its completion.
    fn is_in_parts(&self) -> bool {
        self.decoding.streaming().is_some() && self.echoed.is_none()
    }
}

impl Answer {
    /// What an event brings to be sent, if anything.
    fn take(&mut self, index: usize, event: Event) -> Result<Option<Choice>, ApiError> {
        let Answer { wanted, choices, .. } = self;
        let choice = &mut choices[index];
        match event {
            Event::Admitted { .. } => {
                let begins = wanted.is_chat && wanted.is_in_parts();
                return Ok(begins.then(|| Choice::begun(index)));
            }
            Event::Piece { text, tokens, logprobs } => {
                choice.text.take(&text, &tokens, logprobs);
            }
            Event::Done(completion) => {
                let completion = completion?;
                let format = wanted.decoding.format.as_ref().map_or("", |format| format.field);
                refuse_broken(&completion, format)?;
                choice.done = Some(completion);
            }
        }
        let has_more = wanted.is_in_parts() && !choice.text.kept.is_empty();
        if choice.done.is_none() && !has_more {
            return Ok(None);
        }
        let kept = std::mem::take(&mut choice.text.kept);
        let finish_reason = self.finish_reason(index);
        Ok(Some(Choice { finish_reason, ..self.said(index, kept) }))
    }

    fn said(&self, index: usize, Delta { reasoning, content, entries }: Delta) -> Choice {
        let Wanted { model, prompts, decoding, echoed, logprobs, is_chat, .. } = &self.wanted;
        let tokenizer = &model.backbone.description.tokenizer;
        if *is_chat {
            let logprobs = logprobs.map(|_| logprobs::chat(tokenizer, &entries));
            let is_stream = decoding.streaming().is_some();
            return Choice { logprobs, ..Choice::of_chat(index, is_stream, content, reasoning) };
        }
        let prompt = index / decoding.n();
        let (mut text, mut of_all) = (content, entries);
        if let Some(echoed) = echoed {
            text.insert_str(0, &echoed[prompt]);
            let mut found = self.choices[index].done.iter().flat_map(|done| &done.prompt_logprobs);
            let entry =
                |id: &u32| TokenEntry { id: *id, logprobs: found.next().cloned().flatten() };
            let before: Vec<TokenEntry> = prompts[prompt].iter().map(entry).collect();
            of_all.splice(0..0, before);
        }
        let logprobs = logprobs.map(|most| logprobs::text(tokenizer, most, &of_all));
        Choice { logprobs, ..Choice::new(index, ChoicePart::Text(text)) }
    }

    fn finish_reason(&self, index: usize) -> Option<&'static str> {
        let done = self.choices[index].done.as_ref()?;
        Some(if done.finish_reason == FinishReason::Length { "length" } else { "stop" })
    }
}

impl Answering for Answer {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Choice>, ApiError>> {
        let next = async {
            let mut told = Some(self.events.recv().await.ok_or_else(ApiError::failed)?);
            let mut chunks = Vec::new();
            // Events that have arrived meanwhile are sent together.
            while let Some((choice, event)) = told {
                chunks.extend(self.take(choice, event)?);
                told = self.events.try_recv().ok();
            }
            Ok(chunks)
        };
        next.boxed()
    }

    fn is_done(&self) -> bool {
        self.choices.iter().all(|choice| choice.done.is_some())
    }

    fn stream(&self) -> Option<bool> {
        self.wanted.decoding.streaming()
    }

    fn head(&self) -> &Reply {
        &self.head
    }

    fn outcome(&self) -> (About, Value) {
        let mut sum = Usage::default();
        let mut reasoning = 0;
        for (index, choice) in self.choices.iter().enumerate() {
            let used = choice.done.as_ref().map(|done| done.usage).unwrap_or_default();
            reasoning += choice.text.reasoning_tokens;
            sum.completion_tokens += used.completion_tokens;
            // Each prompt counts once.
            if index % self.wanted.decoding.n() == 0 {
                sum.prompt_tokens += used.prompt_tokens;
                sum.cached_tokens += used.cached_tokens;
            }
        }
        let ignored = listed(&self.wanted.ignored);
        let own = json!({"seed": self.seed as i64, "request": self.digest, "ignored": ignored});
        let done = self.choices.iter().map(|choice| choice.done.as_ref());
        let said =
            done.map(|done| done.map(|done| json!({"text": done.text, "tokens": done.tokens})));
        let finish = (0..self.choices.len()).map(|index| self.finish_reason(index));
        let about = About {
            model: self.head.model.clone(),
            fingerprint: self.head.system_fingerprint.clone(),
            seed: Some(self.seed),
            request: self.digest.clone(),
            output: said.collect(),
            usage: usage(sum, reasoning),
            finish: finish.collect(),
        };
        (about, own)
    }
}
