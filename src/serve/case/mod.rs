//! Chat completions of systems: the last message is the item, and the calls of the agents are the reasoning. A case is one run of an item,
//! worked on by one system on a thread of a pool.
//!
//! [`question`] parses items, and [`words`] puts outcomes into words.

pub mod question;
pub mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use prometheus_client::metrics::gauge::Gauge;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::app::App;
use super::audit::{Audit, Pending, Sent, Who};
use super::completion::Started;
use super::error::{ApiError, Code};
use super::guard::{Caller, turn};
use super::pool::Pool;
use super::queue::Place;
use super::request::chat::ChatRequest;
use super::request::fields::listed;
use super::response::events::Answering;
use super::response::reply::{Choice, Delta, Head, Own, Usage};
use super::system::ServedSystem;
use crate::data::Item;
use crate::digest::sha256;
use crate::experiment::case::{CaseOptions, DATASET, Worked};
use crate::panel::PanelError;
use crate::record::{self, CallLine, ItemText};

/// The fields that have an effect on a system. Other known fields are listed as ignored, since the system's settings determine sampling.
const HONOURED: [&str; 6] = ["model", "messages", "stream", "stream_options", "n", "seed"];

/// What a client asks of a system: runs of one item.
pub struct Ask {
    pub system: Arc<ServedSystem>,
    pub item: Item,
    pub seed: u64,
    /// The number of runs.
    pub n: u32,
    /// The field that has its text.
    pub param: &'static str,
    pub who: Who,
}

impl Ask {
    /// The digest of everything that determines the bytes of the response.
    pub fn digest(&self) -> String {
        let Ask { system, item, seed, n, .. } = self;
        sha256(json!([system.fingerprint, ItemText::from(item), seed, n]).to_string())
    }
}

pub enum CaseEvent {
    /// A thread has begun with it.
    Begun,
    Call(CallLine),
    /// The last event.
    Ended(Result<Worked, ApiError>),
}

/// One run, which waits for a thread.
pub struct Case {
    pub ask: Arc<Ask>,
    /// Counted from 1.
    pub run: u32,
    pub stop: Arc<AtomicBool>,
    /// Told of the place of its choice too.
    pub events: UnboundedSender<(usize, CaseEvent)>,
    /// The salt of its prefix cache, unless callers share it.
    pub salt: Option<[u8; 16]>,
    /// Its request's place in the server's queue.
    pub _place: Arc<Place>,
}

/// The cases that wait or run.
pub struct Cases {
    pool: Arc<Pool>,
    running: Gauge,
    audit: Audit,
    /// Shared by all of them.
    open: Arc<()>,
}

impl Cases {
    pub fn start(threads: usize, running: &Gauge, audit: &Audit) -> std::io::Result<Cases> {
        let pool = Pool::start("serve-case", threads, || {})?;
        let (running, audit) = (running.clone(), audit.clone());
        Ok(Cases { pool, running, audit, open: Arc::default() })
    }

    /// Has a case worked on when it is its caller's turn.
    pub fn submit(&self, caller: u64, case: Case) {
        let (running, audit, open) = (self.running.clone(), self.audit.clone(), self.open.clone());
        self.pool.add(caller, move || {
            // Else the client is gone.
            if !case.stop.load(Relaxed) {
                case.work(&running, &audit);
            }
            drop(open);
        });
    }

    /// The number of cases that wait or run.
    pub fn open(&self) -> usize {
        Arc::strong_count(&self.open) - 1
    }
}

impl Case {
    fn tell(&self, event: CaseEvent) {
        // If the receiver is gone, so is the client.
        let _ = self.events.send((self.run as usize - 1, event));
    }

    fn work(&self, running: &Gauge, audit: &Audit) {
        let pending = match Pending::of_case(audit, &self.ask, self.run) {
            Ok(pending) => pending,
            Err(error) => return self.tell(CaseEvent::Ended(Err(error))),
        };
        running.inc();
        self.tell(CaseEvent::Begun);
        let worked = catch_unwind(AssertUnwindSafe(|| self.worked()));
        let failed = |_| Err(ApiError::new(Code::Internal, "the case failed; the server goes on"));
        let mut outcome = worked.unwrap_or_else(failed);
        // Nothing is sent that is not in the audit trail.
        if let Err(error) = pending.case(&self.ask, &outcome) {
            outcome = Err(error);
        }
        running.dec();
        self.tell(CaseEvent::Ended(outcome));
    }

    fn worked(&self) -> Result<Worked, ApiError> {
        let Ask { system, item, seed, param, .. } = &*self.ask;
        let (run, salt, stop) = (self.run, self.salt, self.stop.clone());
        let options = CaseOptions { seed: *seed, run, salt, stop };
        let (events, place) = (self.events.clone(), run as usize - 1);
        let on_call =
            move |call: &CallLine| drop(events.send((place, CaseEvent::Call(call.clone()))));
        let worked = system.seated.work(DATASET, item, options, on_call);
        let worked = worked.map_err(|error| match error {
            PanelError::Interrupted => ApiError::new(Code::Draining, "the case was stopped"),
            // The prompts are the system's; where they leave no room, the item's text is too long.
            error => {
                let error = ApiError::from(error);
                let is_long = error.code == Code::ContextLengthExceeded;
                ApiError { param: is_long.then(|| (*param).to_owned()), ..error }
            }
        })?;
        match worked.line.error() {
            None => Ok(worked),
            Some(error) => Err(ApiError::new(Code::Internal, error)),
        }
    }
}

