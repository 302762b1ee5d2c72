//! The endpoints of completions, of chats and of plain text: from a request body to a response, whole or streamed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::app::App;
use super::audit::{Pending, Who};
use super::body::Sent;
use super::budget::Reserved;
use super::error::{ApiError, Code};
use super::generation::{Generation, Wanted};
use super::guard::{self, Asking, Caller};
use super::models::refuse_length;
use super::request::chat::ChatRequest;
use super::request::completions::{CompletionRequest, TextPrompt};
use super::request::decoding::Streaming;
use super::request::fields::{listed, listed_in_header};
use super::response::answer::{Answer, Form, Heading, Step};
use super::response::choice::ThinkEnd;
use super::response::events::{Pace, Streamed, cut, respond};
use super::system::ServedSystem;
use super::system_chat::{self, SystemChat};
use crate::audit::Input;
use crate::panel::PanelError;

pub const CHAT: &str = "/v1/chat/completions";
pub const TEXT: &str = "/v1/completions";
/// The response header that lists fields of the request without effect.
const IGNORED: HeaderName = HeaderName::from_static("x-wardround-ignored");

pub struct StartedCompletion {
    pub generation: Generation,
    pub answer: Answer,
    stream: Option<Streaming>,
    /// The client's own id of the request.
    request_id: Option<String>,
}

/// A request's client, and what it asked.
pub struct Client {
    pub caller: Option<Caller>,
    pub who: Who,
    path: &'static str,
}

/// What a chat is answered by.
enum Chat {
    Model(StartedCompletion, Input),
    System(Arc<ServedSystem>, SystemChat),
}

pub async fn chat(
    State(app): State<Arc<App>>,
    Asking { caller, who }: Asking,
    sent: Sent,
) -> Result<Response, ApiError> {
    check(&app)?;
    let (reading, asking) = (app.clone(), caller.clone());
    let read = move |bytes: Bytes| {
        let chat = match named_system(&reading, &bytes)? {
            Some(system) => {
                let chat = SystemChat::read(&bytes, &system, &reading)?;
                Chat::System(system, chat)
            }
            None => {
                let begun = begin_chat(&reading, &bytes, asking.as_ref(), Vec::new())?;
                Chat::Model(begun, reading.audit.input(&bytes))
            }
        };
        Ok(chat)
    };
    let (chat, reserved) = sent.parse_json(read).await?;
    let client = Client { caller, who, path: CHAT };
    match chat {
        Chat::System(system, chat) => system_chat::answer(app, system, chat, client).await,
        Chat::Model(begun, input) => answer(app, begun, input, reserved, client).await,
    }
}

/// Whether the server can answer requests at all.
pub fn check(app: &App) -> Result<(), ApiError> {
    app.served()?;
    app.audit.check()
}

/// The system that a request has as its model.
fn named_system(app: &App, body: &[u8]) -> Result<Option<Arc<ServedSystem>>, ApiError> {
    let served = app.served()?;
    if served.systems.is_empty() {
        return Ok(None);
    }
    let named: Option<Named> = serde_json::from_slice(body).ok();
    Ok(named.and_then(|named| served.system(&named.model).cloned()))
}

/// The model of a request, read before the rest.
#[derive(Deserialize)]
struct Named {
    model: String,
}

pub async fn complete(
    State(app): State<Arc<App>>,
    Asking { caller, who }: Asking,
    sent: Sent,
) -> Result<Response, ApiError> {
    check(&app)?;
    let (reading, asking) = (app.clone(), caller.clone());
    let read = move |bytes: Bytes| {
        let begun = begin_completion(&reading, &bytes, asking.as_ref(), Vec::new())?;
        Ok((begun, reading.audit.input(&bytes)))
    };
    let ((begun, input), reserved) = sent.parse_json(read).await?;
    answer(app, begun, input, reserved, Client { caller, who, path: TEXT }).await
}

