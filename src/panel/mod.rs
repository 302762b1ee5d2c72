//! Agents: roles on backbones. Renders their prompts, asks the engines, reads and records what comes back.

mod answer;
pub mod backbone;
mod error;
pub mod generation;
pub mod memory;
pub mod recorder;
pub mod remote;
mod request;
#[cfg(test)]
pub mod scripted;
pub mod seed;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::Value;

use self::answer::{Answer, Asking, sampling_record};
use self::backbone::Backbone;
pub use self::error::PanelError;
use self::recorder::Recorder;
use self::remote::{RemoteCompletion, RemoteError, RemoteModel, RemoteRequest};
use crate::console;
use crate::engine::{Completion, Grammar, Request, Ticket};
use crate::panel::seed::call_seed;
use crate::record::{CallKey, CallLine, FinishReason, Message, Parse, SamplingLine, Stage};

/// The agents of a run and where their calls are recorded.
pub struct Panel {
    /// In panel order.
    pub members: Vec<Member>,
    pub recorder: Recorder,
    pub run_seed: u64,
    /// Whether completions are free text; else a grammar holds.
    pub free: bool,
    pub thinking: bool,
    /// What the user bounds completions by; a remote member is sent no other bound.
    pub max_tokens: Option<usize>,
    /// Whether free completions run on to their `max_tokens`, as a measurement of equal work wants.
    pub ignore_eos: bool,
    /// Set from outside to stop: calls in flight are dropped.
    pub stop: Arc<AtomicBool>,
    /// Told of every call that was made.
    pub on_call: Box<dyn Fn(&CallLine) + Send + Sync>,
}

/// A role on a backbone.
pub struct Member {
    pub agent: String,
    pub source: Source,
}

/// Where a member's answers come from.
#[derive(Clone)]
pub enum Source {
    Local(Arc<Backbone>),
    Remote(Arc<RemoteModel>),
    /// Canned replies, for the tests of protocols.
    #[cfg(test)]
    Scripted(Arc<scripted::Script>),
}

impl Source {
    /// What plans and logs call it.
    pub fn name(&self) -> String {
        match self {
            Source::Local(backbone) => backbone.description.checkpoint.name.clone(),
            Source::Remote(model) => model.address().to_string(),
            #[cfg(test)]
            Source::Scripted(_) => "scripted".to_owned(),
        }
    }
}

/// One question to one agent.
pub struct Call {
    /// Index into the panel's members.
    pub member: usize,
    pub key: CallKey,
    pub stage: Stage,
    pub messages: Vec<Message>,
    /// A file or an address; only a remote member can be shown one.
    pub image: Option<String>,
    /// What the text looks like; it holds unless the panel is free. `None`: any text.
    pub grammar: Option<Grammar>,
    /// `None`: as many as the context leaves.
    pub max_tokens: Option<usize>,
}

/// What a system makes of a completion's text: the record, and how it was read.
pub type Reader<'a> = &'a dyn Fn(&str, FinishReason) -> (Value, Parse);

enum Pending {
    Known(Box<CallLine>),
    Local(Box<Asked>),
    /// A call that a thread of its own waits for.
    Remote(Box<(Call, JoinHandle<Told>)>),
    Done(Box<(Call, Asking, Answer)>),
}

/// What an endpoint said, and how long it took.
type Told = (Result<RemoteCompletion, RemoteError>, u64);

/// A call that an engine works on.
struct Asked {
    call: Call,
    asking: Asking,
    ticket: Ticket,
    asked_at: Instant,
}

impl Panel {
    /// Each backbone once, but for those that somebody else still holds.
    pub fn into_backbones(self) -> Vec<Backbone> {
        let members = self.members.into_iter();
        members
            .filter_map(|member| match member.source {
                Source::Local(backbone) => Arc::into_inner(backbone),
                Source::Remote(_) => None,
                #[cfg(test)]
                Source::Scripted(_) => None,
            })
            .collect()
    }

    /// Asks all of `calls` at once and waits for every answer; each is durable when this returns. Calls of an
    /// earlier attempt at the run are answered from its log, and calls whose request was answered elsewhere as there.
    ///
    /// # Errors
    /// The first that failed; the others of the round are dropped.
    pub fn ask_all(&self, calls: Vec<Call>, read: Reader<'_>) -> Result<Vec<CallLine>, PanelError> {
        let pending = calls
            .into_iter()
            .map(|call| self.ask(call))
            .collect::<Result<Vec<_>, _>>()?;
        pending
            .into_iter()
            .map(|pending| self.wait(pending, read))
            .collect()
    }

    /// Asks one and waits.
    ///
    /// # Errors
    /// As [`Panel::ask_all`].
    pub fn ask_one(&self, call: Call, read: Reader<'_>) -> Result<CallLine, PanelError> {
        self.wait(self.ask(call)?, read)
    }

    /// Whether every member can be shown an image.
    pub fn takes_images(&self) -> bool {
        let mut members = self.members.iter();
        members.all(|member| matches!(member.source, Source::Remote(_)))
    }

