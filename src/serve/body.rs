//! Request bodies: taken under the server's limit and budget, and read by threads of their own alone, in rotation by caller.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use axum::http::header;
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::app::App;
use super::audit::{Received, event};
use super::budget::Reserved;
use super::error::{ApiError, Code};
use super::guard::{Caller, turn};
use crate::audit::Event;

/// The most values of a JSON body. Each takes as much memory as seventy bytes of text, however short it is.
const MOST_VALUES: usize = 1 << 18;

/// The body of a request, and who sent it. It is the only way to a body.
pub struct Sent {
    bytes: Vec<u8>,
    reserved: Reserved,
    caller: Option<Caller>,
    begun: Event,
}

impl FromRequest<Arc<App>> for Sent {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Sent, ApiError> {
        let limits = &app.options.limits;
        let most = limits.body_bytes;
        let (parts, mut body) = request.into_parts();
        let given = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let kind = given(header::CONTENT_TYPE).unwrap_or_default().split(';').next();
        // A page of another site can send any other without being asked first.
        if !kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
            let message = "the content type is another than application/json";
            return Err(ApiError::new(Code::UnsupportedMediaType, message));
        }
        let too_large =
            || ApiError::new(Code::BodyTooLarge, format!("the body has more than {most} bytes"));
        let length = given(header::CONTENT_LENGTH).and_then(|text| text.parse::<usize>().ok());
        let length = length.unwrap_or_default();
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
        let begun = event("begun", &parts.extensions).with("path", parts.uri.path());
        Ok(Sent { bytes, reserved, caller: parts.extensions.get().cloned(), begun })
    }
}

impl Sent {
    /// What `begin` makes of it, on a thread of its own when it is the caller's turn; and what the audit trail has of it.
    ///
    /// # Errors
    /// A server that can answer nothing now; a body of too many values; those of `begin`.
    pub async fn read<T: Send + 'static>(
        self,
        app: &Arc<App>,
        begin: impl FnOnce(&App, &[u8], Option<&Caller>) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<(T, Received), ApiError> {
        app.served()?;
        app.audit.check()?;
        let Sent { bytes, reserved, caller, begun } = self;
        let (turn, reading) = (turn(caller.as_ref()), app.clone());
        let read = move || {
            refuse_many_values(&bytes)?;
            let made = begin(&reading, &bytes, caller.as_ref())?;
            let input = reading.audit.input(&bytes);
            Ok((made, Received { begun, input, reserved: Some(reserved) }))
        };
        app.readers.run(turn, read).await
    }
}

/// Counts the values of a JSON body, or a few more: what opens a list or an object, and what separates.
///
/// # Errors
/// More than a body may have.
fn refuse_many_values(body: &[u8]) -> Result<(), ApiError> {
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
        true => Ok(()),
        false => Err(ApiError::new(
            Code::BodyTooLarge,
            format!("the body has more than {MOST_VALUES} values; send fewer at a time"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        let read = |text: &str| refuse_many_values(text.as_bytes()).map_err(|error| error.code);
        let many = format!("[{}0]", "0,".repeat(MOST_VALUES));
        assert_eq!(read(&many), Err(Code::BodyTooLarge));
        assert_eq!(read(&many.replace(',', ":")), Err(Code::BodyTooLarge));
        assert_eq!(read(&format!("\"\\\"{many}\"")), Ok(()));
    }
}
