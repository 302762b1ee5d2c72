//! The endpoints that tokenise texts and chats and decode tokens, for clients that count or truncate prompts.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::body::Sent;
use super::completion::{refuse_ignored, with_ignored};
use super::error::{ApiError, Code};
use super::models::{ServedModel, refuse_length};
use super::request::address::Address;
use super::request::chat::{Messages, messages, turn};
use super::request::fields::{Fields, ids, required};
use crate::chat::Prompt;
use crate::panel::PanelError;

const ADDS: &str = "add_special_tokens";

/// The model of the query.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    model: Option<String>,
}

/// The response to a body, made by `work` of its model and fields.
async fn answer(
    app: Arc<App>,
    sent: Sent,
    work: fn(&App, &ServedModel, Fields) -> Result<Response, ApiError>,
) -> Result<Response, ApiError> {
    app.served()?;
    let read = move |bytes: Bytes| {
        let mut fields = Fields::parse(&bytes)?;
        let name = fields.text("model")?;
        work(&app, app.served()?.find(name.as_deref())?, fields)
    };
    Ok(sent.parse_json(read).await?.0)
}

struct Chat {
    prompt: Prompt,
    /// Unknown fields of inner objects.
    ignored: Vec<String>,
}

fn chat(model: &ServedModel, fields: &mut Fields) -> Result<Chat, ApiError> {
    let Messages { list, mut ignored } = messages(fields.take("messages"))?;
    let bytes = list.iter().map(|message| message.content.len()).sum();
    refuse_length(bytes, model.context(), "messages")?;
    let turn = turn(fields)?;
    let description = &model.backbone.description;
    let options = turn.of(model.thinks());
    let prompt = description.chat.prompt_with(&description.tokenizer, &list, options);
    ignored.extend(turn.ignored.into_iter().chain(turn.without_effect.map(str::to_owned)));
    Ok(Chat { prompt: prompt.map_err(PanelError::from)?, ignored })
}

/// A response that lists unknown fields in a header; under `--strict` they are an error.
fn respond(
    app: &App,
    value: Value,
    fields: Fields,
    inside: Vec<String>,
) -> Result<Response, ApiError> {
    let ignored: Vec<String> = fields.rest().into_iter().chain(inside).collect();
    refuse_ignored(app, &ignored)?;
    Ok(with_ignored(Json(value).into_response(), &ignored))
}

pub async fn tokenize(State(app): State<Arc<App>>, sent: Sent) -> Result<Response, ApiError> {
    answer(app, sent, |app, model, mut fields| {
        let tokenizer = &model.backbone.description.tokenizer;
        let prompt = match fields.text("prompt")? {
            None => fields.text("content")?,
            given => given,
        };
        let adds = fields.flag(ADDS)?;
        let (tokens, inside) = match prompt {
            Some(text) => {
                refuse_length(text.len(), model.context(), "prompt")?;
                let tokens = tokenizer.encode_with(&text, adds.unwrap_or(true));
                (tokens.map_err(PanelError::from)?, Vec::new())
            }
            None => {
                let Chat { prompt, mut ignored } = chat(model, &mut fields)?;
                // A template writes its own.
                ignored.extend(adds.filter(|adds| *adds).map(|_| ADDS.to_owned()));
                (prompt.tokens, ignored)
            }
        };
        let strings = match fields.flag("return_token_strs")?.unwrap_or(false) {
            true => json!(tokens.iter().map(|id| tokenizer.shown(*id)).collect::<Vec<_>>()),
            false => Value::Null,
        };
        let value = json!({
            "count": tokens.len(), "max_model_len": model.context(), "tokens": tokens, "token_strs": strings
        });
        respond(app, value, fields, inside)
    })
    .await
}

pub async fn detokenize(State(app): State<Arc<App>>, sent: Sent) -> Result<Response, ApiError> {
    answer(app, sent, |app, model, mut fields| {
        let tokens = ids("tokens", &required(fields.take("tokens"), "tokens")?)?;
        if tokens.len() > model.context() {
            let (given, most) = (tokens.len(), model.context());
            let message = format!("tokens has {given} tokens, and the model takes {most}");
            return Err(ApiError::of(Code::ContextLengthExceeded, "tokens", message));
        }
        let vocabulary = model.backbone.description.config.vocab_size;
        if let Some(id) = tokens.iter().find(|id| **id as usize >= vocabulary) {
            let message = format!("tokens has {id}; the model's tokens end at {}", vocabulary - 1);
            return Err(ApiError::invalid("tokens", message));
        }
        let text = model.backbone.description.tokenizer.decode_shown(&tokens);
        respond(app, json!({"prompt": text, "content": text}), fields, Vec::new())
    })
    .await
}

pub async fn apply_template(State(app): State<Arc<App>>, sent: Sent) -> Result<Response, ApiError> {
    answer(app, sent, |app, model, mut fields| {
        let Chat { prompt, ignored } = chat(model, &mut fields)?;
        respond(app, json!({"prompt": prompt.text}), fields, ignored)
    })
    .await
}

pub async fn info(
    State(app): State<Arc<App>>,
    Address(Query(named)): Address<Query<Named>>,
) -> Result<Json<Value>, ApiError> {
    let model = app.served()?.find(named.model.as_deref())?;
    let description = &model.backbone.description;
    let chat = &description.chat;
    Ok(Json(json!({
        "tokenizer_class": description.config.family.name(),
        "bos_token": chat.token("bos_token"),
        "eos_token": chat.token("eos_token"),
        "pad_token": chat.token("pad_token"),
        "add_bos_token": description.tokenizer.adds_bos(),
        "chat_template": chat.source,
        "model_max_length": model.context(),
    })))
}
