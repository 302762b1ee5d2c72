//! Systems that answer as models do: the last message is the item. And `POST /v1/check`: one
//! note, checked by a system. A case is one run of an item, worked on by one system on a thread of a pool.
//!
//! [`question`] parses items, and [`words`] puts outcomes into words.

pub mod question;
pub mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use axum::Json;
use axum::extract::State;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::audit::About;
use super::body::Sent;
use super::error::{ApiError, Code};
use super::guard::{Caller, turn};
use super::models::ServedSystem;
use super::queue::Place;
use super::request::chat::ChatRequest;
use super::request::fields::{listed, request};
use super::response::events::{Answering, Work};
use super::response::reply::{Choice, Reply, usage};
use crate::data::Item;
use crate::digest::sha256;
use crate::experiment::case::{CaseOptions, Worked};

/// The fields that have an effect on a system. Others are listed as ignored, since the system's settings determine sampling.
const HONOURED: [&str; 6] = ["model", "messages", "stream", "stream_options", "n", "seed"];

/// What a client asks of a system: the first run of one item.
struct Ask {
    system: Arc<ServedSystem>,
    item: Item,
    seed: u64,
    /// The field that has its text.
    param: &'static str,
    stream: Option<bool>,
}

impl Ask {
    /// The digest of everything that determines the bytes of the response.
    fn digest(&self) -> String {
        let Ask { system, item, seed, .. } = self;
        sha256(json!([system.entry.wardround.fingerprint, item, seed, 1]).to_string())
    }

    /// Works on the case, and waits until it is done.
    fn work(&self, options: CaseOptions) -> Result<Worked, ApiError> {
        let worked = self.system.seated.work(&self.item, options).map_err(|error| {
            // The prompts are the system's; where they leave no room, the item's text is too long.
            let error = ApiError::from(error);
            let is_long = error.code == Code::CONTEXT_LENGTH_EXCEEDED;
            ApiError { param: is_long.then(|| self.param.to_owned()), ..error }
        })?;
        match worked.line.error() {
            None => Ok(worked),
            Some(error) => Err(ApiError::new(Code::INTERNAL, error)),
        }
    }
}

/// A case as it is worked on. Dropping it stops the work. Whoever does not read keeps a place in the queue until then.
struct SystemAnswer {
    ask: Arc<Ask>,
    head: Reply,
    ignored: Vec<String>,
    working: BoxFuture<'static, Result<Worked, ApiError>>,
    stop: Arc<AtomicBool>,
    _place: Place,
    /// Of a stream, whether its first chunk was sent.
    is_begun: bool,
    /// `None` while it runs.
    worked: Option<Worked>,
}

/// Begins with the case of a chat.
///
/// # Errors
/// A request that this system cannot answer; a full queue.
pub fn begin(
    app: &App,
    chat: ChatRequest,
    system: Arc<ServedSystem>,
    caller: Option<&Caller>,
) -> Result<Box<dyn Answering>, ApiError> {
    let decoding = &chat.decoding;
    let format = decoding.format.as_ref().map(|format| format.field);
    let logprobs = chat.logprobs().map(|_| "logprobs");
    if let Some(name) = format.or(logprobs).or((decoding.n() > 1).then_some("n")) {
        return Err(ApiError::unsupported(name));
    }
    let earlier = (0..chat.texts.len() - 1).map(|index| format!("messages[{index}]"));
    let without = chat.given.into_iter().filter(|name| !HONOURED.contains(&name.as_str()));
    let ignored: Vec<String> = earlier.chain(without).collect();
    let last = chat.texts.last().filter(|message| message.role == "user");
    let last = last.ok_or_else(|| {
        let message = "the last message is not the user's; a system is asked by it";
        ApiError::invalid("messages", message)
    })?;
    system.refuse_length(&last.content, "messages")?;
    let item = question::item(system.takes(), &last.content)?;
    let (seed, stream) = (app.seed(decoding.seed())?, decoding.streaming());
    let ask = Ask { system, item, seed, param: "messages", stream };
    SystemAnswer::begin(app, ask, &ignored, caller)
}

