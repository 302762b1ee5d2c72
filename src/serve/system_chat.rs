//! Chat completions of systems: the last message is the item, and the calls of the agents are the reasoning.

use std::sync::Arc;

use super::app::App;
use super::audit::{Audit, Sent, Who};
use super::case::words::{self, CallWords};
use super::case::{Ask, CaseEvent, Running, question};
use super::completion::{Started, new_id, refuse_ignored};
use super::error::{ApiError, Code};
use super::generation::random_seed;
use super::guard::Caller;
use super::request::chat::ChatRequest;
use super::request::fields::listed;
use super::response::events::Answering;
use super::response::reply::{Choice, Delta, Head, Own, Usage};
use super::system::ServedSystem;
use crate::experiment::case::Worked;
use crate::record;

/// The fields that have an effect on a system. Other known fields are listed as ignored, since the system's settings determine sampling.
const HONOURED: [&str; 7] =
    ["model", "messages", "stream", "stream_options", "n", "seed", "request_id"];

/// The runs of an item, a choice each.
pub struct SystemAnswer {
    /// Of the first run.
    ask: Ask,
    head: Head,
    digest: String,
    ignored: Vec<String>,
    running: Running,
    /// By choice; `None` while its case runs.
    outcomes: Vec<Option<Worked>>,
    /// By choice, so far.
    usages: Vec<record::Usage>,
    /// What the audit trail is told if the client leaves.
    told: (Audit, Sent),
}

/// Begins with the cases of a chat.
///
/// # Errors
/// A request that this system cannot answer; a full queue.
pub fn begin(
    app: &App,
    body: &[u8],
    system: Arc<ServedSystem>,
    caller: Option<&Caller>,
    who: Who,
) -> Result<Started<SystemAnswer>, ApiError> {
    let chat = ChatRequest::read(body)?;
    let decoding = &chat.decoding;
    let refused = [
        (decoding.format.as_ref().map_or("", |format| &format.field), decoding.format.is_some()),
        ("logprobs", chat.logprobs().is_some()),
        ("prompt_logprobs", decoding.prompt_logprobs().is_some()),
        ("return_token_ids", decoding.return_token_ids),
        ("continue_final_message", chat.turn.continue_final_message),
    ];
    if let Some((name, _)) = refused.iter().find(|(_, is_given)| *is_given) {
        let message = format!("{name} is not supported by systems; leave it out");
        return Err(ApiError::of(Code::UnsupportedParameter, name, message));
    }
    refuse_ignored(app, &chat.ignored)?;
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
    let seed = run_seed(app, decoding.seed())?;
    let ask = Ask { n: decoding.n() as u32, who, ..Ask::new(system, item, seed, "messages")? };
    let (stream, request_id) = (decoding.streaming(), decoding.request_id.clone());
    let answering = SystemAnswer::begin(app, ask, request_id.as_deref(), &ignored, caller)?;
    Ok(Started { answering, stream, request_id, ignored })
}

impl SystemAnswer {
    /// Begins with the runs of an item.
    pub fn begin(
        app: &App,
        ask: Ask,
        request_id: Option<&str>,
        ignored: &[String],
        caller: Option<&Caller>,
    ) -> Result<SystemAnswer, ApiError> {
        let asks = (1..=ask.n).map(|run| Ask { run, ..ask.clone() }).collect();
        let (id, created) = new_id("chatcmpl", request_id);
        let (model, fingerprint) = (ask.system.id.clone(), ask.system.fingerprint.clone());
        Ok(SystemAnswer {
            digest: ask.digest(),
            head: Head { id, created, model, fingerprint, is_chat: true },
            ignored: listed(ignored),
            running: Running::begin(app, asks, caller)?,
            outcomes: vec![None; ask.n as usize],
            usages: vec![record::Usage::default(); ask.n as usize],
            told: (app.audit.clone(), Sent::default()),
            ask,
        })
    }

    /// What was asked, and what became of its first run.
    pub fn first(&self) -> Option<(&Ask, &Worked)> {
        Some((&self.ask, self.outcomes.first()?.as_ref()?))
    }
}

/// The seed of a run: the requested one, else the server's default, else a random one.
pub fn run_seed(app: &App, asked: Option<u64>) -> Result<u64, ApiError> {
    asked.or(app.options.default_seed).map_or_else(random_seed, Ok)
}

impl Answering for SystemAnswer {
    async fn next(&mut self) -> Result<Vec<(Choice, Usage)>, ApiError> {
        let lost = || ApiError::new(Code::Internal, "the case was lost");
        let (index, event) = self.running.next().await.ok_or_else(lost)?;
        let said = |content: String| Delta { content: Some(content), ..Delta::default() };
        let choices = match event {
            CaseEvent::Begun => vec![Choice::begun(index)],
            CaseEvent::Call(call) => {
                self.usages[index] = self.usages[index].and(call.usage);
                let line = CallWords::of(self.ask.system.takes(), &call).line();
                let delta = Delta { reasoning_content: Some(line), ..Delta::default() };
                vec![Choice::of_chat(index, delta)]
            }
            CaseEvent::Ended(outcome) => {
                let worked = outcome?;
                self.usages[index] = worked.usage;
                let content = words::content(&self.ask.item, &worked);
                self.outcomes[index] = Some(worked);
                let last = Choice::of_chat(index, Delta::default());
                let last = Choice { finish_reason: Some("stop"), ..last };
                vec![Choice::of_chat(index, said(content)), last]
            }
        };
        Ok(choices.into_iter().map(|choice| (choice, self.used())).collect())
    }

    fn is_done(&self) -> bool {
        self.outcomes.iter().all(Option::is_some)
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn used(&self) -> Usage {
        let sum = self.usages.iter().fold(record::Usage::default(), |sum, part| sum.and(*part));
        Usage::of(sum, 0)
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
