//! The endpoints that tokenise texts and decode tokens, for clients that count or truncate prompts.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::app::App;
use super::body::Sent;
use super::error::{ApiError, Code};
use super::guard::Caller;
use super::models::refuse_length;
use super::request::fields::request;
use crate::panel::PanelError;

/// Unknown fields are mistakes where no response has a list of them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenizeRequest {
    model: Option<String>,
    prompt: String,
    add_special_tokens: Option<bool>,
    #[serde(default)]
    return_token_strs: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DetokenizeRequest {
    model: Option<String>,
    tokens: Vec<u32>,
}

#[derive(Serialize, JsonSchema)]
pub struct Tokens {
    count: usize,
    max_model_len: usize,
    tokens: Vec<u32>,
    token_strs: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
pub struct Text {
    prompt: String,
}

#[derive(Serialize, JsonSchema)]
pub struct TokenizerInfo {
    tokenizer_class: &'static str,
    bos_token: Option<String>,
    eos_token: Option<String>,
    pad_token: Option<String>,
    add_bos_token: bool,
    chat_template: String,
    model_max_length: usize,
}

pub async fn tokenize(State(app): State<Arc<App>>, sent: Sent) -> Result<Json<Tokens>, ApiError> {
    Ok(sent.read(&app, tokenized).await?.0)
}

fn tokenized(app: &App, body: &[u8], _: Option<&Caller>) -> Result<Json<Tokens>, ApiError> {
    let asked: TokenizeRequest = request(body)?;
    let model = app.served()?.find(asked.model.as_deref())?;
    let tokenizer = &model.backbone.description.tokenizer;
    refuse_length(asked.prompt.len(), model.context(), "prompt")?;
    let adds = asked.add_special_tokens.unwrap_or(true);
    let tokens = tokenizer.encode_with(&asked.prompt, adds).map_err(PanelError::from)?;
    let strings = asked.return_token_strs;
    let strings = strings.then(|| tokens.iter().map(|id| tokenizer.shown(*id)).collect());
    let (count, max_model_len) = (tokens.len(), model.context());
    let made = Tokens { count, max_model_len, tokens, token_strs: strings };
    Ok(Json(made))
}

pub async fn detokenize(State(app): State<Arc<App>>, sent: Sent) -> Result<Json<Text>, ApiError> {
    Ok(sent.read(&app, detokenized).await?.0)
}

fn detokenized(app: &App, body: &[u8], _: Option<&Caller>) -> Result<Json<Text>, ApiError> {
    let DetokenizeRequest { model, tokens } = request(body)?;
    let model = app.served()?.find(model.as_deref())?;
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
    let prompt = model.backbone.description.tokenizer.decode_shown(&tokens);
    Ok(Json(Text { prompt }))
}

/// Of the only model: whoever asks names none.
pub async fn info(State(app): State<Arc<App>>) -> Result<Json<TokenizerInfo>, ApiError> {
    let model = app.served()?.find(None)?;
    let description = &model.backbone.description;
    let chat = &description.chat;
    Ok(Json(TokenizerInfo {
        tokenizer_class: description.config.family.name(),
        bos_token: chat.token("bos_token").map(str::to_owned),
        eos_token: chat.token("eos_token").map(str::to_owned),
        pad_token: chat.token("pad_token").map(str::to_owned),
        add_bos_token: description.tokenizer.adds_bos(),
        chat_template: chat.source.clone(),
        model_max_length: model.context(),
    }))
}
