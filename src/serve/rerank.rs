//! The endpoint of reranking: documents in the order in which they answer a query, in the form of Cohere and Jina.

use std::cmp::Ordering;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::app::App;
use super::audit::Told;
use super::body::{Sent, blocking};
use super::completion::{check, new_id, refuse_ignored};
use super::encoders::{Asked, Reader, lost};
use super::encoding::{Client, Encoding, respond};
use super::error::ApiError;
use super::guard::{Asking, Caller};
use super::models::Kind;
use super::request::rerank::RerankRequest;
use crate::encoder::{Pair, Side, between_0_and_1};

pub const PATH: &str = "/v1/rerank";

/// A request whose pairs are read.
pub struct Begun {
    pub encoding: Encoding,
    request: RerankRequest,
}

pub async fn rerank(
    State(app): State<Arc<App>>,
    Asking { caller, who }: Asking,
    sent: Sent,
) -> Result<Response, ApiError> {
    check(&app)?;
    let reading = app.clone();
    let read = move |bytes: Bytes| {
        let begun = begin(&reading, &bytes, caller.as_ref())?;
        Ok((begun, reading.audit.input(&bytes)))
    };
    let ((begun, input), reserved) = sent.parse_json(read).await?;
    let Begun { mut encoding, request } = begun;
    let client = Client { who, path: PATH, input };
    let ranked = ranked(&encoding.told(&app, client, output).await?);
    let results = ranked.into_iter().take(request.top_n.unwrap_or(usize::MAX));
    let results = results.map(|(index, score)| {
        let mut result = entry(index, score);
        if request.returns_documents {
            result["document"] = json!({"text": request.documents[index]});
        }
        result
    });
    let results: Vec<Value> = results.collect();
    let (id, _) = new_id("rerank", None);
    let body = json!({
        "id": id,
        "object": "list",
        "model": encoding.model.id,
        "results": results,
        "usage": encoding.usage(),
        "meta": {"tokens": {"input_tokens": encoding.tokens}},
        "system_fingerprint": encoding.model.fingerprint,
        "wardround": encoding.own_fields(&request.ignored),
    });
    let response = move || {
        let response = respond(&body, &request.ignored);
        drop(reserved);
        response
    };
    blocking(response).await
}

/// Reads a request, and takes its place in the queue.
pub fn begin(app: &App, body: &[u8], caller: Option<&Caller>) -> Result<Begun, ApiError> {
    let request = RerankRequest::read(body)?;
    refuse_ignored(app, &request.ignored)?;
    let model = app.served()?.encoder(Kind::Reranker, request.model.as_deref())?;
    let Reader::Reranker(reranker) = &*model.reader else { return Err(lost()) };
    let asked = Asked { side: Side::Document, dims: 1 };
    let mut encoding = Encoding::new(model, asked, "documents", request.truncates);
    for text in &request.documents {
        let bytes = if text.trim().is_empty() { 0 } else { text.len() + request.query.len() };
        encoding
            .add(bytes, || reranker.sequence(&Pair { query: &request.query, title: "", text }))?;
    }
    Ok(Begun { encoding: encoding.admit(app, caller)?, request })
}

/// What the audit trail has of scores.
pub fn output(scores: &[Vec<f32>]) -> Value {
    ranked(scores).into_iter().map(|(index, score)| entry(index, score)).collect()
}

fn entry(index: usize, score: f32) -> Value {
    json!({"index": index, "relevance_score": score})
}

/// The places of documents and their scores from 0 to 1, the best first, of equal ones the first. The order is that of the model's own numbers,
/// of which great ones come to the same score.
fn ranked(scores: &[Vec<f32>]) -> Vec<(usize, f32)> {
    let mut ranked: Vec<(usize, f32)> = scores.iter().flatten().copied().enumerate().collect();
    ranked.sort_by(|(_, one), (_, other)| other.partial_cmp(one).unwrap_or(Ordering::Equal));
    ranked.into_iter().map(|(index, score)| (index, between_0_and_1(score))).collect()
}
