//! Agents: roles on backbones. Renders their prompts, asks the engines, reads and records what comes back.

pub mod backbone;
mod error;
pub mod generation;
pub mod memory;
pub mod recorder;
mod request;
#[cfg(test)]
pub mod scripted;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::Value;

use self::backbone::Backbone;
pub use self::error::PanelError;
use self::recorder::Recorder;
use crate::engine::{Completion, Grammar, Request, Sampling, Ticket};
use crate::run::records::{
    CallKey, CallRecord, FinishReason, Message, Parse, SamplingRecord, Stage, Usage,
};

/// The agents of a run and where their calls are recorded.
pub struct Panel {
    /// In panel order.
    pub members: Vec<Member>,
    pub recorder: Recorder,
    pub run_seed: u64,
    /// Whether completions are free text; else a grammar holds.
    pub free: bool,
    pub thinking: bool,
    /// Whether free completions run on to their `max_tokens`, as a measurement of equal work wants.
    pub ignore_eos: bool,
    /// Set from outside to stop: calls in flight are dropped.
    pub stop: Arc<AtomicBool>,
    /// Told of every call that was made.
    pub on_call: Box<dyn Fn(&CallRecord) + Send + Sync>,
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
    /// Canned replies, for the tests of protocols.
    #[cfg(test)]
    Scripted(Arc<scripted::Script>),
}

impl Source {
    /// What plans and logs call it.
    pub fn name(&self) -> &str {
        match self {
            Source::Local(backbone) => &backbone.description.checkpoint.name,
            #[cfg(test)]
            Source::Scripted(_) => "scripted",
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
    /// What the text looks like; it holds unless the panel is free. `None`: any text.
    pub grammar: Option<Grammar>,
    /// `None`: as many as the context leaves.
    pub max_tokens: Option<usize>,
}

/// What a system makes of a completion's text: the record, and how it was read.
pub type Reader<'a> = &'a dyn Fn(&str, FinishReason) -> (Value, Parse);

enum Pending {
    Known(Box<CallRecord>),
    Local(Box<Asked>),
    Done(Box<(Call, Asking, Answer)>),
}

/// How a completion is asked for, as the log keeps it.
struct Asking {
    seed: u64,
    sampling: SamplingRecord,
    request: String,
}

/// A call that an engine works on.
struct Asked {
    call: Call,
    asking: Asking,
    ticket: Ticket,
    asked_at: Instant,
}

/// What came back for a call.
struct Answer {
    text: String,
    tokens: Vec<u32>,
    usage: Usage,
    finish_reason: FinishReason,
    elapsed_ms: u64,
}

impl Panel {
    /// Each backbone once, but for those that somebody else still holds.
    pub fn into_backbones(self) -> Vec<Backbone> {
        let members = self.members.into_iter();
        members
            .filter_map(|member| match member.source {
                Source::Local(backbone) => Arc::into_inner(backbone),
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
    pub fn ask_all(
        &self,
        calls: Vec<Call>,
        read: Reader<'_>,
    ) -> Result<Vec<CallRecord>, PanelError> {
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
    pub fn ask_one(&self, call: Call, read: Reader<'_>) -> Result<CallRecord, PanelError> {
        self.wait(self.ask(call)?, read)
    }

    /// Whether every member can be shown an image; none that runs here can.
    pub fn takes_images(&self) -> bool {
        false
    }

    fn ask(&self, call: Call) -> Result<Pending, PanelError> {
        if let Some(known) = self.recorder.find(&call.key) {
            return Ok(Pending::Known(Box::new(known.clone())));
        }
        match &self.members[call.member].source {
            Source::Local(backbone) => self.ask_engine(backbone, call),
            #[cfg(test)]
            Source::Scripted(script) => {
                let answer = Answer {
                    text: script.reply(&call.key, &call.messages),
                    tokens: Vec::new(),
                    usage: Usage::default(),
                    finish_reason: FinishReason::Stop,
                    elapsed_ms: 0,
                };
                let asking = Asking {
                    seed: 0,
                    sampling: sampling_record(&Sampling::default(), 0, false),
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

    fn wait(&self, pending: Pending, read: Reader<'_>) -> Result<CallRecord, PanelError> {
        let (call, asking, answer) = match pending {
            Pending::Known(record) => return Ok(*record),
            Pending::Done(done) => *done,
            Pending::Local(asked) => self.wait_for_engine(*asked)?,
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
        };
        Ok((call, asking, answer))
    }

    fn record_of(
        &self,
        call: Call,
        asking: Asking,
        answer: Answer,
        read: Reader<'_>,
    ) -> CallRecord {
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
        CallRecord {
            seq: 0,
            dataset,
            run,
            item,
            agent,
            round,
            purpose,
            sample,
            stage: call.stage,
            backbone: self.members[call.member].source.name().to_owned(),
            request: asking.request,
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

impl Answer {
    /// As an equal request was answered.
    fn of(call: &CallRecord) -> Answer {
        Answer {
            text: call.text.clone(),
            tokens: call.tokens.clone(),
            usage: call.usage,
            finish_reason: call.finish_reason,
            elapsed_ms: call.elapsed_ms,
        }
    }
}

fn sampling_record(sampling: &Sampling, max_tokens: usize, constrained: bool) -> SamplingRecord {
    SamplingRecord {
        temperature: sampling.temperature,
        top_k: sampling.top_k,
        top_p: sampling.top_p,
        min_p: sampling.min_p,
        repetition_penalty: sampling.repetition_penalty,
        max_tokens,
        constrained,
    }
}
