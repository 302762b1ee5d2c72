//! Server-sent events: streams the chunks of a response, with keep-alive comments in between.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::answer::{Answer, Step};
use crate::serve::app::{App, Phase};
use crate::serve::audit::{Pending, Sent, Told};
use crate::serve::budget::Reserved;
use crate::serve::error::{ApiError, Code};
use crate::serve::generation::{ChoiceEvent, Generation};
use crate::serve::request::decoding::Streaming;

/// The interval of keep-alive comments; proxies close connections that are silent for long.
pub const SILENCE: Duration = Duration::from_secs(10);

/// An event with a JSON object.
pub fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// The events of chunks; `last` are our own fields in the last of a stream.
pub fn written(mut chunks: Vec<Value>, last: Option<Value>) -> String {
    let end = if last.is_some() { "data: [DONE]\n\n" } else { "" };
    if let (Some(chunk), Some(own_fields)) = (chunks.last_mut(), last) {
        chunk["wardround"] = own_fields;
    }
    chunks.iter().map(data).collect::<String>() + end
}

/// A comment, so that nobody takes a silent stream for a dead one.
pub fn sign_of_life(has_begun: bool) -> String {
    format!(": {}\n\n", if has_begun { "working" } else { "queued" })
}

/// The source of a stream's events: a completion, or a case of a system.
pub trait EventSource: Send + 'static {
    /// The next event; `None` after the last one. When the client disconnects, the source is dropped.
    fn next(&mut self) -> impl Future<Output = Option<String>> + Send;

    /// The client is gone before the last event, and got so much: what the audit trail is told.
    fn left(&mut self, sent: Sent);
}

/// A source and what was sent of it.
struct Open<S: EventSource> {
    source: S,
    sent: Sent,
    is_over: bool,
}

impl<S: EventSource> Drop for Open<S> {
    fn drop(&mut self) {
        if !self.is_over {
            self.source.left(std::mem::take(&mut self.sent));
        }
    }
}

pub fn respond(source: impl EventSource) -> Response {
    let open = Open { source, sent: Sent::default(), is_over: false };
    let events = stream::unfold(open, |mut open| async move {
        let Some(event) = open.source.next().await else {
            open.is_over = true;
            drop(open);
            return None;
        };
        open.sent.add(&event);
        Some((Ok::<Bytes, Infallible>(Bytes::from(event)), open))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(events)).into_response()
}

pub struct Streamed {
    pub app: Arc<App>,
    pub generation: Generation,
    pub answer: Answer,
    /// Its line of the audit trail, which is written before the last event is sent.
    pub pending: Pending,
    /// What the body takes of the budget, if the trail keeps it.
    pub _reserved: Option<Reserved>,
    pub options: Streaming,
    pub phase: watch::Receiver<Phase>,
    pub is_over: bool,
    pub has_begun: bool,
    pub pace: Pace,
}

impl EventSource for Streamed {
    async fn next(&mut self) -> Option<String> {
        let text = self.told().await?;
        self.pending.sent(&text);
        Some(text)
    }

    /// `pending` says so itself.
    fn left(&mut self, _: Sent) {}
}

impl Streamed {
    async fn told(&mut self) -> Option<String> {
        while !self.is_over {
            let due = self.pace.due();
            let told = tokio::select! {
                told = async {
                    sleep_until(due).await;
                    self.generation.next().await
                } => told,
                () = cut(&mut self.phase) => return Some(self.fail(&ApiError::draining())),
                () = sleep(SILENCE) => return Some(sign_of_life(self.has_begun)),
            };
            let Some(told) = told else {
                return Some(self.fail(&ApiError::new(Code::Internal, "the completion was lost")));
            };
            let mut events = self.take(told).await;
            // Events that have arrived meanwhile are sent together.
            while !self.is_over
                && let Some(told) = self.generation.next_at_hand()
            {
                events += &self.take(told).await;
            }
            if !events.is_empty() {
                self.pace.written();
                return Some(events);
            }
        }
        None
    }
}

/// Limits the writes to a stream. Each write wakes the client, which costs more than a token: after its first writes, a stream is written
/// at most fifty times a second.
#[derive(Debug)]
pub struct Pace {
    writes: usize,
    last: Instant,
}

impl Pace {
    /// The writes without a pause.
    const FIRST_WRITES: usize = 8;
    const PAUSE: Duration = Duration::from_millis(20);

    pub fn new() -> Pace {
        Pace { writes: 0, last: Instant::now() }
    }

    fn written(&mut self) {
        self.writes += 1;
        self.last = Instant::now();
    }

    fn due(&self) -> Instant {
        match self.writes < Pace::FIRST_WRITES {
            true => self.last,
            false => self.last + Pace::PAUSE,
        }
    }
}

impl Streamed {
    /// The events of a choice's event.
    async fn take(&mut self, told: ChoiceEvent) -> String {
        let choice = told.choice;
        let step = match self.answer.take(told, &mut self.generation) {
            Ok(step) => step,
            Err(error) => return self.fail(&error),
        };
        let events = self.events(choice, step);
        if self.is_over
            && let Err(error) = self.pending.done(&self.answer).await
        {
            return self.fail(&error);
        }
        events
    }

    fn events(&mut self, choice: usize, step: Step) -> String {
        let mut chunks = Vec::new();
        match step {
            Step::Begun => {
                self.has_begun = true;
                chunks.extend(self.answer.first_chunk(choice));
            }
            Step::Grown(delta) if self.answer.waits_for_end() => self.answer.keep(choice, delta),
            Step::Grown(delta) => chunks.extend(self.answer.delta_chunk(choice, delta)),
            Step::Done(delta) => {
                match self.answer.waits_for_end() {
                    true => self.answer.keep(choice, delta),
                    false => chunks.extend(self.answer.delta_chunk(choice, delta)),
                }
                chunks.push(self.answer.last_chunk(choice));
            }
        }
        if self.options.continuous_usage {
            for chunk in &mut chunks {
                chunk["usage"] = self.answer.usage();
            }
        }
        let is_done = self.answer.is_done();
        if is_done && self.options.include_usage {
            chunks.push(self.answer.usage_chunk());
        }
        self.is_over = is_done;
        written(chunks, is_done.then(|| self.answer.own_fields()))
    }

    /// The event that ends a failed stream; `[DONE]` does not follow.
    fn fail(&mut self, error: &ApiError) -> String {
        self.is_over = true;
        self.pending.failed(error, &self.answer);
        self.app.metrics.rejected(error.code);
        data(&error.json())
    }
}

/// Resolves when running requests must be aborted.
pub async fn cut(phase: &mut watch::Receiver<Phase>) {
    if phase.wait_for(|phase| *phase == Phase::Cut).await.is_err() {
        // The sender is gone, so that it will never happen.
        std::future::pending::<()>().await;
    }
}
