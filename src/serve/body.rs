//! Reads request bodies within the limits of size and time.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::error::{ApiError, Code};
use super::options::Limits;

/// The whole body of a JSON request.
///
/// # Errors
/// Another media type; too many bytes, also by the header alone; a timeout.
pub async fn read_json(
    headers: &HeaderMap,
    body: Body,
    limits: &Limits,
) -> Result<Bytes, ApiError> {
    let kind = media_type(headers);
    if kind != "application/json" && !kind.ends_with("+json") {
        let message = format!(
            "the content type is {}; expected application/json",
            super::request::fields::quoted(&kind)
        );
        return Err(ApiError::new(Code::UnsupportedMediaType, message));
    }
    read(headers, body, limits).await
}

/// The content type without its parameters, in lower case; empty if there is none.
pub fn media_type(headers: &HeaderMap) -> String {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = text.and_then(|text| text.split(';').next()).unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// The whole body.
///
/// # Errors
/// See [`read_json`].
pub async fn read(headers: &HeaderMap, body: Body, limits: &Limits) -> Result<Bytes, ApiError> {
    let too_large = || {
        let message = format!("the body has more than {} bytes", limits.body_bytes);
        ApiError::new(Code::BodyTooLarge, message)
    };
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if length
        .and_then(|text| text.parse().ok())
        .is_some_and(|length: u64| length > limits.body_bytes as u64)
    {
        return Err(too_large());
    }
    let collected = Limited::new(body, limits.body_bytes).collect();
    match tokio::time::timeout(limits.body_timeout, collected).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => {
            Err(ApiError::new(Code::InvalidJson, "the body could not be read to its end"))
        }
        Err(_) => {
            let seconds = limits.body_timeout.as_secs();
            Err(ApiError::new(
                Code::BodyTimeout,
                format!("the body did not come within {seconds} s"),
            ))
        }
    }
}
