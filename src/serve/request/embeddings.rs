//! Parses embedding requests.

use super::completions::{TextPrompt, texts};
use super::fields::Fields;
use crate::encoder::Side;
use crate::serve::encoding::MOST_TEXTS;
use crate::serve::error::ApiError;

/// What `input_type` may be, as the clients of several services write it.
const SIDES: [(&str, Side); 5] = [
    ("document", Side::Document),
    ("query", Side::Query),
    ("passage", Side::Document),
    ("search_document", Side::Document),
    ("search_query", Side::Query),
];

#[derive(Clone, Debug)]
pub struct EmbeddingRequest {
    pub model: Option<String>,
    pub inputs: Vec<TextPrompt>,
    /// Which side of a search the texts are on.
    pub side: Side,
    /// The numbers of a vector, if they are not all of the model's.
    pub dims: Option<usize>,
    pub is_base64: bool,
    /// Whether texts that are too long are cut.
    pub truncates: bool,
    /// Fields without effect, but known.
    pub without_effect: Vec<&'static str>,
    /// Unknown fields.
    pub ignored: Vec<String>,
}

impl EmbeddingRequest {
    pub fn read(body: &[u8]) -> Result<EmbeddingRequest, ApiError> {
        let mut fields = Fields::parse(body)?;
        let invalid = |name, given: &str, expected: &str| {
            let given = super::fields::quoted(given);
            Err(ApiError::invalid(name, format!("{name} is {given}; expected {expected}")))
        };
        let side = match fields.text("input_type")? {
            None => Side::Document,
            Some(given) => match SIDES.iter().find(|(name, _)| *name == given) {
                Some((_, side)) => *side,
                None => return invalid("input_type", &given, "document or query"),
            },
        };
        let is_base64 = match fields.text("encoding_format")?.as_deref() {
            None | Some("float") => false,
            Some("base64") => true,
            Some(other) => return invalid("encoding_format", other, "float or base64"),
        };
        Ok(EmbeddingRequest {
            model: fields.text("model")?,
            inputs: texts("input", fields.take("input"), MOST_TEXTS)?,
            side,
            dims: fields.integer("dimensions", 1..=i64::from(u32::MAX))?.map(|dims| dims as usize),
            is_base64,
            truncates: fields.flag("truncate")?.unwrap_or(false),
            without_effect: fields.take("user").map(|_| "user").into_iter().collect(),
            ignored: fields.rest(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(mut body: Value) -> Result<EmbeddingRequest, ApiError> {
        body["input"] = "a".into();
        EmbeddingRequest::read(body.to_string().as_bytes())
    }

    #[test]
    fn what_is_not_known_is_refused_by_name_or_listed() {
        let request = read(json!({
            "model": "m", "encoding_format": "base64", "dimensions": 8, "user": "u", "input_type": "query", "zeta": 1
        }));
        let request = request.unwrap();
        assert!(request.is_base64 && !request.truncates && request.side == Side::Query);
        assert_eq!((request.dims, request.without_effect), (Some(8), vec!["user"]));
        assert_eq!(request.ignored, ["zeta"]);
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