/// Answers a completion that has begun. The body stays in the budget for as long as the audit trail keeps it.
async fn answer(
    app: Arc<App>,
    begun: StartedCompletion,
    input: Input,
    reserved: Reserved,
    client: Client,
) -> Result<Response, ApiError> {
    let Client { who, path, .. } = client;
    let pending = Pending::begin(&app.audit, who, path, input, &begun.answer).await?;
    let reserved = app.audit.is_on().then_some(reserved);
    let ignored = begun.answer.heading.ignored.clone();
    let request_id = begun.request_id.clone();
    let response = match begun.stream {
        None => {
            let whole = whole(&app, begun, pending).await?;
            drop(reserved);
            Json(whole).into_response()
        }
        Some(options) => respond(Streamed {
            phase: app.phase.clone(),
            app,
            generation: begun.generation,
            answer: begun.answer,
            pending,
            _reserved: reserved,
            options,
            is_over: false,
            has_begun: false,
            pace: Pace::new(),
        }),
    };
    Ok(with_request_id(with_ignored(response, &ignored), request_id.as_deref()))
}

/// Lists the fields that had no effect in a header.
pub fn with_ignored(mut response: Response, ignored: &[String]) -> Response {
    if let Some(value) = listed_in_header(ignored) {
        response.headers_mut().insert(IGNORED, value);
    }
    response
}

/// Waits for the whole completion, and until it is in the audit trail.
async fn whole(
    app: &App,
    begun: StartedCompletion,
    mut pending: Pending,
) -> Result<serde_json::Value, ApiError> {
    let StartedCompletion { mut generation, mut answer, .. } = begun;
    let finished = finish(app, &mut generation, &mut answer).await;
    match &finished {
        Ok(()) => pending.done(&answer).await?,
        Err(error) => pending.failed(error, &answer),
    }
    finished?;
    Ok(answer.whole())
}

/// Waits until every choice has ended.
pub async fn finish(
    app: &App,
    generation: &mut Generation,
    answer: &mut Answer,
) -> Result<(), ApiError> {
    let mut phase = app.phase.clone();
    while !answer.is_done() {
        let told = tokio::select! {
            told = generation.next() => told,
            () = cut(&mut phase) => return Err(ApiError::draining()),
        };
        let Some(told) = told else {
            return Err(ApiError::new(Code::Internal, "the completion was lost"));
        };
        let choice = told.choice;
        match answer.take(told, generation)? {
            Step::Begun => {}
            Step::Grown(delta) | Step::Done(delta) => answer.keep(choice, delta),
        }
    }
    Ok(())
}

pub fn begin_chat(
    app: &App,
    body: &[u8],
    caller: Option<&Caller>,
    expected: Vec<Vec<u32>>,
) -> Result<StartedCompletion, ApiError> {
    let request = ChatRequest::read(body)?;
    refuse_ignored(app, &request.ignored)?;
    let model = app.served()?.find(request.model.as_deref())?.clone();
    let bytes = request.messages.iter().map(|message| message.content.len()).sum();
    refuse_length(bytes, model.context(), "messages")?;
    let description = &model.backbone.description;
    let turn = request.turn.of(model.thinks());
    let prompt = description.chat.prompt_with(&description.tokenizer, &request.messages, turn);
    let prompt = prompt.map_err(PanelError::from)?;
    let end = model.backbone.think_end.filter(|_| turn.thinking);
    let think_end = end.map(|id| ThinkEnd {
        id,
        tag: String::from_utf8_lossy(description.tokenizer.bytes(id)).into_owned(),
    });
    let wanted = Wanted {
        model,
        prompts: vec![prompt.tokens],
        logprobs: request.logprobs,
        prompt_logprobs: request.decoding.prompt_logprobs,
        decoding: request.decoding,
        constrain_after: end,
        expected,
    };
    begin(app, wanted, Form::Chat { think_end }, request.ignored, caller)
}