    fn ask(&self, call: Call) -> Result<Pending, PanelError> {
        if let Some(known) = self.recorder.find(&call.key) {
            return Ok(Pending::Known(Box::new(known.clone())));
        }
        match &self.members[call.member].source {
            Source::Local(backbone) => self.ask_engine(backbone, call),
            Source::Remote(model) => Ok(self.ask_endpoint(model, call)),
            #[cfg(test)]
            Source::Scripted(script) => {
                let answer = Answer {
                    text: script.reply(&call.key, &call.messages),
                    tokens: Vec::new(),
                    usage: Default::default(),
                    finish_reason: FinishReason::Stop,
                    elapsed_ms: 0,
                    answered_by: None,
                };
                let asking = Asking {
                    seed: 0,
                    sampling: sampling_record(&Default::default(), 0, false),
                    request: String::new(),
                };
                Ok(Pending::Done(Box::new((call, asking, answer))))
            }
        }
    }

    fn ask_engine(&self, backbone: &Backbone, call: Call) -> Result<Pending, PanelError> {
        let request = self.request(backbone, &call)?;
        let Request {
            sampling,
            seed,
            max_tokens,
            constraint,
            ..
        } = &request;
        let asking = Asking {
            seed: *seed,
            sampling: sampling_record(sampling, *max_tokens, constraint.is_some()),
            request: request::digest(&backbone.identity, &request),
        };
        if let Some(equal) = self.recorder.find_equal(&asking.request) {
            let answer = Answer::of(equal);
            return Ok(Pending::Done(Box::new((call, asking, answer))));
        }
        let asked_at = Instant::now();
        let ticket = backbone.engine.submit(request)?;
        Ok(Pending::Local(Box::new(Asked {
            call,
            asking,
            ticket,
            asked_at,
        })))
    }

    /// Every call waits on a thread of its own; the model itself bounds how many are under way.
    fn ask_endpoint(&self, model: &Arc<RemoteModel>, call: Call) -> Pending {
        let request = RemoteRequest {
            messages: call.messages.clone(),
            image: call.image.clone(),
            max_tokens: self.max_tokens,
            seed: call_seed(self.run_seed, &call.key),
            grammar: call.grammar.clone().filter(|_| !self.free),
            thinking: Some(self.thinking),
            ..RemoteRequest::default()
        };
        let (model, stop) = (model.clone(), self.stop.clone());
        let asking = std::thread::spawn(move || {
            let asked_at = Instant::now();
            let completion = model.complete(&request, &stop);
            (completion, asked_at.elapsed().as_millis() as u64)
        });
        Pending::Remote(Box::new((call, asking)))
    }

    fn wait_for_endpoint(
        &self,
        (call, asking): (Call, JoinHandle<Told>),
    ) -> Result<(Call, Asking, Answer), PanelError> {
        let (completion, elapsed_ms) = asking.join().unwrap_or_else(|panic| resume_unwind(panic));
        let completion = completion.map_err(|error| match error {
            RemoteError::Interrupted => PanelError::Interrupted,
            other => PanelError::Remote(other),
        })?;
        for note in &completion.notes {
            console::note(format!("note: {note}"));
        }
        let asking = Asking {
            seed: call_seed(self.run_seed, &call.key),
            sampling: SamplingLine {
                temperature: None,
                top_k: None,
                top_p: None,
                min_p: None,
                repetition_penalty: None,
                max_tokens: self.max_tokens,
                constrained: completion.is_constrained,
            },
            request: String::new(),
        };
        let answer = Answer {
            text: completion.text,
            tokens: Vec::new(),
            usage: completion.usage,
            finish_reason: completion.finish_reason,
            elapsed_ms,
            answered_by: completion.answered_by,
        };
        Ok((call, asking, answer))
    }

    fn wait(&self, pending: Pending, read: Reader<'_>) -> Result<CallLine, PanelError> {
        let (call, asking, answer) = match pending {
            Pending::Known(record) => return Ok(*record),
            Pending::Done(done) => *done,
            Pending::Local(asked) => self.wait_for_engine(*asked)?,
            Pending::Remote(asked) => self.wait_for_endpoint(*asked)?,
        };
        let record = self.record_of(call, asking, answer, read);
        self.recorder.record(&record)?;
        (self.on_call)(&record);
        Ok(record)
    }

    fn wait_for_engine(&self, asked: Asked) -> Result<(Call, Asking, Answer), PanelError> {
        let Asked {
            call,
            asking,
            ticket,
            asked_at,
        } = asked;
        let wanted = || !self.stop.load(Ordering::Relaxed);
        let completion = ticket.wait_while(wanted).ok_or(PanelError::Interrupted)??;
        let Completion {
            text,
            tokens,
            usage,
            finish_reason,
            ..
        } = completion;
        let answer = Answer {
            text,
            tokens,
            usage,
            finish_reason,
            elapsed_ms: asked_at.elapsed().as_millis() as u64,
            answered_by: None,
        };
        Ok((call, asking, answer))
    }

    fn record_of(&self, call: Call, asking: Asking, answer: Answer, read: Reader<'_>) -> CallLine {
        let (record, parse) = read(&answer.text, answer.finish_reason);
        let CallKey {
            dataset,
            run,
            item,
            agent,
            round,
            purpose,
            sample,
        } = call.key;
        CallLine {
            seq: 0,
            dataset,
            run,
            item,
            agent,
            round,
            purpose,
            sample,
            stage: call.stage,
            backbone: self.members[call.member].source.name(),
            request: asking.request,
            answered_by: answer.answered_by,
            messages: call.messages,
            sampling: asking.sampling,
            seed: asking.seed,
            text: answer.text,
            tokens: answer.tokens,
            record,
            parse,
            usage: answer.usage,
            finish_reason: answer.finish_reason,
            elapsed_ms: answer.elapsed_ms,
            prev: String::new(),
            hash: String::new(),
        }
    }
}
