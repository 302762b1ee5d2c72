//! The endpoint of embeddings: texts to vectors, in OpenAI's form.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use super::app::App;
use super::body::Sent;
use super::encoders::{Asked, Encoding, Reader, refuse_count};
use super::error::ApiError;
use super::guard::Caller;
use super::models::Kind;
use super::request::fields::{self, Fields, MOST, Whole};
use crate::digest::Sum;
use crate::encoder::{Encoder, Side};

/// What a number takes until it is sent: itself, and its digits.
const NUMBER_BYTES: usize = 4 + 21;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct EmbeddingRequest {
    model: Option<String>,
    input: Inputs,
    #[serde(default)]
    input_type: InputType,
    /// The numbers of a vector, if they are not all of the model's.
    dimensions: Option<Whole<1, MOST>>,
    #[serde(default)]
    encoding_format: EncodingFormat,
    /// Whether texts that are too long are cut.
    #[serde(default)]
    truncate: bool,
    #[serde(flatten)]
    rest: Fields,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "is of another type; expected a string or an array of strings; token ids are not taken (LangChain: check_embedding_ctx_length=False)"
)]
enum Inputs {
    Text(String),
    List(Vec<String>),
}

/// Which side of a search the texts are on, as the clients of several services write it.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum InputType {
    #[default]
    #[serde(alias = "passage", alias = "search_document")]
    Document,
    #[serde(alias = "search_query")]
    Query,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum EncodingFormat {
    #[default]
    Float,
    Base64,
}

/// A request whose texts are read.
struct Begun {
    encoding: Encoding,
    is_base64: bool,
    numbers: usize,
    ignored: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Embeddings {
    data: Vec<Entry>,
}

#[derive(Serialize, JsonSchema)]
struct Entry {
    object: &'static str,
    index: usize,
    embedding: Embedding,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Embedding {
    Base64(String),
    #[serde(serialize_with = "exactly")]
    #[schemars(with = "Vec<f32>")]
    Numbers(Vec<f32>),
}

/// Each number with all its digits, so that whoever reads it in eight bytes and rounds to four has the same one.
fn exactly<S: Serializer>(numbers: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(numbers.iter().map(|number| f64::from(*number)))
}

pub async fn embed(State(app): State<Arc<App>>, sent: Sent) -> Result<Response, ApiError> {
    let (begun, mut received) = sent.read(&app, begin).await?;
    let Begun { encoding, is_base64, numbers, ignored } = begun;
    let mut reserved = received.reserved.take();
    reserved.iter_mut().try_for_each(|reserved| reserved.grow(numbers * NUMBER_BYTES))?;
    let vectors = encoding.told(&app, received, output).await?;
    let caller = encoding.caller;
    let write = move || {
        let data = vectors.into_iter().enumerate().map(|(index, vector)| {
            let embedding = match is_base64 {
                true => Embedding::Base64(STANDARD.encode(bytes_of(&vector))),
                false => Embedding::Numbers(vector),
            };
            Entry { object: "embedding", index, embedding }
        });
        let response = encoding.respond(Embeddings { data: data.collect() }, &ignored);
        drop(reserved);
        Ok(response)
    };
    app.readers.run(caller, write).await
}

/// Reads a request, and takes its place in the queue.
fn begin(app: &App, body: &[u8], caller: Option<&Caller>) -> Result<Begun, ApiError> {
    let request: EmbeddingRequest = fields::request(body)?;
    let model = app.served()?.encoder(Kind::Encoder, request.model.as_deref())?;
    let Reader::Encoder(encoder) = &*model.reader else { return Err(ApiError::failed()) };
    let dims = dims_of(encoder, &model.id, request.dimensions.map(Whole::count))?;
    let inputs = match request.input {
        Inputs::Text(text) => vec![text],
        Inputs::List(texts) => texts,
    };
    refuse_count("input", inputs.len())?;
    let side = match request.input_type {
        InputType::Document => Side::Document,
        InputType::Query => Side::Query,
    };
    let mut encoding = Encoding::new(model, Asked { side, dims }, "input", request.truncate);
    let numbers = inputs.len() * dims;
    for text in inputs {
        let bytes = if text.trim().is_empty() { 0 } else { text.len() };
        encoding.add(bytes, || encoder.sequence(side, &text))?;
    }
    Ok(Begun {
        encoding: encoding.admit(app, caller)?,
        is_base64: request.encoding_format == EncodingFormat::Base64,
        numbers,
        ignored: fields::names(&request.rest),
    })
}

/// What the audit trail has of vectors.
fn output(vectors: &[Vec<f32>]) -> Value {
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
            let message = format!("dimensions is {dims}; {id} makes vectors of {known} numbers");
            Err(ApiError::invalid("dimensions", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(mut body: Value) -> Result<EmbeddingRequest, ApiError> {
        body["input"] = "a".into();
        fields::request(body.to_string().as_bytes())
    }

    #[test]
    fn what_is_not_known_is_refused_by_name_or_listed() {
        let request = read(json!({
            "model": "m", "encoding_format": "base64", "dimensions": 8, "user": "u", "input_type": "query", "zeta": 1
        }));
        let request = request.unwrap();
        assert!(request.encoding_format == EncodingFormat::Base64 && !request.truncate);
        assert!(matches!(request.input_type, InputType::Query));
        assert_eq!(request.dimensions, Some(Whole(8)));
        assert_eq!(fields::names(&request.rest), ["user", "zeta"]);
        for (name, value) in [
            ("encoding_format", json!("int8")),
            ("input_type", json!("clustering")),
            ("dimensions", json!(0)),
            ("dimensions", json!("8")),
            ("truncate", json!("END")),
        ] {
            assert_eq!(read(json!({name: value})).unwrap_err().param.as_deref(), Some(name));
        }
    }
}
