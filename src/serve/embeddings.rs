//! The endpoint of embeddings: texts to vectors, in OpenAI's form.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::app::App;
use super::audit::Told;
use super::body::{Sent, blocking};
use super::completion::{check, refuse_ignored};
use super::encoders::{Asked, Reader, lost};
use super::encoding::{Client, Encoding, respond};
use super::error::ApiError;
use super::guard::{Asking, Caller};
use super::models::Kind;
use super::request::completions::TextPrompt;
use super::request::embeddings::EmbeddingRequest;
use crate::digest::Sum;
use crate::encoder::Encoder;

pub const PATH: &str = "/v1/embeddings";

/// The most numbers of a response.
const MOST_NUMBERS: usize = 1 << 22;
/// What a number takes until it is sent: itself, and its digits.
const NUMBER_BYTES: usize = 4 + 21;

/// A request whose texts are read.
pub struct Begun {
    pub encoding: Encoding,
    is_base64: bool,
    numbers: usize,
    ignored: Vec<String>,
}

/// The body of a response.
#[derive(Serialize)]
struct Body {
    object: &'static str,
    data: Vec<Entry>,
    model: String,
    usage: Value,
    system_fingerprint: String,
    wardround: Value,
}

#[derive(Serialize)]
struct Entry {
    object: &'static str,
    index: usize,
    embedding: Embedding,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Embedding {
    Base64(String),
    #[serde(serialize_with = "exactly")]
    Numbers(Vec<f32>),
}

/// Each number with all its digits, so that whoever reads it in eight bytes and rounds to four has the same one.
fn exactly<S: Serializer>(numbers: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(numbers.iter().map(|number| f64::from(*number)))
}

pub async fn embed(
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
    let ((begun, input), mut reserved) = sent.parse_json(read).await?;
    let Begun { mut encoding, is_base64, numbers, ignored } = begun;
    reserved.grow(numbers * NUMBER_BYTES)?;
    let vectors = encoding.told(&app, Client { who, path: PATH, input }, output).await?;
    let body = move || {
        let data = vectors.into_iter().enumerate().map(|(index, vector)| {
            let embedding = match is_base64 {
                true => Embedding::Base64(STANDARD.encode(bytes_of(&vector))),
                false => Embedding::Numbers(vector),
            };
            Entry { object: "embedding", index, embedding }
        });
        let body = Body {
            object: "list",
            data: data.collect(),
            model: encoding.model.id.clone(),
            usage: encoding.usage(),
            system_fingerprint: encoding.model.fingerprint.clone(),
            wardround: encoding.own_fields(&ignored),
        };
        let response = respond(&body, &ignored);
        drop(reserved);
        response
    };
    blocking(body).await
}

/// Reads a request, and takes its place in the queue.
pub fn begin(app: &App, body: &[u8], caller: Option<&Caller>) -> Result<Begun, ApiError> {
    let request = EmbeddingRequest::read(body)?;
    refuse_ignored(app, &request.ignored)?;
    let model = app.served()?.encoder(Kind::Encoder, request.model.as_deref())?;
    let Reader::Encoder(encoder) = &*model.reader else { return Err(lost()) };
    let dims = dims_of(encoder, &model.id, request.dims)?;
    let numbers = request.inputs.len() * dims;
    if numbers > MOST_NUMBERS {
        let message = format!(
            "the response would have {numbers} numbers; at most {MOST_NUMBERS} are sent: ask for fewer inputs or dimensions at a time"
        );
        return Err(ApiError::invalid("input", message));
    }
    let side = request.side;
    let mut encoding = Encoding::new(model, Asked { side, dims }, "input", request.truncates);
    for input in request.inputs {
        match input {
            TextPrompt::Text(text) => {
                let bytes = if text.trim().is_empty() { 0 } else { text.len() };
                encoding.add(bytes, || encoder.sequence(side, &text))?;
            }
            TextPrompt::Ids(ids) => {
                encoding.add(ids.len(), || encoder.sequence_of_ids(side, ids))?;
            }
        }
    }
    request.without_effect.iter().for_each(|name| app.metrics.ignored(name));
    let without_effect = request.without_effect.iter().map(ToString::to_string);
    Ok(Begun {
        encoding: encoding.admit(app, caller)?,
        is_base64: request.is_base64,
        numbers,
        ignored: request.ignored.into_iter().chain(without_effect).collect(),
    })
}

/// What the audit trail has of vectors.
pub fn output(vectors: &[Vec<f32>]) -> Value {
    let mut sum = Sum::default();
    vectors.iter().for_each(|vector| sum.update(&bytes_of(vector)));
    json!({"vectors": vectors.len(), "sha256": sum.finish()})
}

fn bytes_of(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The numbers of a vector that a request asks for.
fn dims_of(encoder: &Encoder, id: &str, wanted: Option<usize>) -> Result<usize, ApiError> {
    let widths = encoder.widths();
    match wanted {
        None => Ok(encoder.width()),
        Some(dims) if widths.contains(&dims) => Ok(dims),
        Some(dims) => {
            let known: Vec<String> = widths.iter().map(usize::to_string).collect();
            let known = known.join(", ");
            let problem = match widths.len() {
                1 => format!(
                    "{id} makes vectors of {known} numbers, and is not made for shorter ones"
                ),
                _ => format!("{id} makes vectors of {known} numbers"),
            };
            Err(ApiError::invalid("dimensions", format!("dimensions is {dims}; {problem}")))
        }
    }
}