/// The runs of an item, a choice each. Dropping them stops the work. Whoever does not read keeps a place in the queue until then.
pub struct SystemAnswer {
    pub ask: Arc<Ask>,
    head: Head,
    digest: String,
    ignored: Vec<String>,
    events: UnboundedReceiver<(usize, CaseEvent)>,
    stop: Arc<AtomicBool>,
    place: Arc<Place>,
    /// By choice; `None` while its case runs.
    pub outcomes: Vec<Option<Worked>>,
    /// What the audit trail is told if the client leaves.
    told: (Audit, Sent),
}

/// Begins with the cases of a chat.
///
/// # Errors
/// A request that this system cannot answer; a full queue.
pub fn begin(
    app: &App,
    chat: ChatRequest,
    system: Arc<ServedSystem>,
    caller: Option<&Caller>,
    who: Who,
) -> Result<Started<SystemAnswer>, ApiError> {
    let decoding = &chat.decoding;
    let format = decoding.format.as_ref().map(|format| format.field);
    if let Some(name) = format.or(chat.logprobs().map(|_| "logprobs")) {
        return Err(ApiError::unsupported(name));
    }
    let earlier = (0..chat.texts.len() - 1).map(|index| format!("messages[{index}]"));
    let without = chat.given.into_iter().filter(|name| !HONOURED.contains(&name.as_str()));
    let ignored: Vec<String> = earlier.chain(without).chain(chat.ignored).collect();
    let last = chat.texts.last().filter(|message| message.role == "user");
    let last = last.ok_or_else(|| {
        let message = "the last message is not the user's; a system is asked by it";
        ApiError::invalid("messages", message)
    })?;
    system.refuse_length(&last.content, "messages")?;
    let item = question::item(system.takes(), &last.content)?;
    let (seed, n, param) = (app.seed(decoding.seed())?, decoding.n() as u32, "messages");
    let ask = Ask { system, item, seed, n, param, who };
    let stream = decoding.streaming();
    let answering = SystemAnswer::begin(app, ask, &ignored, caller)?;
    Ok(Started { answering, stream, ignored })
}

impl SystemAnswer {
    /// Queues the runs of an item, each as a sequence.
    ///
    /// # Errors
    /// A full queue.
    pub fn begin(
        app: &App,
        ask: Ask,
        ignored: &[String],
        caller: Option<&Caller>,
    ) -> Result<SystemAnswer, ApiError> {
        let place = Arc::new(app.queue()?.enter(ask.n as usize, 0, caller)?);
        let (salt, turn) = (app.salt(caller), turn(caller));
        let (sender, events) = unbounded_channel();
        let answering = SystemAnswer {
            head: Head::new(true, &ask.system.id, &ask.system.fingerprint),
            digest: ask.digest(),
            ignored: listed(ignored),
            events,
            stop: Arc::default(),
            place,
            outcomes: vec![None; ask.n as usize],
            told: (app.audit.clone(), Sent::default()),
            ask: Arc::new(ask),
        };
        for run in 1..=answering.ask.n {
            let (ask, stop) = (answering.ask.clone(), answering.stop.clone());
            let (events, _place) = (sender.clone(), answering.place.clone());
            app.cases.submit(turn, Case { ask, run, stop, events, salt, _place });
        }
        Ok(answering)
    }
}

impl Drop for SystemAnswer {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}

impl Answering for SystemAnswer {
    async fn next(&mut self) -> Result<Vec<Choice>, ApiError> {
        let lost = || ApiError::new(Code::Internal, "the case was lost");
        let (index, event) = self.events.recv().await.ok_or_else(lost)?;
        let delta = match event {
            CaseEvent::Begun => return Ok(vec![Choice::begun(index)]),
            CaseEvent::Call(call) => {
                let line = words::line(self.ask.system.takes(), &call);
                Delta { reasoning_content: Some(line), ..Delta::default() }
            }
            CaseEvent::Ended(outcome) => {
                let worked = outcome?;
                let content = words::content(&self.ask.item, &worked);
                self.outcomes[index] = Some(worked);
                Delta { content: Some(content), ..Delta::default() }
            }
        };
        let mut choices = vec![Choice::of_chat(index, delta)];
        if self.outcomes[index].is_some() {
            let last = Choice::of_chat(index, Delta::default());
            choices.push(Choice { finish_reason: Some("stop"), ..last });
        }
        Ok(choices)
    }

    fn is_done(&self) -> bool {
        self.outcomes.iter().all(Option::is_some)
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn used(&self) -> Usage {
        let used = self.outcomes.iter().flatten().map(|worked| worked.usage);
        Usage::of(used.fold(record::Usage::default(), record::Usage::and), 0)
    }

    fn own(&self) -> Own {
        let worked = self.outcomes.iter().flatten();
        let mut records: Vec<_> = worked.map(|worked| words::record(&worked.line)).collect();
        let record = if records.len() == 1 { records.pop() } else { None };
        Own {
            seed: self.ask.seed as i64,
            request: self.digest.clone(),
            ignored: self.ignored.clone(),
            item: Some(self.ask.item.id().to_owned()),
            records: record.is_none().then_some(records),
            record,
        }
    }

    /// Its cases are in the audit trail, each by itself.
    async fn end(&mut self) -> Result<(), ApiError> {
        Ok(())
    }

    fn failed(&mut self, _: &ApiError) {}

    fn sent(&mut self, text: &str) {
        self.told.1.add(text);
    }

    fn left(&mut self) {
        let (audit, sent) = &mut self.told;
        audit.left(&self.ask.who, &self.digest, std::mem::take(sent));
    }

    /// The calls in the order of their keys, however they ended.
    fn settle(&self, choice: &mut Choice) {
        let worked = self.outcomes.get(choice.index).and_then(Option::as_ref);
        if let (Some(worked), Some(delta)) = (worked, &mut choice.delta) {
            delta.reasoning_content = Some(words::reasoning(self.ask.system.takes(), worked));
        }
    }
}
