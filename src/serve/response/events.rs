//! Sends what answers a request: whole, or as server-sent events with keep-alive comments in between.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::reply::{Choice, Reply};
use crate::serve::app::{App, Phase};
use crate::serve::audit::{About, Pending, Received};
use crate::serve::error::ApiError;

/// The interval of keep-alive comments; proxies close connections that are silent for long.
const SILENCE: Duration = Duration::from_secs(10);
/// The writes of a stream without a pause. Each wakes the client, which costs more than a token: after them a stream is written at most
/// fifty times a second.
const FIRST_WRITES: usize = 8;
const PAUSE: Duration = Duration::from_millis(20);

/// What answers a request: a model, or a system. Dropping it stops the work.
pub trait Answering: Send {
    /// What comes next of the choices: of a stream a chunk each, else each choice once, as a whole. Cancel-safe.
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Choice>, ApiError>>;

    fn is_done(&self) -> bool;

    /// `None` where the response is whole; `Some(true)`: the last chunk of its stream has the usage.
    fn stream(&self) -> Option<bool>;

    /// The response without its choices and what it says of all of them.
    fn head(&self) -> &Reply;

    /// What came of the request so far, and what its response has under `wardround`.
    fn outcome(&self) -> (About, Value);
}

/// The response, whole or as a stream.
pub async fn respond(
    app: &Arc<App>,
    answering: Box<dyn Answering>,
    received: Received,
) -> Result<Response, ApiError> {
    let stream = answering.stream();
    let mut work = Work::begin(app, answering, received).await?;
    if let Some(has_usage) = stream {
        return Ok(work.streamed(has_usage));
    }
    let choices = work.finish().await?;
    let (About { usage, .. }, own) = work.answering.outcome();
    let head = work.answering.head().clone();
    Ok(Json(Reply { choices, usage: Some(usage), wardround: Some(own), ..head }).into_response())
}

/// An answer that is worked on, with its lines in the audit trail.
pub struct Work {
    app: Arc<App>,
    pub answering: Box<dyn Answering>,
    pending: Pending,
    /// Of its stream: how often something was written, when last, and whether no more comes.
    writes: usize,
    last: Instant,
    is_over: bool,
}

impl Work {
    pub async fn begin(
        app: &Arc<App>,
        answering: Box<dyn Answering>,
        received: Received,
    ) -> Result<Work, ApiError> {
        let pending = Pending::begin(&app.audit, received, &answering.outcome().0).await?;
        let (app, last) = (app.clone(), Instant::now());
        Ok(Work { app, answering, pending, writes: 0, last, is_over: false })
    }

    /// Waits until every choice has ended.
    pub async fn finish(&mut self) -> Result<Vec<Choice>, ApiError> {
        let mut choices = Vec::new();
        while !self.answering.is_done() {
            let next = tokio::select! {
                next = self.answering.next() => next,
                () = cut(&self.app) => Err(ApiError::draining()),
            };
            choices.extend(self.told(next).await?);
        }
        choices.sort_by_key(|choice| choice.index);
        Ok(choices)
    }

    /// The same, once the audit trail has the end, where these are the last ones.
    async fn told(&mut self, next: Result<Vec<Choice>, ApiError>) -> Result<Vec<Choice>, ApiError> {
        let told = match &next {
            Ok(_) if self.answering.is_done() => {
                self.pending.done(self.answering.outcome().0).await
            }
            _ => Ok(()),
        };
        told.and(next).inspect_err(|error| {
            self.pending.failed(error.code.name, self.answering.outcome().0);
        })
    }

    fn streamed(self, has_usage: bool) -> Response {
        let events = stream::unfold(self, move |mut work| async move {
            let event = work.event(has_usage).await?;
            work.pending.sent(&event);
            Some((Ok::<Bytes, Infallible>(Bytes::from(event)), work))
        });
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
            (HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        (headers, Body::from_stream(events)).into_response()
    }

    /// The next events of a stream; `None` after the last one.
    async fn event(&mut self, has_usage: bool) -> Option<String> {
        while !self.is_over {
            let due = if self.writes < FIRST_WRITES { self.last } else { self.last + PAUSE };
            let next = tokio::select! {
                next = async {
                    sleep_until(due).await;
                    self.answering.next().await
                } => next,
                () = cut(&self.app) => Err(ApiError::draining()),
                // So that nobody takes a silent stream for a dead one.
                () = sleep(SILENCE) => return Some(": working\n\n".to_owned()),
            };
            // After an error no `[DONE]` follows.
            let events = self.told(next).await.map(|choices| self.chunks(choices, has_usage));
            let events = events.unwrap_or_else(|error| {
                self.is_over = true;
                format!("data: {}\n\n", error.json())
            });
            if !events.is_empty() {
                (self.writes, self.last) = (self.writes + 1, Instant::now());
                return Some(events);
            }
        }
        None
    }

    fn chunks(&mut self, choices: Vec<Choice>, has_usage: bool) -> String {
        let head = self.answering.head();
        let mut chunks: Vec<Reply> =
            choices.into_iter().map(|choice| head.chunk(vec![choice])).collect();
        self.is_over = self.answering.is_done();
        if self.is_over {
            let (About { usage, .. }, own) = self.answering.outcome();
            if has_usage {
                chunks.push(Reply { usage: Some(usage), ..head.chunk(Vec::new()) });
            }
            if let Some(last) = chunks.last_mut() {
                last.wardround = Some(own);
            }
        }
        let chunks = chunks.iter().map(|chunk| format!("data: {}\n\n", json!(chunk)));
        chunks.chain(self.is_over.then(|| "data: [DONE]\n\n".to_owned())).collect()
    }
}

/// Resolves when running requests must be aborted.
pub async fn cut(app: &App) {
    if app.phase.clone().wait_for(|phase| *phase == Phase::Cut).await.is_err() {
        // The sender is gone, so that it will never happen.
        std::future::pending::<()>().await;
    }
}
