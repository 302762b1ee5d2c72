//! What reads bodies, for `crate::linear`.

use serde_json::json;

use super::case::{question, words};
use super::request::chat::ChatRequest;
use super::request::completions::{CompletionRequest, texts};
use super::request::embeddings::EmbeddingRequest;
use super::request::fields::{self, Fields, listed, quoted};
use super::request::rerank::RerankRequest;
use crate::data::ItemKind;
use crate::linear::{self, keep};

#[test]
fn what_reads_a_body_takes_time_in_proportion_to_it() {
    linear::check(&[
        ("fields::parse", &|text| keep(Fields::parse(text.as_bytes()))),
        ("fields::parse, a field", &|text| {
            keep(Fields::parse(json!({"a": text}).to_string().as_bytes()));
        }),
        ("fields::parse, a name", &|text| {
            let mut fields = Fields::parse(json!({text: text}).to_string().as_bytes()).unwrap();
            keep((fields.take("a"), fields.rest()));
        }),
        ("fields::inner", &|text| {
            let body = json!({"a": {"b": text}}).to_string();
            keep(Fields::parse(body.as_bytes()).unwrap().inner("a"));
        }),
        ("fields::inner_flag", &|text| {
            let mut inner = serde_json::Map::from_iter([("b".to_owned(), text.into())]);
            keep(fields::inner_flag("a", &mut inner, "b"));
        }),
        ("fields::object", &|text| keep(fields::object("a", text.into()))),
        ("fields::ids", &|text| {
            keep(fields::ids("a", &text.bytes().map(u32::from).collect::<Vec<_>>().into()));
        }),
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
        ("completions::texts", &|text| {
            let list = vec![text.to_owned(); text.len().min(8)];
            keep(texts("a", Some(list.into()), 8));
        }),
        ("embeddings::read", &|text| {
            let body = json!({"input": [text, text], "user": text, "encoding_format": text});
            keep(EmbeddingRequest::read(body.to_string().as_bytes()));
        }),
        ("rerank::read", &|text| {
            let body = json!({"query": text, "documents": [text, {"text": text, "a": text}]});
            keep(RerankRequest::read(body.to_string().as_bytes()));
        }),
        ("rerank::read, documents", &|text| {
            let documents = vec![json!({"text": "a", "b": 1}); text.len() / 32];
            let body = json!({"query": "a", "documents": documents});
            keep(RerankRequest::read(body.to_string().as_bytes()));
        }),
        ("question::item, a note", &|text| keep(question::item(ItemKind::Notes, text))),
        ("question::item, a question", &|text| {
            keep(question::item(ItemKind::Questions, &format!("{text}\nA) {text}\nB) b")));
        }),
        ("question::item, JSON", &|text| {
            keep(question::item(ItemKind::Questions, &format!("{{{text}")));
        }),
        ("question::note", &|text| {
            let item = question::note(text, None, "text");
            keep(item.map(|item| words::text_of(&item)));
        }),
    ]);
}
