//! Parses rerank requests.

use serde_json::{Map, Value};

use super::fields::{Fields, required, text, unknown, wrong_type};
use crate::serve::encoding::MOST_TEXTS;
use crate::serve::error::ApiError;

#[derive(Clone, Debug)]
pub struct RerankRequest {
    pub model: Option<String>,
    pub query: String,
    pub documents: Vec<String>,
    /// The best ones that are wanted; `None` for all.
    pub top_n: Option<usize>,
    pub returns_documents: bool,
    /// Whether pairs that are too long are cut.
    pub truncates: bool,
    /// Unknown fields.
    pub ignored: Vec<String>,
}

impl RerankRequest {
    pub fn read(body: &[u8]) -> Result<RerankRequest, ApiError> {
        let mut fields = Fields::parse(body)?;
        let query = required(fields.text("query")?, "query")?;
        if query.trim().is_empty() {
            return Err(ApiError::invalid("query", "query is empty"));
        }
        let list = match required(fields.take("documents"), "documents")? {
            Value::Array(list) if (1..=MOST_TEXTS).contains(&list.len()) => list,
            Value::Array(list) => {
                let message =
                    format!("documents has {} entries; expected 1 to {MOST_TEXTS}", list.len());
                return Err(ApiError::invalid("documents", message));
            }
            other => return Err(wrong_type("documents", &other, "an array of strings")),
        };
        let mut inside = Vec::new();
        let numbered = list.into_iter().enumerate();
        let documents = numbered
            .map(|(index, value)| document(&format!("documents[{index}]"), value, &mut inside));
        let documents = documents.collect::<Result<_, _>>()?;
        Ok(RerankRequest {
            model: fields.text("model")?,
            query,
            documents,
            top_n: fields.integer("top_n", 1..=i64::from(u32::MAX))?.map(|count| count as usize),
            returns_documents: fields.flag("return_documents")?.unwrap_or(true),
            truncates: fields.flag("truncate")?.unwrap_or(false),
            ignored: fields.rest().into_iter().chain(inside).collect(),
        })
    }
}

/// A string, or an object with one under `text`.
fn document(name: &str, value: Value, inside: &mut Vec<String>) -> Result<String, ApiError> {
    let mut object: Map<String, Value> = match value {
        Value::Object(object) => object,
        Value::String(text) => return Ok(text),
        other => return Err(wrong_type(name, &other, "a string, or an object with `text`")),
    };
    let of_text = format!("{name}.text");
    let found = text(&of_text, required(object.shift_remove("text"), &of_text)?)?;
    inside.extend(unknown(name, object));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(change: Value) -> Result<RerankRequest, ApiError> {
        let mut body = json!({"query": "a", "documents": ["b", {"text": "c", "title": "d"}]});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        RerankRequest::read(body.to_string().as_bytes())
    }

    #[test]
    fn documents_are_texts_or_objects_with_one() {
        let request = read(json!({"top_n": 1, "zeta": 2})).unwrap();
        assert_eq!(request.documents, ["b", "c"]);
        assert!(request.returns_documents && request.top_n == Some(1));
        assert_eq!(request.ignored, ["zeta", "documents[1].title"]);
        for (change, param) in [
            (json!({"query": " "}), "query"),
            (json!({"query": null}), "query"),
            (json!({"documents": []}), "documents"),
            (json!({"documents": "b"}), "documents"),
            (json!({"documents": ["b", 3]}), "documents[1]"),
            (json!({"documents": [{"title": "b"}]}), "documents[0].text"),
            (json!({"top_n": 0}), "top_n"),
        ] {
            assert_eq!(read(change).unwrap_err().param.as_deref(), Some(param));
        }
    }
}
