//! The endpoint of embeddings, in OpenAI's form.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::audit::{About, Pending, Received};
use super::body::{Sent, reserve};
use super::encoders::ServedEncoder;
use super::error::ApiError;
use super::guard::{Caller, turn};
use super::queue::Place;
use super::request::fields::{Fields, listed, request};
use crate::digest::Sum;
use crate::encoder::{Sequence, Side};

/// What a number takes until it is sent: itself, as JSON, and its digits.
const NUMBER_BYTES: usize = 4 + size_of::<Value>() + 21;

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

/// A request whose texts were read, with its place in the queue.
struct Asked {
    request: EmbeddingRequest,
    model: Arc<ServedEncoder>,
    texts: Vec<Sequence>,
    /// The digest of everything that determines the vectors.
    digest: String,
    caller: u64,
    _place: Place,
}

pub async fn embed(State(app): State<Arc<App>>, sent: Sent) -> Result<Response, ApiError> {
    let (asked, mut received) = sent.read(&app, begin).await?;
    let numbers = asked.texts.len() * asked.model.width();
    let reserved = (received.reserved.take(), reserve(&app.budget, numbers * NUMBER_BYTES)?);
    let vectors = asked.told(&app, received).await?;
    let caller = asked.caller;
    let write = move || {
        let response = Json(asked.response(&vectors)).into_response();
        drop(reserved);
        Ok(response)
    };
    app.readers.run(caller, write).await
}

/// Reads a request, and takes its place in the queue.
fn begin(app: &App, body: &[u8], caller: Option<&Caller>) -> Result<Asked, ApiError> {
    let request: EmbeddingRequest = request(body)?;
    let model = app.served()?.encoder(request.model.as_deref())?.clone();
    let width = model.width();
    if request.dimensions.is_some_and(|wanted| wanted != width) {
        let message = format!("{} makes vectors of {width} numbers", model.entry.id);
        return Err(ApiError::invalid("dimensions", message));
    }
    let texts: Vec<&str> = match &request.input {
        Inputs::Text(text) => vec![text.as_str()],
        Inputs::List(texts) => texts.iter().map(String::as_str).collect(),
    };
    let side = request.input_type;
    let texts = model.read(side, &texts)?;
    let mut sum = Sum::default();
    sum.update(format!("{} {side:?}", model.entry.wardround.fingerprint).as_bytes());
    for text in &texts {
        sum.update(format!("{:?}{:?}", text.tokens, text.segments).as_bytes());
    }
    let (digest, place) = (sum.finish(), app.queue.enter(1, caller)?);
    Ok(Asked { request, model, texts, digest, caller: turn(caller), _place: place })
}

impl Asked {
    /// The vectors, with their lines in the audit trail, which gets their sum.
    ///
    /// # Errors
    /// Numbers that are not finite; a server that is cut off; a trail that cannot be written.
    async fn told(&self, app: &App, received: Received) -> Result<Vec<Vec<f32>>, ApiError> {
        let about = || About {
            model: self.model.entry.id.clone(),
            fingerprint: self.model.entry.wardround.fingerprint.clone(),
            request: self.digest.clone(),
            usage: self.usage(),
            ..About::default()
        };
        let mut pending = Pending::begin(&app.audit, received, &about()).await?;
        let side = self.request.input_type;
        let computed = self.model.vectors(app, self.caller, side, &self.texts).await;
        match &computed {
            Ok(vectors) => pending.done(About { output: output(vectors), ..about() }).await?,
            Err(error) => pending.failed(error.code.name, about()),
        }
        computed
    }

    fn usage(&self) -> Value {
        let tokens: usize = self.texts.iter().map(|text| text.tokens.len()).sum();
        json!({"prompt_tokens": tokens, "total_tokens": tokens})
    }

    fn response(&self, vectors: &[Vec<f32>]) -> Value {
        let embedding = |numbers: &Vec<f32>| match self.request.encoding_format {
            // With all digits, so that whoever reads a number in eight bytes and rounds to four has the same one.
            EncodingFormat::Float => numbers.iter().map(|number| f64::from(*number)).collect(),
            EncodingFormat::Base64 => Value::from(STANDARD.encode(bytes_of(numbers))),
        };
        let data = vectors.iter().enumerate().map(|(index, numbers)| {
            json!({"object": "embedding", "index": index, "embedding": embedding(numbers)})
        });
        let ignored: Vec<String> = self.request.rest.keys().cloned().collect();
        json!({
            "object": "list",
            "data": data.collect::<Value>(),
            "model": self.model.entry.id,
            "usage": self.usage(),
            "system_fingerprint": self.model.entry.wardround.fingerprint,
            "wardround": {"request": self.digest, "ignored": listed(&ignored)},
        })
    }
}

/// What the trail has of vectors.
fn output(vectors: &[Vec<f32>]) -> Value {
    let mut sum = Sum::default();
    vectors.iter().for_each(|numbers| sum.update(&bytes_of(numbers)));
    json!({"texts": vectors.len(), "sha256": sum.finish()})
}

fn bytes_of(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
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
}
