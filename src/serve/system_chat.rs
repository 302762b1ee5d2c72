//! Chat completions of systems: the last message is the item, and the calls of the agents are the reasoning.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

use super::app::{App, Phase};
use super::audit::{Sent, Who};
use super::case::words::{self, CallWords};
use super::case::{Ask, CaseEvent, Running, question};
use super::completion::{Client, new_id, refuse_ignored, with_ignored, with_request_id};
use super::error::{ApiError, Code};
use super::generation::random_seed;
use super::request::chat::ChatRequest;
use super::request::decoding::{Decoding, Streaming};
use super::request::fields::listed;
use super::response::events::{EventSource, SILENCE, cut, data, respond, sign_of_life, written};
use super::system::ServedSystem;
use crate::audit::case;
use crate::data::Item;
use crate::experiment::case::Worked;
use crate::record::Usage;

/// The fields that have an effect on a system. Other known fields are listed as ignored, since the system's settings determine sampling.
const HONOURED: [&str; 7] =
    ["model", "messages", "stream", "stream_options", "n", "seed", "request_id"];

pub struct SystemChat {
    /// Of the first run.
    ask: Ask,
    /// The number of runs of the item.
    n: u32,
    stream: Option<Streaming>,
    request_id: Option<String>,
    /// Fields that had no effect.
    ignored: Vec<String>,
}

impl SystemChat {
    /// # Errors
    /// A request that this system cannot answer.
    pub fn read(
        body: &[u8],
        system: &Arc<ServedSystem>,
        app: &App,
    ) -> Result<SystemChat, ApiError> {
        let chat = ChatRequest::read(body)?;
        let decoding = chat.decoding;
        let refused = [
            (
                decoding.format.as_ref().map_or("", |format| &format.field),
                decoding.format.is_some(),
            ),
            ("logprobs", chat.logprobs.is_some()),
            ("prompt_logprobs", decoding.prompt_logprobs.is_some()),
            ("return_token_ids", decoding.return_token_ids),
            ("continue_final_message", chat.turn.continues_last),
        ];
        if let Some((name, _)) = refused.iter().find(|(_, is_given)| *is_given) {
            let message = format!("{name} is not supported by systems; leave it out");
            return Err(ApiError::of(Code::UnsupportedParameter, name, message));
        }
        refuse_ignored(app, &chat.ignored)?;
        let earlier = (0..chat.messages.len() - 1).map(|index| format!("messages[{index}]"));
        let without = chat.given.into_iter().filter(|name| !HONOURED.contains(&name.as_str()));
        let ignored: Vec<String> = earlier.chain(without).chain(chat.ignored).collect();
        let last = chat.messages.last().filter(|message| message.role == "user");
        let last = last.ok_or_else(|| {
            let message = "the last message is not the user's; a system is asked by it";
            ApiError::invalid("messages", message)
        })?;
        let Decoding { seed, n, stream, request_id, .. } = decoding;
        system.refuse_length(&last.content, "messages")?;
        let item = question::item(system.takes(), &last.content)?;
        let ask = Ask::new(system.clone(), item, run_seed(app, seed)?, "messages")?;
        Ok(SystemChat { ask, n: n as u32, stream, request_id, ignored: listed(&ignored) })
    }
}

/// The seed of a run: the requested one, else the server's default, else a random one.
pub fn run_seed(app: &App, asked: Option<u64>) -> Result<u64, ApiError> {
    asked.or(app.options.default_seed).map_or_else(random_seed, Ok)
}

/// Runs the cases of a chat, and answers it whole or as a stream.
pub async fn answer(
    app: Arc<App>,
    system: Arc<ServedSystem>,
    chat: SystemChat,
    client: Client,
) -> Result<Response, ApiError> {
    let Client { caller, who, .. } = client;
    let reader = who.clone();
    let seed = chat.ask.seed;
    let ask = |run| Ask { run, n: chat.n, who: who.clone(), ..chat.ask.clone() };
    let asks: Vec<Ask> = (1..=chat.n).map(ask).collect();
    let digest = asks.first().map(Ask::digest).unwrap_or_default();
    let running = Running::begin(&app, asks, caller.as_ref())?;
    let request_id = chat.request_id.as_deref();
    let (id, created) = new_id("chatcmpl", request_id);
    let outcomes = vec![None; chat.n as usize];
    let (item, ignored) = (chat.ask.item, chat.ignored.clone());
    let heading = Heading { id, created, system, seed, digest, item, ignored };
    let phase = app.phase.clone();
    let usages = vec![Usage::default(); chat.n as usize];
    let answering = Answering { app, heading, running, outcomes, usages, phase };
    let response = match chat.stream {
        None => Json(answering.whole().await?).into_response(),
        Some(options) => {
            let (is_over, has_begun) = (false, false);
            respond(Streamed { answering, reader, options, is_over, has_begun })
        }
    };
    let response = with_ignored(response, &chat.ignored);
    Ok(with_request_id(response, chat.request_id.as_deref()))
}

/// The parameters of the request that the response needs.
struct Heading {
    id: String,
    created: u64,
    system: Arc<ServedSystem>,
    seed: u64,
    digest: String,
    item: Item,
    ignored: Vec<String>,
}

/// A response whose cases are running.
struct Answering {
    app: Arc<App>,
    heading: Heading,
    running: Running,
    /// By choice; `None` while its case runs.
    outcomes: Vec<Option<Worked>>,
    /// By choice, so far.
    usages: Vec<Usage>,
    phase: watch::Receiver<Phase>,
}

