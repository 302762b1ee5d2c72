//! The endpoints of completions, of chats and of plain text: from a request body to a response, whole or streamed.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::app::App;
use super::body::Sent;
use super::case::{self, SystemAnswer};
use super::error::ApiError;
use super::guard::Caller;
use super::models::refuse_length;
use super::request::chat::ChatRequest;
use super::request::completions::{CompletionRequest, Prompt};
use super::response::answer::{Answer, Form, Wanted};
use super::response::choice::ThinkEnd;
use super::response::events::Started;
use crate::panel::PanelError;

/// What a chat is answered by.
enum Chat {
    Model(Box<Started<Answer>>),
    System(Box<Started<SystemAnswer>>),
}

pub async fn chat(State(app): State<Arc<App>>, sent: Sent) -> Result<Response, ApiError> {
    let begin = |app: &App, body: &[u8], caller: Option<&Caller>| {
        let (request, served) = (ChatRequest::read(body)?, app.served()?);
        let system = request.model.as_deref().and_then(|name| served.system(name)).cloned();
        Ok(match system {
            Some(system) => Chat::System(Box::new(case::begin(app, request, system, caller)?)),
            None => Chat::Model(Box::new(begin_chat(app, request, caller)?)),
        })
    };
    match sent.read(&app, begin).await? {
        (Chat::System(started), received) => started.respond(&app, received).await,
        (Chat::Model(started), received) => started.respond(&app, received).await,
    }
}

pub async fn complete(State(app): State<Arc<App>>, sent: Sent) -> Result<Response, ApiError> {
    let (started, received) = sent.read(&app, begin_completion).await?;
    started.respond(&app, received).await
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
    let thinks = request.thinks.unwrap_or_else(|| model.thinks());
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
        form: Form::Chat { think_end },
        logprobs: request.logprobs(),
        prompt_logprobs: None,
        decoding: request.decoding,
    };
    wanted.begin(app, request.ignored, caller)
}

fn begin_completion(
    app: &App,
    body: &[u8],
    caller: Option<&Caller>,
) -> Result<Started<Answer>, ApiError> {
    let mut request = CompletionRequest::read(body)?;
    let model = app.served()?.find(request.model.as_deref())?.clone();
    let tokenizer = &model.backbone.description.tokenizer;
    let logprobs = request.logprobs();
    let (mut prompts, mut texts) = (Vec::new(), Vec::new());
    for prompt in request.prompts()? {
        match prompt {
            Prompt::Text(text) => {
                refuse_length(text.len(), model.context(), "prompt")?;
                let ids = tokenizer.encode_with(&text, request.add_special_tokens.unwrap_or(true));
                let ids = ids.map_err(PanelError::from)?;
                if ids.is_empty() {
                    return Err(ApiError::invalid("prompt", "prompt has no token"));
                }
                prompts.push(ids);
                texts.push(text);
            }
            Prompt::Ids(ids) => {
                texts.push(tokenizer.decode_shown(&ids));
                prompts.push(ids);
            }
        }
    }
    // Of a prompt alone nothing is computed but these.
    let is_bare = request.decoding.max_tokens() == Some(0);
    let prompt_logprobs = logprobs.or(is_bare.then_some(0)).filter(|_| request.echo);
    let form = Form::Text { echoed: request.echo.then_some(texts) };
    let decoding = request.decoding;
    let wanted = Wanted { model, prompts, decoding, form, logprobs, prompt_logprobs };
    wanted.begin(app, request.ignored, caller).map_err(ApiError::of_prompt)
}
