//! Request bodies: taken under the server's limit and budget, and read by threads of their own alone, in rotation by caller.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::app::App;
use super::budget::Reserved;
use super::error::{ApiError, Code};
use super::guard::{Caller, turn};
use super::request::fields::quoted;
use crate::audit::Input;

/// The most values of a JSON body. Each takes as much memory as seventy bytes of text, however short it is.
const MOST_VALUES: usize = 1 << 18;

/// The body of a request. It is the only way to a body.
pub struct Sent {
    bytes: Vec<u8>,
    reserved: Reserved,
}

impl FromRequest<Arc<App>> for Sent {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Sent, ApiError> {
        let limits = &app.options.limits;
        let most = limits.body_bytes;
        let (parts, mut body) = request.into_parts();
        refuse_other_kinds(&parts.headers)?;
        let too_large =
            || ApiError::new(Code::BodyTooLarge, format!("the body has more than {most} bytes"));
        let length =
            parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let length = length.and_then(|text| text.parse::<usize>().ok()).unwrap_or_default();
        if length > most {
            return Err(too_large());
        }
        let mut reserved = app.budget.open();
        let collect = async {
            let mut bytes = Vec::with_capacity(length.min(64 << 10));
            while let Some(frame) = body.frame().await {
                let broken =
                    |_| ApiError::new(Code::InvalidJson, "the body could not be read to its end");
                let Ok(chunk) = frame.map_err(broken)?.into_data() else { continue };
                if bytes.len() + chunk.len() > most {
                    return Err(too_large());
                }
                reserved.grow_by_body(chunk.len())?;
                bytes.extend_from_slice(&chunk);
            }
            Ok(bytes)
        };
        let bytes = timeout(limits.body_timeout, collect).await.map_err(|_| {
            let seconds = limits.body_timeout.as_secs();
            ApiError::new(Code::BodyTimeout, format!("the body did not come within {seconds} s"))
        })??;
        Ok(Sent { bytes, reserved })
    }
}

impl Sent {
    /// What `begin` makes of it, on a thread of its own when it is the caller's turn; what the audit trail has of it, and what it takes of the
    /// budget, to be kept as long as the trail keeps it.
    ///
    /// # Errors
    /// A server that can answer nothing now; a body of too many values; those of `begin`.
    pub async fn read<T: Send + 'static>(
        self,
        app: &Arc<App>,
        caller: Option<Caller>,
        begin: impl FnOnce(&App, &[u8], Option<&Caller>) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<(T, Input, Reserved), ApiError> {
        app.served()?;
        app.audit.check()?;
        let Sent { bytes, reserved } = self;
        let (turn, reading) = (turn(caller.as_ref()), app.clone());
        let read = move || {
            count_values(&bytes)?;
            let begun = begin(&reading, &bytes, caller.as_ref())?;
            Ok((begun, reading.audit.input(&bytes), reserved))
        };
        app.readers.run(turn, read).await
    }
}

/// # Errors
/// Bytes that are not the body's own, as those of a compression; another media type than JSON, or another character set than UTF-8.
fn refuse_other_kinds(headers: &HeaderMap) -> Result<(), ApiError> {
    let given = |name| headers.get_all(name).into_iter().map(|value| value.to_str().unwrap_or("?"));
    let mut codings =
        given(header::CONTENT_ENCODING).flat_map(|value| value.split(',')).map(str::trim);
    let is_one = |name: &&str| !name.is_empty() && !name.eq_ignore_ascii_case("identity");
    if let Some(coding) = codings.find(is_one) {
        let message = format!("the content encoding is {}; send the body as it is", quoted(coding));
        return Err(ApiError::new(Code::UnsupportedEncoding, message));
    }
    let mut kinds = given(header::CONTENT_TYPE);
    let kind = kinds.next().unwrap_or_default();
    if is_json(kind) && kinds.next().is_none() {
        return Ok(());
    }
    let kind = quoted(kind);
    let message = format!("the content type is {kind}; expected application/json, in UTF-8");
    Err(ApiError::new(Code::UnsupportedMediaType, message))
}

/// Whether a content type is that of JSON, whose text is in UTF-8 or in ASCII, which is a part of it.
fn is_json(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
    let is_utf8 = parts.all(|parameter| match parameter.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            let value = value.trim().trim_matches('"');
            ["utf-8", "utf8", "us-ascii"].iter().any(|known| known.eq_ignore_ascii_case(value))
        }
        _ => true,
    });
    is_utf8 && (kind == "application/json" || kind.ends_with("+json"))
}

/// The values of a JSON body, or a few more: what opens a list or an object, and what separates.
///
/// # Errors
/// More than a body may have.
fn count_values(body: &[u8]) -> Result<usize, ApiError> {
    let (mut count, mut in_string, mut is_escaped) = (1, false, false);
    for byte in body {
        match (in_string, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_string = !in_string,
            (false, b',' | b'[' | b'{' | b':') => count += 1,
            _ => {}
        }
    }
    match count <= MOST_VALUES {
        true => Ok(count),
        false => Err(ApiError::new(
            Code::BodyTooLarge,
            format!("the body has more than {MOST_VALUES} values; send fewer at a time"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        let count = |text: &str| count_values(text.as_bytes()).unwrap();
        assert!(count(r#"{"a": [1, 2], "b": "x"}"#) >= 5);
        assert_eq!(count(r#""a,b,[{:\",,\\""#), 1);
        let many = format!("[{}0]", "0,".repeat(MOST_VALUES));
        assert_eq!(count_values(many.as_bytes()).unwrap_err().code, Code::BodyTooLarge);
        assert!(count_values(format!("\"{many}\"").as_bytes()).is_ok());
    }

    #[test]
    fn a_body_is_as_it_is_and_its_text_in_utf_8() {
        let read = |headers: &[(HeaderName, &'static str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(name, HeaderValue::from_static(value));
            }
            refuse_other_kinds(&map).map_err(|error| error.code)
        };
        let kind = |text| read(&[(header::CONTENT_TYPE, text)]);
        for text in [
            "application/json",
            "Application/JSON; format=flowed; Charset=\"UTF-8\"",
            "application/problem+json;charset=utf8",
            "application/json; charset=us-ascii",
        ] {
            assert_eq!(kind(text), Ok(()), "{text}");
        }
        for charset in ["iso-2022-jp", "utf-16le", "iso-8859-1", "utf-7", ""] {
            let text: &str = format!("application/json; charset={charset}").leak();
            assert_eq!(kind(text), Err(Code::UnsupportedMediaType), "{text}");
        }
        for text in ["", "text/plain", "application/x-www-form-urlencoded"] {
            assert_eq!(kind(text), Err(Code::UnsupportedMediaType), "{text}");
        }
        let json = (header::CONTENT_TYPE, "application/json");
        assert_eq!(read(&[json.clone(), json.clone()]), Err(Code::UnsupportedMediaType));
        let coded = |coding| read(&[json.clone(), (header::CONTENT_ENCODING, coding)]);
        assert_eq!(coded("Identity, "), Ok(()));
        for coding in ["gzip", "x-custom", "identity, gzip"] {
            assert_eq!(coded(coding), Err(Code::UnsupportedEncoding), "{coding}");
        }
    }
}
