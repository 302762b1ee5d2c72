//! Sends what answers a request: whole, or as server-sent events with keep-alive comments in between.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use super::reply::{Choice, Head, Own, Reply, Usage};
use crate::serve::app::{App, Phase};
use crate::serve::error::ApiError;
use crate::serve::request::decoding::Streaming;

/// The interval of keep-alive comments; proxies close connections that are silent for long.
const SILENCE: Duration = Duration::from_secs(10);
/// The writes of a stream without a pause. Each wakes the client, which costs more than a token: after them a stream is written at most
/// fifty times a second.
const FIRST_WRITES: usize = 8;
const PAUSE: Duration = Duration::from_millis(20);

/// What answers a request: a model, or a system. Dropping it stops the work.
pub trait Answering: Send + 'static {
    /// What comes next of the choices, a chunk each; none where the work has but begun. Cancel-safe.
    fn next(&mut self) -> impl Future<Output = Result<Vec<Choice>, ApiError>> + Send;

    fn is_done(&self) -> bool;

    fn head(&self) -> &Head;

    /// Of what has ended.
    fn used(&self) -> Usage;

    fn own(&self) -> Own;

    /// The last chunk is about to be sent.
    fn end(&mut self) -> impl Future<Output = Result<(), ApiError>> + Send;

    fn failed(&mut self, error: &ApiError);

    /// This is about to be sent of a stream.
    fn sent(&mut self, text: &str);

    /// The client of a stream is gone before its end.
    fn left(&mut self) {}

    /// What the choice of a whole response says otherwise than the sum of its chunks.
    fn settle(&self, _choice: &mut Choice) {}
}

/// The response, whole or as a stream.
pub async fn respond(
    app: &Arc<App>,
    mut answering: impl Answering,
    stream: Option<Streaming>,
) -> Result<Response, ApiError> {
    let Some(options) = stream else {
        let choices = finish(app, &mut answering).await?;
        let mut reply = answering.head().reply(false, choices);
        (reply.usage, reply.wardround) = (Some(answering.used()), Some(answering.own()));
        return Ok(Json(reply).into_response());
    };
    let streamed = Streamed {
        app: app.clone(),
        answering,
        options,
        has_begun: false,
        is_over: false,
        writes: 0,
        last: Instant::now(),
    };
    let events = stream::unfold(streamed, |mut streamed| async move {
        let event = streamed.event().await?;
        Some((Ok::<Bytes, Infallible>(Bytes::from(event)), streamed))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((headers, Body::from_stream(events)).into_response())
}

/// Waits until every choice has ended.
pub async fn finish(app: &App, answering: &mut impl Answering) -> Result<Vec<Choice>, ApiError> {
    let mut choices: BTreeMap<usize, Choice> = BTreeMap::new();
    while !answering.is_done() {
        let next = tokio::select! {
            next = answering.next() => next,
            () = cut(app) => Err(ApiError::draining()),
        };
        for choice in next.inspect_err(|error| answering.failed(error))? {
            match choices.get_mut(&choice.index) {
                Some(before) => Choice::add(before, choice),
                None => drop(choices.insert(choice.index, choice)),
            }
        }
    }
    answering.end().await?;
    let mut choices: Vec<Choice> = choices.into_values().collect();
    choices.iter_mut().for_each(|choice| answering.settle(choice));
    Ok(choices.into_iter().map(Choice::whole).collect())
}

struct Streamed<A: Answering> {
    app: Arc<App>,
    answering: A,
    options: Streaming,
    has_begun: bool,
    is_over: bool,
    writes: usize,
    last: Instant,
}

impl<A: Answering> Streamed<A> {
    /// The next events; `None` after the last one.
    async fn event(&mut self) -> Option<String> {
        while !self.is_over {
            let due = if self.writes < FIRST_WRITES { self.last } else { self.last + PAUSE };
            let next = tokio::select! {
                next = async {
                    sleep_until(due).await;
                    self.answering.next().await
                } => next,
                () = cut(&self.app) => Err(ApiError::draining()),
                // So that nobody takes a silent stream for a dead one.
                () = sleep(SILENCE) => {
                    let sign = if self.has_begun { ": working\n\n" } else { ": queued\n\n" };
                    self.answering.sent(sign);
                    return Some(sign.to_owned());
                }
            };
            let events = match next {
                Ok(choices) => self.chunks(choices).await,
                Err(error) => Err(error),
            };
            // After an error no `[DONE]` follows.
            let events = events.unwrap_or_else(|error| {
                self.is_over = true;
                self.answering.failed(&error);
                self.app.metrics.rejected(error.code);
                format!("data: {}\n\n", error.json())
            });
            if !events.is_empty() {
                self.answering.sent(&events);
                (self.writes, self.last) = (self.writes + 1, Instant::now());
                return Some(events);
            }
        }
        None
    }

    async fn chunks(&mut self, choices: Vec<Choice>) -> Result<String, ApiError> {
        self.has_begun = true;
        let is_done = self.answering.is_done();
        if is_done {
            self.answering.end().await?;
        }
        let head = self.answering.head();
        let chunks = choices.into_iter().map(|choice| head.reply(true, vec![choice]));
        let mut chunks: Vec<Reply> = chunks.collect();
        if is_done && self.options.include_usage == Some(true) {
            chunks
                .push(Reply { usage: Some(self.answering.used()), ..head.reply(true, Vec::new()) });
        }
        if let Some(last) = chunks.last_mut().filter(|_| is_done) {
            last.wardround = Some(self.answering.own());
        }
        self.is_over = is_done;
        let mut events: String =
            chunks.iter().map(|chunk| format!("data: {}\n\n", json!(chunk))).collect();
        if is_done {
            events.push_str("data: [DONE]\n\n");
        }
        Ok(events)
    }
}

impl<A: Answering> Drop for Streamed<A> {
    fn drop(&mut self) {
        if !self.is_over {
            self.answering.left();
        }
    }
}

/// Resolves when running requests must be aborted.
pub async fn cut(app: &App) {
    if app.phase.clone().wait_for(|phase| *phase == Phase::Cut).await.is_err() {
        // The sender is gone, so that it will never happen.
        std::future::pending::<()>().await;
    }
}
