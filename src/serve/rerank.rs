//! The endpoint of reranking: documents in the order in which they answer a query, in the form of Cohere and Jina.

use std::cmp::Ordering;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::app::App;
use super::body::Sent;
use super::encoders::{Asked, Encoding, Reader, refuse_count};
use super::error::ApiError;
use super::guard::Caller;
use super::models::Kind;
use super::request::fields::{self, Fields, MOST, Whole};
use super::response::reply::new_id;
use crate::encoder::{Pair, Side, between_0_and_1};

#[derive(Debug, Deserialize, JsonSchema)]
pub struct RerankRequest {
    model: Option<String>,
    query: String,
    documents: Vec<Document>,
    /// The best ones that are wanted; all where it is not said.
    top_n: Option<Whole<1, MOST>>,
    return_documents: Option<bool>,
    /// Whether pairs that are too long are cut.
    #[serde(default)]
    truncate: bool,
    #[serde(flatten)]
    rest: Fields,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "is of another type; expected a string, or an object with `text`")]
enum Document {
    Text(String),
    Object {
        text: String,
        #[serde(flatten)]
        rest: Fields,
    },
}

impl Document {
    fn text(&self) -> &str {
        match self {
            Document::Text(text) | Document::Object { text, .. } => text,
        }
    }
}

impl RerankRequest {
    fn read(body: &[u8]) -> Result<RerankRequest, ApiError> {
        let request: RerankRequest = fields::request(body)?;
        if request.query.trim().is_empty() {
            return Err(ApiError::invalid("query", "query is empty"));
        }
        refuse_count("documents", request.documents.len())?;
        Ok(request)
    }

    /// Unknown fields.
    fn ignored(&self) -> Vec<String> {
        let numbered = self.documents.iter().enumerate();
        let inside = numbered.flat_map(|(index, document)| match document {
            Document::Text(_) => Vec::new(),
            Document::Object { rest, .. } => {
                fields::unknown(&format!("documents[{index}]"), rest).collect()
            }
        });
        fields::names(&self.rest).into_iter().chain(inside).collect()
    }
}

#[derive(Serialize, JsonSchema)]
pub struct Ranking {
    id: String,
    results: Vec<Ranked>,
    /// The tokens where Cohere has them.
    meta: Value,
}

#[derive(Serialize, JsonSchema)]
struct Ranked {
    index: usize,
    relevance_score: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<DocumentText>,
}

#[derive(Serialize, JsonSchema)]
struct DocumentText {
    text: String,
}

pub async fn rerank(State(app): State<Arc<App>>, sent: Sent) -> Result<Response, ApiError> {
    let ((encoding, request), mut received) = sent.read(&app, begin).await?;
    let reserved = received.reserved.take();
    let ranked = ranked(&encoding.told(&app, received, output).await?);
    let wanted = ranked.into_iter().take(request.top_n.map_or(usize::MAX, Whole::count));
    let shown = |index: usize| DocumentText { text: request.documents[index].text().to_owned() };
    let returns = request.return_documents != Some(false);
    let results = wanted.map(|(index, score)| Ranked {
        index,
        relevance_score: f64::from(score),
        document: returns.then(|| shown(index)),
    });
    let meta = json!({"tokens": {"input_tokens": encoding.tokens}});
    let own = Ranking { id: new_id("rerank"), results: results.collect(), meta };
    drop(reserved);
    Ok(encoding.respond(own, &request.ignored()))
}

/// Reads a request, and takes its place in the queue.
fn begin(
    app: &App,
    body: &[u8],
    caller: Option<&Caller>,
) -> Result<(Encoding, RerankRequest), ApiError> {
    let request = RerankRequest::read(body)?;
    let model = app.served()?.encoder(Kind::Reranker, request.model.as_deref())?;
    let Reader::Reranker(reranker) = &*model.reader else { return Err(ApiError::failed()) };
    let asked = Asked { side: Side::Document, dims: 1 };
    let mut encoding = Encoding::new(model, asked, "documents", request.truncate);
    for text in request.documents.iter().map(Document::text) {
        let bytes = if text.trim().is_empty() { 0 } else { text.len() + request.query.len() };
        encoding
            .add(bytes, || reranker.sequence(&Pair { query: &request.query, title: "", text }))?;
    }
    Ok((encoding.admit(app, caller)?, request))
}

/// What the audit trail has of scores.
fn output(scores: &[Vec<f32>]) -> Value {
    let ranked = ranked(scores).into_iter();
    ranked.map(|(index, score)| json!({"index": index, "relevance_score": score})).collect()
}

/// The places of documents and their scores from 0 to 1, the best first, of equal ones the first. The order is that of the model's own numbers,
/// of which great ones come to the same score.
fn ranked(scores: &[Vec<f32>]) -> Vec<(usize, f32)> {
    let mut ranked: Vec<(usize, f32)> = scores.iter().flatten().copied().enumerate().collect();
    ranked.sort_by(|(_, one), (_, other)| other.partial_cmp(one).unwrap_or(Ordering::Equal));
    ranked.into_iter().map(|(index, score)| (index, between_0_and_1(score))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(change: Value) -> Result<RerankRequest, ApiError> {
        let mut body = json!({"query": "a", "documents": ["b", {"text": "c", "title": "d"}]});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        RerankRequest::read(body.to_string().as_bytes())
    }

    #[test]
    fn documents_are_texts_or_objects_with_one() {
        let request = read(json!({"top_n": 1, "zeta": 2})).unwrap();
        let texts: Vec<&str> = request.documents.iter().map(Document::text).collect();
        assert_eq!(texts, ["b", "c"]);
        assert_eq!((request.return_documents, request.top_n), (None, Some(Whole(1))));
        assert_eq!(request.ignored(), ["zeta", "documents[1].title"]);
        for (change, param) in [
            (json!({"query": " "}), "query"),
            (json!({"query": null}), "query"),
            (json!({"documents": []}), "documents"),
            (json!({"documents": "b"}), "documents"),
            (json!({"documents": ["b", 3]}), "documents[1]"),
            (json!({"documents": [{"title": "b"}]}), "documents[0]"),
            (json!({"top_n": 0}), "top_n"),
        ] {
            assert_eq!(read(change).unwrap_err().param.as_deref(), Some(param));
        }
    }
}
