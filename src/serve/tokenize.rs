//! The endpoints that tokenise texts and chats and decode tokens, for clients that count or truncate prompts.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::app::App;
use super::body::Sent;
use super::completion::{refuse_ignored, with_ignored};
use super::error::{ApiError, Code};
use super::models::{ServedModel, refuse_length};
use super::request::address::Address;
use super::request::chat::{SentMessage, Turn, messages};
use super::request::fields::{Fields, names, parse, take};
use crate::chat::Prompt;
use crate::panel::PanelError;

/// A text, or the messages of a chat with the fields of [`Turn`].
#[derive(Deserialize, JsonSchema)]
pub struct TokenizeRequest {
    model: Option<String>,
    prompt: Option<String>,
    content: Option<String>,
    #[serde(default)]
    messages: Vec<SentMessage>,
    add_special_tokens: Option<bool>,
    #[serde(default)]
    return_token_strs: bool,
    #[serde(flatten)]
    rest: Fields,
}

#[derive(Deserialize, JsonSchema)]
pub struct DetokenizeRequest {
    model: Option<String>,
    tokens: Vec<u32>,
    #[serde(flatten)]
    rest: Fields,
}

/// Messages with the fields of [`Turn`].
#[derive(Deserialize, JsonSchema)]
pub struct TemplateRequest {
    model: Option<String>,
    messages: Vec<SentMessage>,
    #[serde(flatten)]
    rest: Fields,
}

/// The model of the query.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    model: Option<String>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
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

/// The response to a body, made by `work` of its fields. It lists unknown fields in a header; under `--strict` they are an error.
async fn answer<T: Serialize + 'static>(
    app: Arc<App>,
    sent: Sent,
    work: fn(&App, &mut Fields, &mut Vec<String>) -> Result<T, ApiError>,
) -> Result<Response, ApiError> {
    app.served()?;
    let read = move |bytes: axum::body::Bytes| {
        let (mut fields, mut inside) = (parse(&bytes)?, Vec::new());
        let made = work(&app, &mut fields, &mut inside)?;
        let ignored: Vec<String> = names(&fields).into_iter().chain(inside).collect();
        refuse_ignored(&app, &ignored)?;
        Ok(with_ignored(Json(made).into_response(), &ignored))
    };
    Ok(sent.parse_json(read).await?.0)
}

fn chat(
    model: &ServedModel,
    list: Vec<SentMessage>,
    fields: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<Prompt, ApiError> {
    let list = messages(list, ignored)?;
    let bytes = list.iter().map(|message| message.content.len()).sum();
    refuse_length(bytes, model.context(), "messages")?;
    let turn = Turn::take(fields)?;
    ignored.extend(turn.ignored().chain(turn.without_effect().map(str::to_owned)));
    let description = &model.backbone.description;
    let options = turn.of(model.thinks());
    let prompt = description.chat.prompt_with(&description.tokenizer, &list, options);
    Ok(prompt.map_err(PanelError::from)?)
}

pub async fn tokenize(State(app): State<Arc<App>>, sent: Sent) -> Result<Response, ApiError> {
    answer(app, sent, |app, fields, ignored| {
        let asked = take(fields, |own: &mut TokenizeRequest| &mut own.rest)?;
        let model = app.served()?.find(asked.model.as_deref())?;
        let tokenizer = &model.backbone.description.tokenizer;
        let tokens = match asked.prompt.or(asked.content) {
            Some(text) => {
                refuse_length(text.len(), model.context(), "prompt")?;
                ignored.extend((!asked.messages.is_empty()).then(|| "messages".to_owned()));
                let adds = asked.add_special_tokens.unwrap_or(true);
                tokenizer.encode_with(&text, adds).map_err(PanelError::from)?
            }
            None => {
                // A template writes its own.
                let adds = asked.add_special_tokens == Some(true);
                let prompt = chat(model, asked.messages, fields, ignored)?;
                ignored.extend(adds.then(|| "add_special_tokens".to_owned()));
                prompt.tokens
            }
        };
        let strings = asked.return_token_strs;
        let strings = strings.then(|| tokens.iter().map(|id| tokenizer.shown(*id)).collect());
        let (count, max_model_len) = (tokens.len(), model.context());
        Ok(Tokens { count, max_model_len, tokens, token_strs: strings })
    })
    .await
}

pub async fn detokenize(State(app): State<Arc<App>>, sent: Sent) -> Result<Response, ApiError> {
    answer(app, sent, |app, fields, _| {
        let DetokenizeRequest { model, tokens, .. } =
            take(fields, |own: &mut DetokenizeRequest| &mut own.rest)?;
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
        let text = model.backbone.description.tokenizer.decode_shown(&tokens);
        Ok(Text { prompt: text.clone(), content: Some(text) })
    })
    .await
}

pub async fn apply_template(State(app): State<Arc<App>>, sent: Sent) -> Result<Response, ApiError> {
    answer(app, sent, |app, fields, ignored| {
        let TemplateRequest { model, messages, .. } =
            take(fields, |own: &mut TemplateRequest| &mut own.rest)?;
        let model = app.served()?.find(model.as_deref())?;
        let prompt = chat(model, messages, fields, ignored)?.text;
        Ok(Text { prompt, content: None })
    })
    .await
}

pub async fn info(
    State(app): State<Arc<App>>,
    Address(Query(named)): Address<Query<Named>>,
) -> Result<Json<TokenizerInfo>, ApiError> {
    let model = app.served()?.find(named.model.as_deref())?;
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
