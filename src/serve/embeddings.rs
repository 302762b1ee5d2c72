//! The endpoints of embeddings, in OpenAI's form, and of reranking, in that of Cohere and Jina.

use std::cmp::Ordering;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::app::App;
use super::body::{Sent, reserve};
use super::encoders::{Encoding, Texts, bytes_of};
use super::error::ApiError;
use super::guard::Caller;
use super::models::Kind;
use super::request::fields::{Fields, request};
use super::response::reply::new_id;
use crate::encoder::{Side, between_0_and_1};

/// What a number takes until it is sent: itself, twice, and its digits.
const NUMBER_BYTES: usize = 4 + 8 + 21;

#[derive(Debug, Deserialize)]
pub struct EmbeddingRequest {
    model: Option<String>,
    input: Inputs,
    #[serde(default)]
    input_type: Side,
    /// The numbers of a vector, which are all of the model's.
    dimensions: Option<usize>,
    #[serde(default)]
    encoding_format: EncodingFormat,
    #[serde(flatten)]
    rest: Fields,
}

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "is of another type; expected a string or an array of strings; token ids are not taken (LangChain: check_embedding_ctx_length=False)"
)]
enum Inputs {
    Text(String),
    List(Vec<String>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EncodingFormat {
    #[default]
    Float,
    Base64,
}

#[derive(Serialize)]
struct Embeddings {
    data: Vec<Embedding>,
}

#[derive(Serialize)]
struct Embedding {
    object: &'static str,
    index: usize,
    embedding: Vector,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Vector {
    /// With all digits, so that whoever reads a number in eight bytes and rounds to four has the same one.
    Float(Vec<f64>),
    Base64(String),
}

pub async fn embed(State(app): State<Arc<App>>, sent: Sent) -> Result<Response, ApiError> {
    let ((encoding, request, bytes), mut received) = sent.read(&app, begin_embedding).await?;
    let reserved = (received.reserved.take(), reserve(&app.budget, bytes)?);
    let vectors = encoding.told(&app, received).await?;
    let caller = encoding.caller;
    let write = move || {
        let data = vectors.into_iter().enumerate().map(|(index, numbers)| {
            let embedding = match request.encoding_format {
                EncodingFormat::Float => {
                    Vector::Float(numbers.into_iter().map(f64::from).collect())
                }
                EncodingFormat::Base64 => Vector::Base64(STANDARD.encode(bytes_of(&numbers))),
            };
            Embedding { object: "embedding", index, embedding }
        });
        let ignored: Vec<String> = request.rest.keys().cloned().collect();
        let response = encoding.respond(Embeddings { data: data.collect() }, &ignored);
        drop(reserved);
        Ok(response)
    };
    app.readers.run(caller, write).await
}

/// Reads a request, and takes its place in the queue; and the bytes of its vectors until they are sent.
fn begin_embedding(
    app: &App,
    body: &[u8],
    caller: Option<&Caller>,
) -> Result<(Encoding, EmbeddingRequest, usize), ApiError> {
    let request: EmbeddingRequest = request(body)?;
    let model = app.served()?.encoder(Kind::Encoder, request.model.as_deref())?;
    let width = model.width();
    if request.dimensions.is_some_and(|wanted| wanted != width) {
        let message = format!("{} makes vectors of {width} numbers", model.entry.id);
        return Err(ApiError::invalid("dimensions", message));
    }
    let texts: Vec<&str> = match &request.input {
        Inputs::Text(text) => vec![text.as_str()],
        Inputs::List(texts) => texts.iter().map(String::as_str).collect(),
    };
    let bytes = texts.len() * width * NUMBER_BYTES;
    let asked = Texts { field: "input", texts, side: request.input_type, query: "" };
    Ok((Encoding::read(app, caller, model, &asked)?, request, bytes))
}

#[derive(Debug, Deserialize)]
pub struct RerankRequest {
    model: Option<String>,
    query: String,
    documents: Vec<String>,
    /// The best ones that are wanted; all where it is not said.
    top_n: Option<usize>,
    #[serde(flatten)]
    rest: Fields,
}

pub async fn rerank(State(app): State<Arc<App>>, sent: Sent) -> Result<Response, ApiError> {
    let ((encoding, request), mut received) = sent.read(&app, begin_ranking).await?;
    let _reserved = received.reserved.take();
    let ranked = ranked(&encoding.told(&app, received).await?);
    let wanted = ranked.into_iter().take(request.top_n.unwrap_or(usize::MAX));
    let results = wanted
        .map(|(index, score)| json!({"index": index, "relevance_score": f64::from(score)}))
        .collect::<Value>();
    let ignored: Vec<String> = request.rest.keys().cloned().collect();
    Ok(encoding.respond(json!({"id": new_id("rerank"), "results": results}), &ignored))
}

/// Reads a request, and takes its place in the queue.
fn begin_ranking(
    app: &App,
    body: &[u8],
    caller: Option<&Caller>,
) -> Result<(Encoding, RerankRequest), ApiError> {
    let request: RerankRequest = request(body)?;
    if request.query.trim().is_empty() {
        return Err(ApiError::invalid("query", "query is empty"));
    }
    let model = app.served()?.encoder(Kind::Reranker, request.model.as_deref())?;
    let texts = request.documents.iter().map(String::as_str).collect();
    let asked = Texts { field: "documents", texts, side: Side::Document, query: &request.query };
    Ok((Encoding::read(app, caller, model, &asked)?, request))
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

    fn embedding(mut body: Value) -> Result<EmbeddingRequest, ApiError> {
        body["input"] = "a".into();
        request(body.to_string().as_bytes())
    }

    #[test]
    fn what_is_not_known_is_refused_by_name_or_listed() {
        let asked = embedding(json!({
            "model": "m", "encoding_format": "base64", "dimensions": 8, "user": "u", "input_type": "query", "zeta": 1
        }));
        let asked = asked.unwrap();
        assert_eq!(asked.encoding_format, EncodingFormat::Base64);
        assert_eq!(asked.input_type, Side::Query);
        assert_eq!(asked.dimensions, Some(8));
        assert_eq!(asked.rest.keys().collect::<Vec<_>>(), ["user", "zeta"]);
        for (name, value) in [
            ("encoding_format", json!("int8")),
            ("input_type", json!("clustering")),
            ("dimensions", json!(-1)),
            ("dimensions", json!("8")),
        ] {
            assert_eq!(embedding(json!({name: value})).unwrap_err().param.as_deref(), Some(name));
        }
    }

    fn ranking(change: Value) -> Result<RerankRequest, ApiError> {
        let mut body = json!({"query": "a", "documents": ["b", "c"]});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        request(body.to_string().as_bytes())
    }

    #[test]
    fn documents_are_texts() {
        let asked = ranking(json!({"top_n": 1, "zeta": 2})).unwrap();
        assert_eq!((asked.documents, asked.top_n), (vec!["b".to_owned(), "c".to_owned()], Some(1)));
        assert_eq!(asked.rest.keys().collect::<Vec<_>>(), ["zeta"]);
        for (change, param) in [
            (json!({"query": null}), "query"),
            (json!({"documents": "b"}), "documents"),
            (json!({"documents": ["b", 3]}), "documents[1]"),
            (json!({"documents": [{"text": "b"}]}), "documents[0]"),
            (json!({"top_n": -1}), "top_n"),
        ] {
            assert_eq!(ranking(change).unwrap_err().param.as_deref(), Some(param));
        }
    }
}