impl Answering {
    /// The next event and its choice.
    async fn next(&mut self) -> Result<(usize, CaseEvent), ApiError> {
        tokio::select! {
            event = self.running.next() => {
                let lost = || ApiError::new(Code::Internal, "the case was lost");
                let (choice, event) = event.ok_or_else(lost)?;
                match &event {
                    CaseEvent::Begun => {}
                    CaseEvent::Call(call) => {
                        self.usages[choice] = self.usages[choice].and(call.usage);
                    }
                    CaseEvent::Ended(outcome) => {
                        let worked = outcome.as_ref().map_err(ApiError::clone)?;
                        self.usages[choice] = worked.usage;
                        self.outcomes[choice] = Some(worked.clone());
                    }
                }
                Ok((choice, event))
            }
            () = cut(&mut self.phase) => Err(ApiError::draining()),
        }
    }

    fn is_done(&self) -> bool {
        self.outcomes.iter().all(Option::is_some)
    }

    async fn whole(mut self) -> Result<Value, ApiError> {
        while !self.is_done() {
            self.next().await?;
        }
        let Heading { system, item, .. } = &self.heading;
        let choice = |(index, worked): (usize, &Worked)| {
            json!({
                "index": index,
                "message": {
                    "role": "assistant",
                    "content": words::content(item, worked),
                    "reasoning_content": words::reasoning(system.takes(), worked),
                    "refusal": null,
                },
                "logprobs": null,
                "finish_reason": "stop",
            })
        };
        let worked = self.outcomes.iter().flatten().enumerate();
        let choices: Vec<Value> = worked.map(choice).collect();
        let mut answer = self.envelope("chat.completion", choices);
        answer["usage"] = self.usage();
        answer["wardround"] = self.own_fields();
        Ok(answer)
    }

    fn envelope(&self, object: &str, choices: Vec<Value>) -> Value {
        let Heading { id, created, system, .. } = &self.heading;
        json!({
            "id": id, "object": object, "created": created, "model": system.id,
            "system_fingerprint": system.fingerprint, "choices": choices,
        })
    }

    fn usage(&self) -> Value {
        usage(self.usages.iter().copied())
    }

    fn own_fields(&self) -> Value {
        let Heading { seed, digest, item, ignored, .. } = &self.heading;
        let records: Vec<Value> =
            self.outcomes.iter().flatten().map(|worked| words::record(&worked.line)).collect();
        let mut own = json!({
            "seed": *seed as i64, "request": digest, "item": item.id(), "ignored": ignored,
        });
        match records.len() {
            1 => own["record"] = records.into_iter().next().unwrap_or_default(),
            _ => own["records"] = records.into(),
        }
        own
    }
}

/// The sum of token counts, in OpenAI's form.
pub fn usage(parts: impl Iterator<Item = Usage>) -> Value {
    case::usage(parts.fold(Usage::default(), |sum, part| sum.and(part)))
}

struct Streamed {
    answering: Answering,
    reader: Who,
    options: Streaming,
    is_over: bool,
    has_begun: bool,
}

impl EventSource for Streamed {
    async fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        let next = tokio::select! {
            next = self.answering.next() => next,
            () = sleep(SILENCE) => return Some(sign_of_life(self.has_begun)),
        };
        Some(match next {
            Ok((choice, event)) => self.events(choice, event),
            Err(error) => {
                self.is_over = true;
                self.answering.app.metrics.rejected(error.code);
                data(&error.json())
            }
        })
    }

    fn left(&mut self, sent: Sent) {
        if !self.is_over {
            let Answering { app, heading, .. } = &self.answering;
            app.audit.left(&self.reader, &heading.digest, sent);
        }
    }
}

impl Streamed {
    fn events(&mut self, choice: usize, event: CaseEvent) -> String {
        let takes = self.answering.heading.system.takes();
        let mut chunks = match event {
            CaseEvent::Begun => {
                self.has_begun = true;
                vec![self.delta(choice, json!({"role": "assistant", "content": ""}), None)]
            }
            CaseEvent::Call(call) => {
                let line = CallWords::of(takes, &call).line();
                vec![self.delta(choice, json!({"reasoning_content": line}), None)]
            }
            CaseEvent::Ended(outcome) => {
                // A failed case has already ended the stream.
                let content = outcome.as_ref().map_or(String::new(), |worked| {
                    words::content(&self.answering.heading.item, worked)
                });
                let last = self.delta(choice, json!({}), Some("stop"));
                vec![self.delta(choice, json!({"content": content}), None), last]
            }
        };
        let is_done = self.answering.is_done();
        if is_done && self.options.include_usage {
            let mut chunk = self.answering.envelope("chat.completion.chunk", Vec::new());
            chunk["usage"] = self.answering.usage();
            chunks.push(chunk);
        }
        self.is_over = is_done;
        written(chunks, is_done.then(|| self.answering.own_fields()))
    }

    fn delta(&self, index: usize, delta: Value, finish_reason: Option<&str>) -> Value {
        let choice = json!({"index": index, "delta": delta, "logprobs": null, "finish_reason": finish_reason});
        let mut chunk = self.answering.envelope("chat.completion.chunk", vec![choice]);
        if self.options.continuous_usage {
            chunk["usage"] = self.answering.usage();
        }
        chunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_all_calls_are_summed() {
        let part =
            Usage { prompt_tokens: 3, cached_tokens: 1, completion_tokens: 2, forced_tokens: 0 };
        let sum = usage([part, part].into_iter());
        assert_eq!(
            (&sum["total_tokens"], &sum["prompt_tokens_details"]["cached_tokens"]),
            (&json!(10), &json!(2))
        );
    }
}
