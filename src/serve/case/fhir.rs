//! Reads the text of a note from FHIR: a DocumentReference, alone or in a Bundle, with inline text.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use crate::serve::error::{ApiError, Code};

/// Padding is optional, since some writers omit it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The note of a body.
///
/// # Errors
/// A body that is neither a DocumentReference nor a Bundle; no inline text, or several.
pub fn note(body: &[u8]) -> Result<String, ApiError> {
    let resource: Value = serde_json::from_slice(body).map_err(|error| {
        ApiError::new(Code::InvalidJson, format!("the body is not valid JSON: {error}"))
    })?;
    let texts = match resource["resourceType"].as_str() {
        Some("DocumentReference") => texts(&resource, "DocumentReference")?,
        Some("Bundle") => {
            let entries = resource["entry"].as_array().map_or(&[][..], Vec::as_slice);
            let mut all = Vec::new();
            for (index, entry) in entries.iter().enumerate() {
                let inner = &entry["resource"];
                if inner["resourceType"] == "DocumentReference" {
                    all.extend(texts(inner, &format!("Bundle.entry[{index}].resource"))?);
                }
            }
            all
        }
        _ => {
            let message = "resourceType is neither DocumentReference nor Bundle";
            return Err(ApiError::of(Code::InvalidValue, "resourceType", message));
        }
    };
    match texts.len() {
        1 => Ok(texts.into_iter().next().unwrap_or_default()),
        0 => Err(ApiError::of(
            Code::NoInlineText,
            "content.attachment.data",
            "no attachment has its text inside: contentType text/plain with base64 in data. Addresses are not fetched",
        )),
        several => {
            let message = format!("{several} texts are in it; send one note at a time");
            Err(ApiError::of(Code::InvalidValue, "entry", message))
        }
    }
}

/// The texts of one DocumentReference.
fn texts(resource: &Value, place: &str) -> Result<Vec<String>, ApiError> {
    let contents = resource["content"].as_array().map_or(&[][..], Vec::as_slice);
    let mut texts = Vec::new();
    for (index, content) in contents.iter().enumerate() {
        let attachment = &content["attachment"];
        let (Some(kind), Some(data)) =
            (attachment["contentType"].as_str(), attachment["data"].as_str())
        else {
            continue;
        };
        if !is_plain_text(kind) {
            continue;
        }
        let param = format!("{place}.content[{index}].attachment.data");
        let wrong =
            |what: &str| ApiError::of(Code::InvalidValue, &param, format!("{param} {what}"));
        // FHIR allows whitespace in base64.
        let data: String = data.split_ascii_whitespace().collect();
        let bytes = BASE64.decode(data).map_err(|_| wrong("is not base64"))?;
        texts.push(String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8"))?);
    }
    Ok(texts)
}

/// Whether a content type is plain text in UTF-8 or ASCII.
fn is_plain_text(kind: &str) -> bool {
    let mut parts = kind.split(';').map(str::trim);
    let is_text = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("text/plain"));
    is_text
        && parts.all(|parameter| match parameter.split_once('=') {
            Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
                let value = value.trim().trim_matches('"');
                ["utf-8", "us-ascii"].iter().any(|known| known.eq_ignore_ascii_case(value))
            }
            _ => true,
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(kind: &str, data: &str) -> Value {
        json!({"resourceType": "DocumentReference", "status": "current",
            "content": [{"attachment": {"contentType": kind, "data": data}}]})
    }

    fn read(resource: &Value) -> Result<String, (&'static str, String)> {
        note(resource.to_string().as_bytes()).map_err(|error| (error.code.name(), error.message))
    }

    #[test]
    fn the_text_inside_a_document_or_a_bundle_is_the_note() {
        // "Fever. Grüße" with a line break in the middle and without padding.
        let inline = document("text/plain; charset=UTF-8", "RmV2ZXIu\nIEdyw7zDn2U");
        assert_eq!(read(&inline).unwrap(), "Fever. Grüße");
        let patient = json!({"resource": {"resourceType": "Patient"}});
        let bundle = json!({"resourceType": "Bundle", "entry": [patient, {"resource": inline}]});
        assert_eq!(read(&bundle).unwrap(), "Fever. Grüße");
        let two = json!({"resourceType": "Bundle", "entry": [{"resource": inline}, {"resource": inline}]});
        assert!(read(&two).unwrap_err().1.starts_with("2 texts"));
    }

    #[test]
    fn what_has_no_text_inside_is_said_so_and_nothing_is_fetched() {
        let url = json!({"resourceType": "DocumentReference",
            "content": [{"attachment": {"contentType": "text/plain", "url": "http://ehr.example/Binary/1"}}]});
        for resource in [
            url,
            document("application/pdf", "JVBERg=="),
            document("text/plain; charset=iso-8859-1", "5A=="),
            json!({"resourceType": "Bundle"}),
        ] {
            assert_eq!(read(&resource).unwrap_err().0, "no_inline_text", "{resource}");
        }
        assert_eq!(read(&json!({"resourceType": "Patient"})).unwrap_err().0, "invalid_value");
        assert!(read(&document("text/plain", "%")).unwrap_err().1.ends_with("is not base64"));
        assert!(read(&document("text/plain", "/w==")).unwrap_err().1.ends_with("is not UTF-8"));
        assert!(note(b"{").is_err());
    }
}
