//! Submits a completion's requests to an engine, and receives their events.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::app::App;
use super::error::{ApiError, Code, too_long};
use super::guard::{Caller, turn};
use super::models::ServedModel;
use super::queue::Place;
use super::request::decoding::{Decoding, SEED_BITS};
use super::request::format::Format;
use crate::calls::{Kept, Key, Store};
use crate::engine::{Completion, Constraint, Event, Request, RequestHandle, Stop, Timings};
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
    /// The number of top log-probabilities for each token of the prompt.
    pub prompt_logprobs: Option<usize>,
    /// The token after which the grammar applies, and stops count.
    pub constrain_after: Option<u32>,
}

/// Requests that were submitted to an engine; those that have not ended are cancelled on drop.
pub struct Generation {
    pub model: Arc<ServedModel>,
    /// The length of each choice's prompt; choices are ordered by prompt, then by sample.
    pub prompt_tokens: Vec<usize>,
    pub seed: u64,
    /// The digest of the requests of all choices: equal digests mean equal completions.
    pub digest: String,
    /// The field that gave the grammar, if there is one.
    pub format_field: String,
    pub begun_at: Instant,
    events: UnboundedReceiver<ChoiceEvent>,
    _place: Place,
    /// What the completions that are computed are kept under, where there is a store.
    keys: Vec<(usize, Key)>,
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
        let lengths = prompts.iter().map(Vec::len);
        let tokens: usize = lengths.sum::<usize>() * decoding.n();
        wanted.refuse_many_logprobs()?;
        let seed = match decoding.seed().or(app.options.default_seed) {
            Some(seed) => seed,
            None => random_seed()?,
        };
        let salt = match caller.filter(|_| !app.options.share_prefixes) {
            Some(caller) => Some(caller.salt(decoding.salt())),
            None => decoding.salt(),
        };
        if let Some(Format { field, grammar }) = &decoding.format {
            // The grammar is compiled before a place in the queue is taken.
            let compiled = model.backbone.engine.compile(grammar);
            compiled.map_err(|error| ApiError::from(error).at(field))?;
        }
        // Before anything is made for each of them.
        let place = app.queue()?.enter(prompts.len() * decoding.n(), tokens, caller)?;
        let turn = turn(caller);
        let mut requests = Vec::with_capacity(prompts.len() * decoding.n());
        for prompt in prompts {
            for sample in 0..decoding.n() {
                let mut request = wanted.request(prompt, Decoding::seed_of_choice(seed, sample))?;
                (request.salt, request.caller) = (salt, turn);
                requests.push(request);
            }
        }
        let most = requests.iter().map(|request| request.max_tokens).max().unwrap_or(0);
        model.metrics.asked(decoding.n(), most);
        for name in &decoding.without_effect {
            app.metrics.ignored(name);
        }
        let format_field = decoding.format.as_ref().map_or(String::new(), |one| one.field.clone());
        let identity = &model.backbone.identity;
        let digests: Vec<String> =
            requests.iter().map(|request| digest(identity, request)).collect();
        let (sender, events) = unbounded_channel();
        let prompt_tokens = requests.iter().map(|request| request.tokens.len()).collect();
        let mut handles = Vec::with_capacity(requests.len());
        let mut keys = Vec::new();
        for (choice, request) in requests.into_iter().enumerate() {
            let sender = sender.clone();
            let on_event = move |event: Event| {
                // If the receiver is gone, so is the handle, and the engine cancels the request.
                let _ = sender.send(ChoiceEvent { choice, at: Instant::now(), event });
            };
            if let Some(calls) = wanted.store() {
                let key = Key::of(&digests[choice], request.salt);
                if let Some(kept) = calls.get(&key) {
                    events_of(kept).into_iter().for_each(on_event);
                    continue;
                }
                keys.push((choice, key));
            }
            handles.push(model.backbone.engine.submit_with(request, Box::new(on_event))?);
        }
        Ok(Generation {
            model: wanted.model,
            prompt_tokens,
            seed,
            digest: match digests.as_slice() {
                [one] => one.clone(),
                several => crate::digest::sha256(several.join(" ")),
            },
            format_field,
            begun_at: Instant::now(),
            events,
            _place: place,
            keys,
            _handles: handles,
        })
    }

    /// Keeps a completion that was computed, where there is a store.
    pub fn keep(&self, choice: usize, completion: &Completion, took: Duration) {
        let key = self.keys.iter().find(|(computed, _)| *computed == choice);
        let (Some((_, key)), Some(calls)) = (key, &self.model.backbone.calls) else { return };
        // Why a grammar could not go on is not kept.
        if completion.problem.is_none() {
            let Completion { text, tokens, finish_reason, usage, .. } = completion.clone();
            let (elapsed_ms, elsewhere) = (took.as_millis() as u64, None);
            calls.put(key, &Kept { text, tokens, finish_reason, usage, elapsed_ms, elsewhere });
        }
    }

    /// The next event. Cancel-safe.
    pub async fn next(&mut self) -> Option<ChoiceEvent> {
        self.events.recv().await
    }

    /// The next event, if it has already arrived.
    pub fn next_at_hand(&mut self) -> Option<ChoiceEvent> {
        self.events.try_recv().ok()
    }
}

