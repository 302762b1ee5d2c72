//! Submits a completion's requests to an engine, and receives their events.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::app::App;
use super::error::{ApiError, too_long};
use super::guard::{Caller, turn};
use super::metrics::ModelMetrics;
use super::models::ServedModel;
use super::queue::Place;
use super::request::decoding::Decoding;
use super::request::format::Format;
use crate::engine::{Constraint, Event, Request, RequestHandle, Stop};
use crate::panel::request::digest;

/// The most log-probabilities of a response.
const MOST_LOGPROB_ENTRIES: usize = 1 << 17;

/// The completions to generate, with tokenised prompts.
pub struct Wanted {
    pub model: Arc<ServedModel>,
    /// Each gets `decoding.n` completions.
    pub prompts: Vec<Vec<u32>>,
    pub decoding: Decoding,
    /// The number of top log-probabilities for each token of the completion.
    pub logprobs: Option<usize>,
    /// The number of top log-probabilities for each token of a prompt that is echoed.
    pub prompt_logprobs: Option<usize>,
    /// The token after which the grammar applies, and stops count.
    pub constrain_after: Option<u32>,
}

/// Requests that were submitted to an engine; those that have not ended are cancelled on drop.
pub struct Generation {
    pub model: Arc<ServedModel>,
    pub prompts: Vec<Vec<u32>>,
    /// Of each prompt; choices are ordered by prompt, then by sample.
    pub samples: usize,
    pub logprobs: Option<usize>,
    pub seed: u64,
    /// The digest of the requests of all choices: equal digests mean equal completions.
    pub digest: String,
    /// The field that gave the grammar, if there is one.
    pub format_field: &'static str,
    pub begun_at: Instant,
    pub metrics: ModelMetrics,
    pub events: UnboundedReceiver<ChoiceEvent>,
    _place: Place,
    _handles: Vec<RequestHandle>,
}

pub struct ChoiceEvent {
    pub choice: usize,
    pub at: Instant,
    pub event: Event,
}

impl Generation {
    /// Submits all requests to the model's engine. Blocks while the grammar is compiled.
    ///
    /// # Errors
    /// A prompt that leaves no room, a grammar that does not compile, a full queue, an engine that died.
    pub fn begin(
        app: &App,
        wanted: Wanted,
        caller: Option<&Caller>,
    ) -> Result<Generation, ApiError> {
        let Wanted { model, prompts, decoding, .. } = &wanted;
        let samples = decoding.n();
        let tokens: usize = prompts.iter().map(Vec::len).sum::<usize>() * samples;
        wanted.refuse_many_logprobs()?;
        let seed = app.seed(decoding.seed())?;
        let salt = app.salt(caller);
        if let Some(Format { field, grammar }) = &decoding.format {
            // The grammar is compiled before a place in the queue is taken.
            let compiled = model.backbone.engine.compile(grammar);
            compiled.map_err(|error| ApiError::from(error).at(field))?;
        }
        // Before anything is made for each of them.
        let place = app.queue()?.enter(prompts.len() * samples, tokens, caller)?;
        let turn = turn(caller);
        let mut requests = Vec::with_capacity(prompts.len() * samples);
        for prompt in prompts {
            for sample in 0..samples {
                let mut request = wanted.request(prompt, Decoding::seed_of_choice(seed, sample))?;
                (request.salt, request.caller) = (salt, turn);
                requests.push(request);
            }
        }
        let most = requests.iter().map(|request| request.max_tokens).max().unwrap_or(0);
        let metrics = app.metrics.of_model(&model.id);
        metrics.asked(samples, most);
        let identity = &model.backbone.identity;
        let digests: Vec<String> =
            requests.iter().map(|request| digest(identity, request)).collect();
        let (sender, events) = unbounded_channel();
        let mut handles = Vec::with_capacity(requests.len());
        for (choice, request) in requests.into_iter().enumerate() {
            let sender = sender.clone();
            let on_event = move |event: Event| {
                // If the receiver is gone, so is the handle, and the engine cancels the request.
                let _ = sender.send(ChoiceEvent { choice, at: Instant::now(), event });
            };
            handles.push(model.backbone.engine.submit_with(request, Box::new(on_event))?);
        }
        Ok(Generation {
            samples,
            seed,
            digest: match digests.as_slice() {
                [one] => one.clone(),
                several => crate::digest::sha256(several.join(" ")),
            },
            format_field: decoding.format.as_ref().map_or("", |format| format.field),
            begun_at: Instant::now(),
            metrics,
            events,
            _place: place,
            _handles: handles,
            model: wanted.model,
            prompts: wanted.prompts,
            logprobs: wanted.logprobs,
        })
    }
}

impl Wanted {
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
        let after = self.constrain_after.filter(|_| !strings.is_empty());
        let ids = if decoding.ignore_eos { Vec::new() } else { generation.eos_ids.clone() };
        Ok(Request {
            tokens: prompt.to_vec(),
            sampling: decoding.sampling(generation.sampling),
            seed,
            constraint: decoding
                .format
                .clone()
                .map(|format| Constraint { grammar: format.grammar, after: self.constrain_after }),
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
