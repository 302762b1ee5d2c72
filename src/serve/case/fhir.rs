//! Reads the text of a note from FHIR: a DocumentReference, alone or in a Bundle, with inline text.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;
use sha1::{Digest, Sha1};

use crate::digest::hex;
use crate::serve::body::media_type;
use crate::serve::error::{ApiError, Code};
use crate::serve::request::fields::{Fields, quoted};

pub const MEDIA: &str = "application/fhir+json";

/// Padding is optional, since some writers omit it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a document says of itself that may be used, `None` where it need not say: any other code is one of those that must not be, as one
/// that was made in error or that another has replaced, or is not known here.
const USABLE: [(&str, &[Option<&str>]); 2] = [
    ("status", &[Some("current")]),
    (
        "docStatus",
        &[
            None,
            Some("preliminary"),
            Some("final"),
            Some("amended"),
            Some("corrected"),
            Some("appended"),
        ],
    ),
];
/// What changes the meaning of what it is in.
const MODIFIERS: [&str; 2] = ["modifierExtension", "implicitRules"];
const MADE_IN_ERROR: &str = "entered-in-error";

/// The note of a body.
///
/// # Errors
/// A body that is neither a DocumentReference nor a Bundle; no inline text, or several; a document that says that it is not to be used,
/// or whose text is not the one that it describes.
pub fn note(body: &[u8]) -> Result<String, ApiError> {
    let resource = Fields::parse(body)?.object();
    if let Some(modifier) = modifier(&resource) {
        let message = format!(
            "the body has a field {modifier}, which may turn what it says around, and none is known here: send what holds without it"
        );
        return Err(ApiError::invalid(modifier, message));
    }
    let texts = match resource["resourceType"].as_str() {
        Some("DocumentReference") => texts(&resource, "DocumentReference")?,
        Some("Bundle") => {
            let entries = resource["entry"].as_array().map_or(&[][..], Vec::as_slice);
            let mut all = Vec::new();
            for (index, entry) in entries.iter().enumerate() {
                let inner = &entry["resource"];
                let place = format!("Bundle.entry[{index}]");
                let refuse = |what: &str| {
                    let message = format!("{place} is {what}: it is not to be used");
                    ApiError::invalid(&place, message)
                };
                if entry["request"]["method"] == "DELETE" {
                    return Err(refuse("to be deleted"));
                }
                if entry["search"]["mode"] == "outcome" {
                    return Err(refuse("the outcome of a search"));
                }
                match inner["resourceType"] == "DocumentReference" {
                    true => all.extend(texts(inner, &format!("{place}.resource"))?),
                    // As the composition that the documents belong to.
                    false if inner["status"] == MADE_IN_ERROR => return Err(refuse(MADE_IN_ERROR)),
                    false => {}
                }
            }
            all
        }
        _ => {
            let message = "resourceType is neither DocumentReference nor Bundle";
            return Err(ApiError::invalid("resourceType", message));
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
            Err(ApiError::invalid("entry", message))
        }
    }
}

/// Something in it that changes the meaning of what it is in: whoever does not know it must not go on.
fn modifier(value: &Value) -> Option<&'static str> {
    match value {
        Value::Object(map) => map.iter().find_map(|(name, inner)| {
            let own = MODIFIERS.into_iter().find(|modifier| name == modifier);
            own.or_else(|| modifier(inner))
        }),
        Value::Array(list) => list.iter().find_map(modifier),
        _ => None,
    }
}

fn texts(resource: &Value, place: &str) -> Result<Vec<String>, ApiError> {
    for (name, codes) in USABLE {
        let code = &resource[name];
        let is_usable = match code {
            Value::Null => codes.contains(&None),
            code => codes.contains(&code.as_str()) && code.is_string(),
        };
        if !is_usable {
            let param = format!("{place}.{name}");
            let message = format!(
                "{param} is {}: the document is not to be used, or it cannot be told; send the one that holds",
                quoted(code.as_str().unwrap_or(&code.to_string()))
            );
            return Err(ApiError::invalid(&param, message));
        }
    }
    let contents = resource["content"].as_array().map_or(&[][..], Vec::as_slice);
    let mut texts = Vec::new();
    for (index, content) in contents.iter().enumerate() {
        let attachment = &content["attachment"];
        let (Some(kind), Some(data)) =
            (attachment["contentType"].as_str(), attachment["data"].as_str())
        else {
            continue;
        };
        if media_type(kind).as_deref() != Some("text/plain") {
            continue;
        }
        let wrong = |name: &str, what: &str| {
            let param = format!("{place}.content[{index}].attachment.{name}");
            ApiError::invalid(&param, format!("{param} {what}"))
        };
        let bytes = decoded(data).ok_or_else(|| wrong("data", "is not base64"))?;
        let given = |name: &str| attachment.get(name).filter(|value| !value.is_null());
        if given("size").is_some_and(|size| length(size) != Some(bytes.len() as u64)) {
            return Err(wrong("size", "is not the number of bytes of the data"));
        }
        let sum: [u8; 20] = Sha1::digest(&bytes).into();
        // Gateways of IHE carry the sum over in hexadecimal digits, as they are or in base64.
        let digits = hex(&sum);
        let is_sum = |hash: &Value| {
            hash.as_str().is_some_and(|hash| {
                hash.eq_ignore_ascii_case(&digits)
                    || decoded(hash).is_some_and(|hash| {
                        hash == sum || hash.eq_ignore_ascii_case(digits.as_bytes())
                    })
            })
        };
        if given("hash").is_some_and(|hash| !is_sum(hash)) {
            return Err(wrong("hash", "is not the SHA-1 of the data, in base64"));
        }
        texts.push(String::from_utf8(bytes).map_err(|_| wrong("data", "is not UTF-8"))?);
    }
    Ok(texts)
}

