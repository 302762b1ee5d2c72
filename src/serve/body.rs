//! Request bodies: taken under the server's limit and budget, and read by threads of their own alone, in rotation by caller.
//!
//! One budget is for what clients have sent and what is made of it: every body takes from it as it comes, and gives back when it is done with;
//! every answer that is made whole, until it is read.

use std::sync::Arc;

use axum::body::{Bytes, HttpBody, to_bytes};
use axum::extract::{FromRequest, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::app::App;
use super::audit::{Received, event};
use super::error::{ApiError, Code};
use super::guard::{Caller, turn};
use crate::audit::Event;

/// The most values of a JSON body. Each takes as much memory as seventy bytes of text, however short it is.
const MOST_VALUES: usize = 1 << 18;

/// What a byte of a body takes: itself, and two copies on its way to a prompt.
const COPIES: usize = 3;

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
        let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next());
        // A page of another site can send any other without being asked first.
        if !kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
            let message = "the content type is another than application/json";
            return Err(ApiError::new(Code::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let too_large =
            || ApiError::new(Code::BODY_TOO_LARGE, format!("the body has more than {most} bytes"));
        let mut reserved = reserve(&app.budget, 0)?;
        let collect = async {
            let mut bytes = Vec::new();
            while let Some(frame) = body.frame().await {
                let broken =
                    |_| ApiError::new(Code::INVALID_JSON, "the body could not be read to its end");
                let Ok(chunk) = frame.map_err(broken)?.into_data() else { continue };
                if bytes.len() + chunk.len() > most {
                    return Err(too_large());
                }
                reserved.merge(reserve(&app.budget, COPIES * chunk.len())?);
                bytes.extend_from_slice(&chunk);
            }
            Ok(bytes)
        };
        let bytes = timeout(limits.client_timeout, collect).await.map_err(|_| {
            let seconds = limits.client_timeout.as_secs();
            ApiError::new(Code::BODY_TIMEOUT, format!("the body did not come within {seconds} s"))
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
            Code::BODY_TOO_LARGE,
            format!("the body has more than {MOST_VALUES} values; send fewer at a time"),
        )),
    }
}

/// What a body or an answer takes of the server's budget, a permit a byte; it is given back on drop.
pub type Reserved = OwnedSemaphorePermit;

/// # Errors
/// A budget that is used up.
pub fn reserve(budget: &Arc<Semaphore>, bytes: usize) -> Result<Reserved, ApiError> {
    let taken = budget.clone().try_acquire_many_owned(permits(bytes));
    taken.map_err(|_| {
        let message = "the server's budget for bodies is used up; wait for answers, and read them";
        ApiError::new(Code::BUDGET_FULL, message).retry_after(2)
    })
}

fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// What a connection takes at once; a shorter answer is not counted.
const PART: usize = 64 << 10;

/// A long answer, with what it takes of the budget until the last byte is written.
struct Held {
    answer: Bytes,
    _reserved: Reserved,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.answer
    }
}

/// Middleware. A long answer takes of the budget until it is read, and waits for its part, while nothing new is taken. Streams have no length:
/// those of completions keep their place in the queue, those of systems count what waits.
pub async fn hold(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let length =
        response.body().size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let Some(length) = length.filter(|length| *length > PART) else { return response };
    let wanted = permits(length.min(app.options.limits.bodies_bytes));
    let Ok(reserved) = app.budget.clone().acquire_many_owned(wanted).await else { return response };
    let (head, body) = response.into_parts();
    let answer = to_bytes(body, length).await.unwrap_or_default();
    let held = Bytes::from_owner(Held { answer, _reserved: reserved });
    Response::from_parts(head, held.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        let read = |text: &str| refuse_many_values(text.as_bytes()).map_err(|error| error.code);
        let many = format!("[{}0]", "0,".repeat(MOST_VALUES));
        assert_eq!(read(&many), Err(Code::BODY_TOO_LARGE));
        assert_eq!(read(&many.replace(',', ":")), Err(Code::BODY_TOO_LARGE));
        assert_eq!(read(&format!("\"\\\"{many}\"")), Ok(()));
    }

    #[test]
    fn what_is_done_with_is_given_back() {
        let budget = Arc::new(Semaphore::new(600));
        let mut one = reserve(&budget, 0).unwrap();
        one.merge(reserve(&budget, 300).unwrap());
        let other = reserve(&budget, 300).unwrap();
        assert_eq!(reserve(&budget, 1).unwrap_err().code, Code::BUDGET_FULL);
        drop((one, other));
        assert_eq!(budget.available_permits(), 600);
        drop(reserve(&budget, 600).unwrap());
        assert!(reserve(&budget, usize::MAX).is_err());
    }

    #[test]
    fn an_answer_counts_until_its_last_part_is_gone() {
        let budget = Arc::new(Semaphore::new(300));
        let (answer, reserved) = (Bytes::from(vec![7; 200]), reserve(&budget, 200).unwrap());
        let mut whole = Bytes::from_owner(Held { answer, _reserved: reserved });
        let first = whole.split_to(150);
        drop(whole);
        assert!(reserve(&budget, 200).is_err());
        assert_eq!(first, [7; 150][..]);
        drop(first);
        drop(reserve(&budget, 300).unwrap());
    }
}