/// Unknown fields are mistakes at an endpoint of our own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckRequest {
    text: String,
    system: Option<String>,
    seed: Option<i64>,
}

pub async fn check(State(app): State<Arc<App>>, sent: Sent) -> Result<Json<Value>, ApiError> {
    let (answering, received) = sent.read(&app, begin_check).await?;
    let mut work = Work::begin(&app, answering, received).await?;
    work.finish().await?;
    let (About { model, fingerprint, output: mut value, usage, .. }, own) =
        work.answering.outcome();
    value["wardround"] = own;
    value["wardround"]["system"] = model.into();
    value["wardround"]["system_fingerprint"] = fingerprint.into();
    value["wardround"]["usage"] = usage;
    Ok(Json(value))
}

fn begin_check(
    app: &App,
    body: &[u8],
    caller: Option<&Caller>,
) -> Result<Box<dyn Answering>, ApiError> {
    let CheckRequest { text, system, seed } = request(body)?;
    let system = app.served()?.note_system(system.as_deref())?.clone();
    system.refuse_length(&text, "text")?;
    let item = question::note(&text, "text")?;
    let seed = app.seed(seed.map(|seed| seed as u64))?;
    let ask = Ask { system, item, seed, param: "text", stream: None };
    SystemAnswer::begin(app, ask, &[], caller)
}

impl SystemAnswer {
    /// Queues the case, as a sequence.
    ///
    /// # Errors
    /// A full queue.
    fn begin(
        app: &App,
        ask: Ask,
        ignored: &[String],
        caller: Option<&Caller>,
    ) -> Result<Box<dyn Answering>, ApiError> {
        let place = app.queue.enter(1, caller)?;
        let (ask, stop) = (Arc::new(ask), Arc::<AtomicBool>::default());
        let (turn, salt) = (turn(caller), caller.map(Caller::salt));
        let options = CaseOptions { seed: ask.seed, run: 1, salt, stop: stop.clone() };
        let (cases, own) = (app.cases.clone(), ask.clone());
        let working = async move { cases.run(turn, move || own.work(options)).await };
        Ok(Box::new(SystemAnswer {
            head: Reply::new(true, &ask.system.entry),
            ignored: listed(ignored),
            working: working.boxed(),
            stop,
            _place: place,
            is_begun: false,
            worked: None,
            ask,
        }))
    }
}

impl Drop for SystemAnswer {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}

impl Answering for SystemAnswer {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Choice>, ApiError>> {
        let next = async {
            let is_stream = self.ask.stream.is_some();
            if is_stream && !std::mem::replace(&mut self.is_begun, true) {
                return Ok(vec![Choice::begun(0)]);
            }
            let worked = &*self.worked.insert((&mut self.working).await?);
            let content = words::content(&self.ask.item, worked);
            let all = Choice::of_chat(0, is_stream, content, String::new());
            Ok(vec![Choice { finish_reason: Some("stop"), ..all }])
        };
        next.boxed()
    }

    fn is_done(&self) -> bool {
        self.worked.is_some()
    }

    fn stream(&self) -> Option<bool> {
        self.ask.stream
    }

    fn head(&self) -> &Reply {
        &self.head
    }

    fn outcome(&self) -> (About, Value) {
        let (worked, request) = (self.worked.as_ref(), self.ask.digest());
        let own = json!({
            "seed": self.ask.seed as i64,
            "request": request,
            "ignored": self.ignored,
            "item": self.ask.item.id(),
            "record": worked.map(|worked| words::record(&worked.line)),
        });
        let output = worked.map(|worked| words::outcome(&self.ask.item, worked));
        let about = About {
            model: self.head.model.clone(),
            fingerprint: self.head.system_fingerprint.clone(),
            seed: Some(self.ask.seed),
            request,
            output: output.unwrap_or_default(),
            usage: usage(worked.map(|worked| worked.usage).unwrap_or_default(), 0),
            finish: Value::Null,
        };
        (about, own)
    }
}