/// The bytes of base64, in which FHIR allows whitespace.
fn decoded(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text.split_ascii_whitespace().collect::<String>()).ok()
}

/// A number of bytes: from FHIR R5 on it is written as a string.
fn length(size: &Value) -> Option<u64> {
    size.as_u64().or_else(|| size.as_str()?.parse().ok())
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
        let url = json!({"resourceType": "DocumentReference", "status": "current",
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
        assert!(note(br#"{"resourceType": "Patient", "resourceType": "Bundle"}"#).is_err());
    }

    /// A good document with a field at its place: in the document, or in its attachment.
    fn with(place: &str, value: Value) -> Value {
        let mut document = document("text/plain", "RmV2ZXIu");
        match place.split_once('.') {
            Some((_, name)) => document["content"][0]["attachment"][name] = value,
            None => document[place] = value,
        }
        document
    }

    #[test]
    fn what_is_not_to_be_used_is_refused_alone_and_in_a_bundle() {
        for (place, value, said) in [
            ("status", json!("entered-in-error"), "status is `entered-in-error`"),
            ("status", json!("superseded"), "status is `superseded`"),
            ("status", json!(["entered-in-error"]), "status is "),
            ("status", json!("Current"), "status is `Current`"),
            ("status", Value::Null, "status is `null`"),
            ("docStatus", json!("deprecated"), "docStatus is `deprecated`"),
            ("docStatus", json!(["entered-in-error"]), "docStatus is "),
            ("implicitRules", json!("urn:not"), "has a field implicitRules"),
            ("docStatus", json!("entered-in-error"), "docStatus is `entered-in-error`"),
            (
                "modifierExtension",
                json!([{"url": "urn:not", "valueBoolean": true}]),
                "has a field modifierExtension",
            ),
            (
                "attachment.modifierExtension",
                json!([{"url": "urn:not"}]),
                "has a field modifierExtension",
            ),
            ("attachment.size", json!(5), "attachment.size is not the number of bytes"),
            ("attachment.size", json!("7"), "attachment.size is not the number of bytes"),
            ("attachment.size", json!(-6), "attachment.size is not the number of bytes"),
            (
                "attachment.hash",
                json!("AAAAAAAAAAAAAAAAAAAAAAAAAAA="),
                "attachment.hash is not the SHA-1",
            ),
            ("attachment.hash", json!("%"), "attachment.hash is not the SHA-1"),
            ("attachment.hash", json!(1), "attachment.hash is not the SHA-1"),
        ] {
            let document = with(place, value);
            let bundle = json!({"resourceType": "Bundle", "entry": [{"resource": document}]});
            for resource in [&document, &bundle] {
                let (code, message) = read(resource).unwrap_err();
                assert!(code == "invalid_value" && message.contains(said), "{message}");
            }
        }
        let good = with("status", json!("current"));
        for entry in [
            json!({"resource": good, "request": {"method": "DELETE"}}),
            json!({"resource": good, "search": {"mode": "outcome"}}),
        ] {
            let bundle = json!({"resourceType": "Bundle", "entry": [entry]});
            assert!(read(&bundle).unwrap_err().1.contains("not to be used"), "{bundle}");
        }
        // The SHA-1 of `Fever.`, in base64.
        for (place, value) in [
            ("status", json!("current")),
            ("docStatus", json!("final")),
            ("attachment.size", json!(6)),
            ("attachment.size", json!("6")),
            ("attachment.size", Value::Null),
            ("attachment.hash", json!("vRCmrEdS2IL7YiufMUsL4z6Rc54=")),
        ] {
            assert_eq!(read(&with(place, value)).unwrap(), "Fever.");
        }
    }
}
