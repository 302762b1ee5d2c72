//! What reads bodies, for `crate::linear`.

use serde_json::json;

use super::case::question;
use super::embeddings::EmbeddingRequest;
use super::request::chat::ChatRequest;
use super::request::completions::CompletionRequest;
use super::request::fields::{listed, parse, quoted, request};
use crate::data::ItemKind;
use crate::linear::{self, keep};

#[test]
fn what_reads_a_body_takes_time_in_proportion_to_it() {
    linear::check(&[
        ("fields::parse", &|text| keep(parse(text.as_bytes()))),
        ("fields::parse, a field", &|text| {
            keep(parse(json!({"a": text}).to_string().as_bytes()));
        }),
        ("fields::parse, a name", &|text| keep(parse(json!({text: text}).to_string().as_bytes()))),
        ("fields::quoted", &|text| keep(quoted(text))),
        ("fields::listed", &|text| keep(listed(&[text.to_owned()]))),
        ("chat::read", &|text| {
            let body = json!({"messages": [{"role": "user", "content": text}], "stop": text});
            keep(ChatRequest::read(body.to_string().as_bytes()));
        }),
        ("chat::read, messages", &|text| {
            let messages = vec![json!({"role": "user", "content": "a", "x": 1}); text.len() / 64];
            keep(ChatRequest::read(json!({"messages": messages}).to_string().as_bytes()));
        }),
        ("chat::read, fields", &|text| {
            let fields: serde_json::Map<_, _> =
                (0..text.len() / 16).map(|number| (number.to_string(), 1.into())).collect();
            keep(ChatRequest::read(json!(fields).to_string().as_bytes()));
        }),
        ("completions::read", &|text| {
            keep(CompletionRequest::read(json!({"prompt": [text]}).to_string().as_bytes()));
        }),
        ("completions::read, ids", &|text| {
            let ids: Vec<u32> = text.bytes().map(u32::from).collect();
            keep(CompletionRequest::read(json!({"prompt": ids}).to_string().as_bytes()));
        }),
        ("fields::request", &|text| {
            // Long texts are copied, which takes as long as their pages are new: many short ones are read.
            let part = &text[..text.floor_char_boundary(64)];
            let body = json!({"input": vec![part; text.len() / 64], "user": text});
            keep(request::<EmbeddingRequest>(body.to_string().as_bytes()).is_ok());
        }),
        ("question::item, a note", &|text| keep(question::item(ItemKind::Notes, text))),
        ("question::item, a question", &|text| {
            keep(question::item(ItemKind::Questions, &format!("{text}\nA) {text}\nB) b")));
        }),
        ("question::note", &|text| {
            keep(question::note(text, "text"));
        }),
    ]);
}