/// What an engine would tell of a completion that is taken from the store.
fn events_of(kept: Kept) -> [Event; 2] {
    let Kept { text, tokens, finish_reason, usage, .. } = kept;
    let piece = Event::Piece { text: text.clone(), tokens: tokens.clone(), logprobs: Vec::new() };
    let completion = Completion {
        tokens,
        text,
        finish_reason,
        usage,
        problem: None,
        logprobs: Vec::new(),
        prompt_logprobs: Vec::new(),
        preemptions: 0,
        timings: Timings::default(),
    };
    [piece, Event::Done(Ok(Box::new(completion)))]
}

impl Wanted {
    /// The store of calls. It has no log-probabilities.
    fn store(&self) -> Option<&Store> {
        let needs_all = self.logprobs.is_some() || self.prompt_logprobs.is_some();
        self.model.backbone.calls.as_deref().filter(|_| !needs_all)
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
        let logit_bias = decoding.biases()?;
        let biased = logit_bias.iter().map(|(id, _)| ("logit_bias", *id));
        let stops = decoding.stop_token_ids.iter().map(|id| ("stop_token_ids", *id));
        if let Some((name, id)) = biased.chain(stops).find(|(_, id)| *id as usize >= vocabulary) {
            let message =
                format!("{name} has token {id}; the model's tokens end at {}", vocabulary - 1);
            return Err(ApiError::invalid(name, message));
        }
        let context = model.context();
        let room = context.saturating_sub(prompt.len());
        if room == 0 && decoding.max_tokens() != Some(0) {
            return Err(too_long(prompt.len(), decoding.max_tokens().unwrap_or(1), context));
        }
        let asked = decoding.max_tokens().unwrap_or(room);
        let generation = &model.backbone.description.generation;
        let (strings, own) = (decoding.stops().to_vec(), decoding.stop_token_ids.clone());
        // Where a model thinks first, what the request names ends the answer; the model's own tokens end the whole.
        let after = self.constrain_after.filter(|_| !strings.is_empty() || !own.is_empty());
        let (mut ids, later_ids) = match after {
            Some(_) => (Vec::new(), own),
            None => (own, Vec::new()),
        };
        if !decoding.ignore_eos {
            ids.extend(&generation.eos_ids);
        }
        Ok(Request {
            tokens: prompt.to_vec(),
            sampling: decoding.sampling(generation.sampling),
            seed,
            constraint: decoding
                .format
                .clone()
                .map(|format| Constraint { grammar: format.grammar, after: self.constrain_after }),
            stop: Stop { ids, strings, later_ids, after },
            max_tokens: asked.min(room),
            logit_bias,
            min_tokens: decoding.min_tokens(),
            logprobs: self.logprobs,
            forced_logprobs: self.logprobs.is_some(),
            prompt_logprobs: self.prompt_logprobs,
            pieces: true,
            ..Request::default()
        })
    }
}

/// 53 random bits.
pub fn random_seed() -> Result<u64, ApiError> {
    let seed = getrandom::u64();
    let seed = seed.map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    Ok(seed & SEED_BITS)
}
