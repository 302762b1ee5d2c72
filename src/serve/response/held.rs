//! Answers that are made whole: what one takes counts in the budget until its client has read it.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::stream;

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
    use crate::serve::budget::Budget;

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
