//! Where a checkpoint's directory holds its chat template and the tokens that templates know by name.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::ChatError;
use crate::outside;

/// Longer ones are not compiled anyway.
const LONGEST: u64 = 1 << 20;

/// The names that every tokenizer may give a token, as transformers knows them.
const TOKEN_NAMES: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// A template as it was read, with the tokens that it may name.
pub(super) struct Found {
    pub path: PathBuf,
    pub source: String,
    /// By name. A name without a token is undefined to templates.
    pub tokens: Vec<(String, String)>,
}

/// The template of `directory`: `chat_template.jinja`, else `chat_template.json`, else the field `chat_template` of
/// `tokenizer_config.json`.
pub(super) fn find(directory: &Path) -> Result<Found, ChatError> {
    let config = read_json(&directory.join("tokenizer_config.json"))?.unwrap_or_default();
    let (path, source) = find_source(directory, &config)?;
    let older = read_json(&directory.join("special_tokens_map.json"))?.unwrap_or_default();
    Ok(Found { path, source, tokens: find_tokens(&config, &older) })
}

fn find_source(directory: &Path, config: &Value) -> Result<(PathBuf, String), ChatError> {
    let path = directory.join("chat_template.jinja");
    if path.is_file() {
        let bytes = outside::bytes(&path, LONGEST).map_err(|error| unreadable(&path, error))?;
        let text = String::from_utf8(bytes).map_err(|error| unreadable(&path, error))?;
        return Ok((path, text));
    }
    let path = directory.join("chat_template.json");
    if let Some(value) = read_json(&path)? {
        return match value["chat_template"].as_str() {
            Some(text) => Ok((path, text.to_owned())),
            None => Err(unreadable(&path, "`chat_template` is not a text")),
        };
    }
    // One template, or several by name.
    let template = &config["chat_template"];
    let named =
        template.as_array().and_then(|list| list.iter().find(|entry| entry["name"] == "default"));
    match template.as_str().or_else(|| named.and_then(|entry| entry["template"].as_str())) {
        Some(text) => Ok((directory.join("tokenizer_config.json"), text.to_owned())),
        None => Err(ChatError::Missing { directory: directory.to_owned() }),
    }
}

/// The tokens of `tokenizer_config.json` and, where that has none of a name, of the older `special_tokens_map.json`; those
/// that a model adds under names of its own, too.
fn find_tokens(config: &Value, older: &Value) -> Vec<(String, String)> {
    let text =
        |token: &Value| token.as_str().or_else(|| token["content"].as_str()).map(str::to_owned);
    let known = TOKEN_NAMES.iter().filter_map(|name| {
        let token = text(&config[*name]).or_else(|| text(&older[*name]))?;
        Some(((*name).to_owned(), token))
    });
    let none = Map::new();
    let own = config["extra_special_tokens"].as_object().unwrap_or(&none);
    let own = own.iter().filter_map(|(name, token)| Some((name.clone(), text(token)?)));
    known.chain(own).collect()
}

fn read_json(path: &Path) -> Result<Option<Value>, ChatError> {
    let read = outside::if_there(outside::json(path)).map_err(|error| unreadable(path, error))?;
    read.transpose().map_err(|error| unreadable(path, error))
}

fn unreadable(path: &Path, problem: impl ToString) -> ChatError {
    ChatError::Unreadable { path: path.to_owned(), problem: problem.to_string() }
}
