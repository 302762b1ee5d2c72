//! One budget for what clients have sent and what is made of it: every body takes from it as it comes, and gives back when it is done with;
//! every answer that is made whole, until it is read.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use super::app::App;
use super::error::{ApiError, Code};

/// What a byte of a body takes: itself, and two copies on its way to a prompt.
const COPIES: usize = 3;
/// What a connection takes at once; a shorter answer is not counted.
const PART: usize = 64 << 10;

/// The budget of a server, in bytes; clones are the same one.
#[derive(Clone, Debug)]
pub struct Budget {
    most: usize,
    used: Arc<AtomicUsize>,
}

/// A part of the budget, which is given back on drop.
#[derive(Debug)]
pub struct Reserved {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    pub fn new(most: usize) -> Budget {
        Budget { most, used: Arc::default() }
    }

    /// Nothing yet.
    pub fn open(&self) -> Reserved {
        Reserved { budget: self.clone(), bytes: 0 }
    }
}

impl Reserved {
    /// Takes what so many bytes of a body need.
    ///
    /// # Errors
    /// A budget that is used up.
    pub fn grow_by_body(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.grow(COPIES.saturating_mul(bytes))
    }

    pub fn grow(&mut self, bytes: usize) -> Result<(), ApiError> {
        let fits = |now: usize| now.checked_add(bytes).filter(|sum| *sum <= self.budget.most);
        if self.budget.used.fetch_update(Relaxed, Relaxed, fits).is_err() {
            let message =
                "the server's budget for bodies is used up; wait for answers, and read them";
            return Err(ApiError::new(Code::BudgetFull, message).retry_after(2));
        }
        self.bytes += bytes;
        Ok(())
    }

    /// The same where what takes them is made already: then nothing else gets any.
    pub fn grow_beyond(&mut self, bytes: usize) {
        self.budget.used.fetch_add(bytes, Relaxed);
        self.bytes += bytes;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Relaxed);
    }
}

/// Middleware. Where the budget is used up, what can be asked for again is refused; what was worked for is sent, and nothing new is taken
/// meanwhile. Streams have no length: those of completions keep their place in the queue, those of systems count what waits.
pub async fn hold(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut reserved = app.budget.open();
    let is_repeatable = matches!(*request.method(), Method::GET | Method::HEAD);
    let response = next.run(request).await;
    let length =
        response.body().size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let Some(length) = length.filter(|length| *length > PART) else { return response };
    match reserved.grow(length) {
        Err(error) if is_repeatable => return error.into_response(),
        Err(_) => reserved.grow_beyond(length),
        Ok(()) => {}
    }
    let (mut head, body) = response.into_parts();
    match to_bytes(body, length).await {
        Ok(rest) => {
            head.headers.insert(header::CONTENT_LENGTH, length.into());
            Response::from_parts(head, in_parts(rest, reserved))
        }
        Err(error) => ApiError::new(Code::Internal, error.to_string()).into_response(),
    }
}

/// A body that is handed over in parts, each a copy: what is left is freed with the last one.
fn in_parts(rest: Bytes, reserved: Reserved) -> Body {
    let parts = stream::unfold((rest, reserved), |(mut rest, reserved)| async move {
        let part = rest.split_to(rest.len().min(PART));
        let copy = Bytes::copy_from_slice(&part);
        (!copy.is_empty()).then_some((Ok::<Bytes, Infallible>(copy), (rest, reserved)))
    });
    Body::from_stream(parts)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[test]
    fn what_is_done_with_is_given_back() {
        let budget = Budget::new(600);
        let mut one = budget.open();
        one.grow_by_body(100).unwrap();
        let mut other = budget.open();
        other.grow(300).unwrap();
        assert_eq!(budget.open().grow(1).unwrap_err().code, Code::BudgetFull);
        drop((one, other));
        assert_eq!(budget.used.load(Relaxed), 0);
        budget.open().grow(600).unwrap();
        assert!(budget.open().grow(usize::MAX).is_err());
        let mut made = budget.open();
        made.grow_beyond(700);
        assert!(budget.open().grow(1).is_err());
    }

    #[tokio::test]
    async fn an_answer_counts_until_its_last_part_is_taken_and_arrives_whole() {
        let budget = Budget::new(300 << 10);
        let answer: Vec<u8> = (0..200 << 10).map(|n: u32| n as u8).collect();
        let mut reserved = budget.open();
        reserved.grow(answer.len()).unwrap();
        let mut body = in_parts(answer.clone().into(), reserved);
        let mut read = Vec::new();
        for _ in 0..3 {
            read.extend(body.frame().await.unwrap().unwrap().into_data().unwrap());
            assert!(budget.open().grow(200 << 10).is_err());
        }
        read.extend(body.frame().await.unwrap().unwrap().into_data().unwrap());
        assert!(body.frame().await.is_none());
        drop(body);
        assert_eq!(read, answer);
        budget.open().grow(300 << 10).unwrap();
    }
}
