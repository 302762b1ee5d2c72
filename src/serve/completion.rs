//! The endpoints of a model: completions of chats and of plain texts, whole or streamed; and tokens, for clients that count or truncate prompts.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::body::Sent;
use super::case;
use super::error::ApiError;
use super::guard::Caller;
use super::models::refuse_length;
use super::request::chat::ChatRequest;
use super::request::completions::{CompletionRequest, Prompt};
use super::request::fields::request;
use super::response::answer::Wanted;
use super::response::choice::ThinkEnd;
use super::response::events::{Answering, respond};
use crate::panel::PanelError;

pub async fn chat(State(app): State<Arc<App>>, sent: Sent) -> Result<Response, ApiError> {
    let begin = |app: &App, body: &[u8], caller: Option<&Caller>| {
        let (request, served) = (ChatRequest::read(body)?, app.served()?);
        match request.model.as_deref().and_then(|name| served.system(name)) {
            Some(system) => case::begin(app, request, system.clone(), caller),
            None => begin_chat(app, request, caller),
        }
    };
    let (answer, received) = sent.read(&app, begin).await?;
    respond(&app, answer, received).await
}

pub async fn complete(State(app): State<Arc<App>>, sent: Sent) -> Result<Response, ApiError> {
    let (answer, received) = sent.read(&app, begin_completion).await?;
    respond(&app, answer, received).await
}

fn begin_chat(
    app: &App,
    request: ChatRequest,
    caller: Option<&Caller>,
) -> Result<Box<dyn Answering>, ApiError> {
    let model = app.served()?.find(request.model.as_deref())?.clone();
    let bytes = request.texts.iter().map(|message| message.content.len()).sum();
    refuse_length(bytes, model.context, "messages")?;
    let description = &model.backbone.description;
    let thinks = request.thinks.unwrap_or_else(|| model.thinks());
    let prompt = description.chat.prompt(&description.tokenizer, &request.texts, thinks);
    let prompt = prompt.map_err(PanelError::from)?;
    let end = model.backbone.think_end.filter(|_| thinks);
    let think_end = end.map(|id| ThinkEnd {
        id,
        tag: String::from_utf8_lossy(description.tokenizer.bytes(id)).into_owned(),
    });
    let (logprobs, decoding) = (request.logprobs(), request.decoding);
    let wanted = Wanted {
        model,
        is_chat: true,
        prompts: vec![prompt.tokens],
        echoed: None,
        decoding,
        think_end,
        logprobs,
        prompt_logprobs: None,
        ignored: request.unknown,
    };
    wanted.begin(app, caller)
}

fn begin_completion(
    app: &App,
    body: &[u8],
    caller: Option<&Caller>,
) -> Result<Box<dyn Answering>, ApiError> {
    let mut request = CompletionRequest::read(body)?;
    let model = app.served()?.find(request.model.as_deref())?.clone();
    let tokenizer = &model.backbone.description.tokenizer;
    let logprobs = request.logprobs;
    let (mut prompts, mut texts) = (Vec::new(), Vec::new());
    for prompt in request.prompts() {
        match prompt {
            Prompt::Text(text) => {
                refuse_length(text.len(), model.context, "prompt")?;
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
    let is_bare = request.decoding.max_tokens == Some(0);
    let prompt_logprobs = logprobs.or(is_bare.then_some(0)).filter(|_| request.echo);
    let wanted = Wanted {
        model,
        is_chat: false,
        prompts,
        echoed: request.echo.then_some(texts),
        decoding: request.decoding,
        think_end: None,
        logprobs,
        prompt_logprobs,
        ignored: request.ignored,
    };
    wanted.begin(app, caller)
}

/// Unknown fields are mistakes where no response has a list of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenizeRequest {
    model: Option<String>,
    prompt: String,
    add_special_tokens: Option<bool>,
}

pub async fn tokenize(State(app): State<Arc<App>>, sent: Sent) -> Result<Json<Value>, ApiError> {
    Ok(sent.read(&app, tokenized).await?.0)
}

fn tokenized(app: &App, body: &[u8], _: Option<&Caller>) -> Result<Json<Value>, ApiError> {
    let asked: TokenizeRequest = request(body)?;
    let model = app.served()?.find(asked.model.as_deref())?;
    let tokenizer = &model.backbone.description.tokenizer;
    refuse_length(asked.prompt.len(), model.context, "prompt")?;
    let adds = asked.add_special_tokens.unwrap_or(true);
    let tokens = tokenizer.encode_with(&asked.prompt, adds).map_err(PanelError::from)?;
    let (count, most) = (tokens.len(), model.context);
    Ok(Json(json!({"count": count, "max_model_len": most, "tokens": tokens})))
}

/// Of the only model: whoever asks names none.
pub async fn info(State(app): State<Arc<App>>) -> Result<Json<Value>, ApiError> {
    let model = app.served()?.find(None)?;
    let description = &model.backbone.description;
    let chat = &description.chat;
    Ok(Json(json!({
        "bos_token": chat.token("bos_token"),
        "eos_token": chat.token("eos_token"),
        "pad_token": chat.token("pad_token"),
        "chat_template": chat.source,
    })))
}