pub fn begin_completion(
    app: &App,
    body: &[u8],
    caller: Option<&Caller>,
    expected: Vec<Vec<u32>>,
) -> Result<StartedCompletion, ApiError> {
    let request = CompletionRequest::read(body)?;
    refuse_ignored(app, &request.ignored)?;
    let model = app.served()?.find(request.model.as_deref())?.clone();
    let tokenizer = &model.backbone.description.tokenizer;
    let mut prompts = Vec::with_capacity(request.prompts.len());
    let mut texts = Vec::new();
    for prompt in request.prompts {
        match prompt {
            TextPrompt::Text(text) => {
                refuse_length(text.len(), model.context(), "prompt")?;
                let ids = tokenizer.encode_with(&text, request.add_special_tokens);
                let ids = ids.map_err(PanelError::from)?;
                if ids.is_empty() {
                    return Err(ApiError::invalid("prompt", "prompt has no token"));
                }
                prompts.push(ids);
                texts.push(text);
            }
            TextPrompt::Ids(ids) => {
                texts.push(tokenizer.decode_shown(&ids));
                prompts.push(ids);
            }
        }
    }
    // Of a prompt alone nothing is computed but these.
    let is_bare = request.decoding.max_tokens == Some(0);
    let echoed = request.logprobs.or(is_bare.then_some(0)).filter(|_| request.echo);
    let wanted = Wanted {
        model,
        prompts,
        logprobs: request.logprobs,
        prompt_logprobs: echoed.max(request.decoding.prompt_logprobs),
        decoding: request.decoding,
        constrain_after: None,
        expected,
    };
    let echoed = request.echo.then_some(texts);
    let form = Form::Text { echoed, tokens_as_ids: request.tokens_as_ids };
    begin(app, wanted, form, request.ignored, caller).map_err(ApiError::of_prompt)
}

fn begin(
    app: &App,
    wanted: Wanted,
    form: Form,
    ignored: Vec<String>,
    caller: Option<&Caller>,
) -> Result<StartedCompletion, ApiError> {
    let decoding = &wanted.decoding;
    let (stream, request_id) = (decoding.stream, decoding.request_id.clone());
    let prefix = if let Form::Chat { .. } = form { "chatcmpl" } else { "cmpl" };
    let (id, created) = new_id(prefix, request_id.as_deref());
    let without_effect = decoding.without_effect.iter().map(ToString::to_string);
    let ignored: Vec<String> = ignored.into_iter().chain(without_effect).collect();
    let mut heading = Heading {
        id,
        created,
        model: wanted.model.clone(),
        seed: 0,
        digest: String::new(),
        ignored: listed(&ignored),
        token_ids: decoding.return_token_ids,
        prompts: wanted.prompts.clone(),
        logprobs: wanted.logprobs,
        prompt_logprobs: decoding.prompt_logprobs,
        form,
    };
    let generation = Generation::begin(app, wanted, caller)?;
    (heading.seed, heading.digest) = (generation.seed, generation.digest.clone());
    let answer = Answer::new(heading, &generation);
    Ok(StartedCompletion { generation, answer, stream, request_id })
}

/// The id of a response and its creation time, in seconds since 1970. The id has the client's own request id, or is unique.
pub fn new_id(prefix: &str, request_id: Option<&str>) -> (String, u64) {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let id = match request_id {
        Some(word) => format!("{prefix}-{word}"),
        None => {
            let count = COUNTER.fetch_add(1, Relaxed);
            format!("{prefix}-{:x}-{count:x}", created.as_micros())
        }
    };
    (id, created.as_secs())
}

/// Adds the client's own request id to a response.
pub fn with_request_id(mut response: Response, request_id: Option<&str>) -> Response {
    if let Some(value) = request_id.and_then(|word| HeaderValue::from_str(word).ok()) {
        response.headers_mut().insert(guard::REQUEST_ID, value);
    }
    response
}

/// Refuses unknown fields under `--strict`.
pub fn refuse_ignored(app: &App, ignored: &[String]) -> Result<(), ApiError> {
    match ignored.first().filter(|_| app.options.strict) {
        None => Ok(()),
        Some(name) => Err(unknown_field(name)),
    }
}

pub fn unknown_field(name: &str) -> ApiError {
    let name = crate::text::ellipsis(name, 60);
    let message = format!("{name} is not known here; leave it out");
    ApiError::of(Code::UnsupportedParameter, &name, message)
}
