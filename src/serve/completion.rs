//! The endpoints of completions, of chats and of plain text: from a request body to a response, whole or streamed.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderName;
use axum::response::Response;

use super::app::App;
use super::audit::{Pending, Who};
use super::body::Sent;
use super::budget::Reserved;
use super::case::{self, SystemAnswer};
use super::error::ApiError;
use super::generation::{Generation, Wanted};
use super::guard::{Asking, Caller};
use super::models::refuse_length;
use super::request::chat::ChatRequest;
use super::request::completions::{CompletionRequest, TextPrompt};
use super::request::decoding::Streaming;
use super::request::fields::{listed, listed_in_header};
use super::response::answer::{Answer, Form};
use super::response::choice::ThinkEnd;
use super::response::events::{Answering, respond};
use super::response::reply::Head;
use crate::audit::Input;
use crate::panel::PanelError;

pub const CHAT: &str = "/v1/chat/completions";
pub const TEXT: &str = "/v1/completions";
const MOST_PROMPTS: usize = 256;
/// The response header that lists fields of the request without effect.
const IGNORED: HeaderName = HeaderName::from_static("x-wardround-ignored");

/// A request that is read and has its place in the queue, and how its answer is sent.
pub struct Started<A> {
    pub answering: A,
    pub stream: Option<Streaming>,
    /// Fields that had no effect.
    pub ignored: Vec<String>,
}

impl<A: Answering> Started<A> {
    async fn respond(self, app: &Arc<App>) -> Result<Response, ApiError> {
        let Started { answering, stream, ignored } = self;
        Ok(with_ignored(respond(app, answering, stream).await?, &ignored))
    }
}

/// What a chat is answered by.
enum Chat {
    Model(Box<Started<Answer>>),
    System(Box<Started<SystemAnswer>>),
}

pub async fn chat(
    State(app): State<Arc<App>>,
    Asking { caller, who }: Asking,
    sent: Sent,
) -> Result<Response, ApiError> {
    let reader = who.clone();
    let begin = move |app: &App, body: &[u8], caller: Option<&Caller>| {
        let (request, served) = (ChatRequest::read(body)?, app.served()?);
        let system = request.model.as_deref().and_then(|name| served.system(name)).cloned();
        Ok(match system {
            Some(system) => {
                Chat::System(Box::new(case::begin(app, request, system, caller, reader)?))
            }
            None => Chat::Model(Box::new(begin_chat(app, request, caller)?)),
        })
    };
    match sent.read(&app, caller, begin).await? {
        (Chat::System(started), ..) => started.respond(&app).await,
        (Chat::Model(started), input, reserved) => {
            answered(&app, *started, (who, CHAT, input), reserved).await
        }
    }
}

pub async fn complete(
    State(app): State<Arc<App>>,
    Asking { caller, who }: Asking,
    sent: Sent,
) -> Result<Response, ApiError> {
    let (started, input, reserved) = sent.read(&app, caller, begin_completion).await?;
    answered(&app, started, (who, TEXT, input), reserved).await
}

/// The response of a model, with its lines in the audit trail. The body stays in the budget for as long as the trail keeps it.
async fn answered(
    app: &Arc<App>,
    Started { answering, stream, ignored }: Started<Answer>,
    (who, path, input): (Who, &str, Input),
    reserved: Reserved,
) -> Result<Response, ApiError> {
    let pending = Pending::begin(&app.audit, who, path, input, &answering.about()).await?;
    let answering = answering.told(pending, app.audit.is_on().then_some(reserved));
    Started { answering, stream, ignored }.respond(app).await
}

/// Lists the fields that had no effect in a header.
pub fn with_ignored(mut response: Response, ignored: &[String]) -> Response {
    if let Some(value) = listed_in_header(ignored) {
        response.headers_mut().insert(IGNORED, value);
    }
    response
}

fn begin_chat(
    app: &App,
    request: ChatRequest,
    caller: Option<&Caller>,
) -> Result<Started<Answer>, ApiError> {
    let model = app.served()?.find(request.model.as_deref())?.clone();
    let bytes = request.texts.iter().map(|message| message.content.len()).sum();
    refuse_length(bytes, model.context(), "messages")?;
    let description = &model.backbone.description;
    let thinks = request.turn.thinks(model.thinks());
    let prompt = description.chat.prompt(&description.tokenizer, &request.texts, thinks);
    let prompt = prompt.map_err(PanelError::from)?;
    let end = model.backbone.think_end.filter(|_| thinks);
    let think_end = end.map(|id| ThinkEnd {
        id,
        tag: String::from_utf8_lossy(description.tokenizer.bytes(id)).into_owned(),
    });
    let wanted = Wanted {
        model,
        prompts: vec![prompt.tokens],
        logprobs: request.logprobs(),
        prompt_logprobs: None,
        decoding: request.decoding,
        constrain_after: end,
    };
    begin(app, wanted, Form::Chat { think_end }, request.ignored, caller)
}

fn begin_completion(
    app: &App,
    body: &[u8],
    caller: Option<&Caller>,
) -> Result<Started<Answer>, ApiError> {
    let request = CompletionRequest::read(body)?;
    let model = app.served()?.find(request.model.as_deref())?.clone();
    let tokenizer = &model.backbone.description.tokenizer;
    let logprobs = request.logprobs();
    let (mut prompts, mut texts) = (Vec::new(), Vec::new());
    for prompt in request.prompt.list("prompt", MOST_PROMPTS)? {
        match prompt {
            TextPrompt::Text(text) => {
                refuse_length(text.len(), model.context(), "prompt")?;
                let ids = tokenizer.encode_with(&text, request.add_special_tokens.unwrap_or(true));
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
    let is_bare = request.decoding.max_tokens() == Some(0);
    let prompt_logprobs = logprobs.or(is_bare.then_some(0)).filter(|_| request.echo);
    let wanted = Wanted {
        model,
        prompts,
        logprobs,
        prompt_logprobs,
        decoding: request.decoding,
        constrain_after: None,
    };
    let form = Form::Text { echoed: request.echo.then_some(texts) };
    begin(app, wanted, form, request.ignored, caller).map_err(ApiError::of_prompt)
}

fn begin(
    app: &App,
    wanted: Wanted,
    form: Form,
    mut ignored: Vec<String>,
    caller: Option<&Caller>,
) -> Result<Started<Answer>, ApiError> {
    ignored.extend(wanted.decoding.without_effect.iter().map(ToString::to_string));
    let stream = wanted.decoding.streaming();
    let is_chat = matches!(form, Form::Chat { .. });
    let head = Head::new(is_chat, &wanted.model.id, &wanted.model.fingerprint);
    let generation = Generation::begin(app, wanted, caller)?;
    Ok(Started {
        answering: Answer::new(head, form, listed(&ignored), generation),
        stream,
        ignored,
    })
}
