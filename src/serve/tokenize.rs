//! Tokens of texts and chats, and texts of tokens, for clients that count or cut them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, Request, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::body;
use super::completion::blocking;
use super::error::{ApiError, Code};
use super::models::ServedModel;
use super::request::address::Address;
use super::request::chat::messages;
use super::request::completions::ids;
use super::request::fields::{Fields, wrong_type};
use crate::chat::{Prompt, TurnOptions};
use crate::panel::PanelError;

/// The model that a query names.
#[derive(Deserialize)]
pub struct Named {
    model: Option<String>,
}

/// The model and the fields of a body.
async fn read(app: &Arc<App>, request: Request) -> Result<(Arc<ServedModel>, Fields), ApiError> {
    app.served()?;
    let (parts, body) = request.into_parts();
    let bytes = body::read_json(&parts.headers, body, &app.options.limits).await?;
    let mut fields = Fields::parse(&bytes)?;
    let name = fields.text("model")?;
    Ok((app.served()?.find(name.as_deref())?.clone(), fields))
}

/// The chat of a body as the model is given it.
fn chat(model: &ServedModel, fields: &mut Fields) -> Result<Prompt, ApiError> {
    let messages = messages(fields.take("messages"))?;
    let turn = TurnOptions {
        thinking: fields.flag("enable_thinking")?.unwrap_or(model.thinks()),
        opens_turn: fields.flag("add_generation_prompt")?.unwrap_or(true),
        continues_last: false,
    };
    let description = &model.backbone.description;
    let prompt = description.chat.prompt_with(&description.tokenizer, &messages, turn);
    Ok(prompt.map_err(PanelError::from)?)
}

pub async fn tokenize(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (model, mut fields) = read(&app, request).await?;
    blocking(move || {
        let tokenizer = &model.backbone.description.tokenizer;
        let prompt = fields.text("prompt")?.map_or_else(|| fields.text("content"), |text| Ok(Some(text)))?;
        let tokens = match prompt {
            Some(text) => {
                let adds = fields.flag("add_special_tokens")?.unwrap_or(true);
                tokenizer.encode_with(&text, adds).map_err(PanelError::from)?
            }
            None => chat(&model, &mut fields)?.tokens,
        };
        let strings = match fields.flag("return_token_strs")?.unwrap_or(false) {
            true => json!(tokens.iter().map(|id| tokenizer.shown(*id)).collect::<Vec<_>>()),
            false => Value::Null,
        };
        Ok(Json(json!({
            "count": tokens.len(), "max_model_len": model.context(), "tokens": tokens, "token_strs": strings
        })))
    })
    .await
}

pub async fn detokenize(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (model, mut fields) = read(&app, request).await?;
    let tokens = match fields.take("tokens") {
        Some(Value::Array(list)) if list.is_empty() => Vec::new(),
        Some(Value::Array(list)) => ids("tokens", &list)?,
        Some(other) => return Err(wrong_type("tokens", &other, "an array of token ids")),
        None => return Err(ApiError::of(Code::MissingParameter, "tokens", "tokens is missing")),
    };
    let text = model.backbone.description.tokenizer.decode_shown(&tokens);
    Ok(Json(json!({"prompt": text, "content": text})))
}

pub async fn apply_template(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (model, mut fields) = read(&app, request).await?;
    blocking(move || Ok(Json(json!({"prompt": chat(&model, &mut fields)?.text})))).await
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
        "bos_token": chat.bos_token,
        "eos_token": chat.eos_token,
        "add_bos_token": description.tokenizer.adds_bos(),
        "chat_template": chat.source,
        "model_max_length": model.context(),
    })))
}
