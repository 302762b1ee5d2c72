//! Answers that are made whole: what one takes counts in the budget until its client has read it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};

use crate::serve::app::App;
use crate::serve::budget::Reserved;
use crate::serve::error::{ApiError, Code};

/// What a connection takes at once; a shorter answer is not counted.
const PART: usize = 64 << 10;

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
    let (head, body) = response.into_parts();
    match to_bytes(body, length).await {
        Ok(rest) => Response::from_parts(head, Body::new(Held { rest, _reserved: reserved })),
        Err(error) => ApiError::new(Code::Internal, error.to_string()).into_response(),
    }
}

/// A body that is handed over in parts, each a copy: what is left is freed with the last one.
struct Held {
    rest: Bytes,
    _reserved: Reserved,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.rest.len().min(PART);
        let part = self.rest.split_to(length);
        Poll::Ready((length > 0).then(|| Ok(Frame::data(Bytes::copy_from_slice(&part)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;
    use crate::serve::budget::Budget;

    #[tokio::test]
    async fn an_answer_counts_until_its_last_part_is_taken_and_arrives_whole() {
        let budget = Budget::new(300 << 10);
        let answer: Vec<u8> = (0..200 << 10).map(|n: u32| n as u8).collect();
        let mut reserved = budget.open();
        reserved.grow(answer.len()).unwrap();
        let mut body = Held { rest: answer.clone().into(), _reserved: reserved };
        let mut read = Vec::new();
        for _ in 0..3 {
            read.extend(body.frame().await.unwrap().unwrap().into_data().unwrap());
            assert!(budget.open().grow(200 << 10).is_err());
        }
        assert_eq!(body.size_hint().exact(), Some(8 << 10));
        read.extend(body.frame().await.unwrap().unwrap().into_data().unwrap());
        assert!(body.is_end_stream() && body.frame().await.is_none());
        drop(body);
        assert_eq!(read, answer);
        budget.open().grow(300 << 10).unwrap();
    }
}
