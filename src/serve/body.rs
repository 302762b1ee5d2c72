//! Request bodies: read under the limit of their route and the server's budget, and parsed on blocking threads alone.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Form, FromRequest, Request};
use axum::http::{HeaderMap, Method, header};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::app::App;
use super::budget::{Reserved, VALUE_BYTES};
use super::error::{ApiError, Code};
use super::guard;
use super::request::fields::quoted;

/// The most bytes of the form of a login.
pub const LOGIN: usize = 4 << 10;
/// The most bytes of a form of feedback.
pub const FEEDBACK: usize = 32 << 10;
/// As many as `--max-body` says.
pub const WHOLE: usize = usize::MAX;
/// The most values of a JSON body. Each takes as much memory as seventy bytes of text, however short it is.
const MOST_VALUES: usize = 1 << 18;

/// The body of a request, of at most `MOST` bytes. It is the only way to a body: a handler that takes one has named its limit.
pub struct Sent<const MOST: usize> {
    pub headers: HeaderMap,
    bytes: Bytes,
    reserved: Reserved,
    /// Of the caller's readings; `None` for a caller without a name.
    reading: Option<OwnedSemaphorePermit>,
    app: Arc<App>,
}

impl<const MOST: usize> FromRequest<Arc<App>> for Sent<MOST> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Sent<MOST>, ApiError> {
        let limits = &app.options.limits;
        let most = MOST.min(limits.body_bytes);
        let load = guard::caller(&request).map(|caller| caller.load());
        let (parts, mut body) = request.into_parts();
        let too_large =
            || ApiError::new(Code::BodyTooLarge, format!("the body has more than {most} bytes"));
        let length =
            parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let length = length.and_then(|text| text.parse::<usize>().ok()).unwrap_or_default();
        if length > most {
            return Err(too_large());
        }
        let reading = match &load {
            None => None,
            Some(load) => match timeout(limits.body_timeout, load.reading()).await {
                Ok(reading) => reading,
                Err(_) => {
                    let message = "this key's other requests are still being read";
                    return Err(ApiError::new(Code::KeyLimit, message).retry_after(2));
                }
            },
        };
        let mut reserved = app.budget.open(load);
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
        let app = app.clone();
        Ok(Sent { headers: parts.headers, bytes: bytes.into(), reserved, reading, app })
    }
}

impl<const MOST: usize> Sent<MOST> {
    /// What `work` makes of the bytes, on a thread of its own; and what it holds of the budget, to be kept as long as the bytes are. If
    /// the future is dropped, the work still finishes.
    pub async fn parse<T: Send + 'static>(
        self,
        work: impl FnOnce(Bytes) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<(T, Reserved), ApiError> {
        let is_json = is_json(&media_type(&self.headers));
        let Sent { bytes, mut reserved, reading, app, .. } = self;
        let longest = app.served().map_or(0, super::models::Served::longest_text);
        let turn = app.turns.take(bytes.len().min(longest)).await;
        blocking(move || {
            if is_json {
                reserved.grow(VALUE_BYTES * count_values(&bytes)?)?;
            }
            let made = work(bytes)?;
            drop((reading, turn));
            Ok((made, reserved))
        })
        .await
    }

    /// The same of a body of JSON.
    ///
    /// # Errors
    /// Another media type; those of [`Sent::parse`].
    pub async fn parse_json<T: Send + 'static>(
        self,
        work: impl FnOnce(Bytes) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<(T, Reserved), ApiError> {
        let kind = media_type(&self.headers);
        if !is_json(&kind) {
            let message =
                format!("the content type is {}; expected application/json", quoted(&kind));
            return Err(ApiError::new(Code::UnsupportedMediaType, message));
        }
        self.parse(work).await
    }

    pub async fn form<T: DeserializeOwned + Send + 'static>(self) -> Result<T, ApiError> {
        self.form_as(Ok).await
    }

    /// What `work` makes of the fields of a form, on the thread that read them.
    pub async fn form_as<F: DeserializeOwned, T: Send + 'static>(
        self,
        work: impl FnOnce(F) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let headers = self.headers.clone();
        let read = |bytes: Bytes| {
            let mut request = Request::new(Body::from(bytes));
            *request.method_mut() = Method::POST;
            *request.headers_mut() = headers;
            // The bytes are at hand, so nothing is waited for.
            let form = Form::<F>::from_request(request, &()).now_or_never();
            let Some(Ok(Form(form))) = form else {
                let message = "the form lacks a field; load the page again";
                return Err(ApiError::new(Code::InvalidValue, message));
            };
            work(form)
        };
        Ok(self.parse(read).await?.0)
    }
}

/// The content type without its parameters, in lower case; empty if there is none.
pub fn media_type(headers: &HeaderMap) -> String {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = text.and_then(|text| text.split(';').next()).unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

fn is_json(kind: &str) -> bool {
    kind == "application/json" || kind.ends_with("+json")
}

/// The values of a JSON body, or a few more: what opens a list or an object, and what separates.
pub fn count_values(body: &[u8]) -> Result<usize, ApiError> {
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

/// Runs blocking work on a thread of its own. If the future is dropped, the work still finishes and its result is dropped.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(ApiError::new(Code::Internal, "the request failed; the server goes on")),
    }
}

#[cfg(test)]
mod tests {
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
}
