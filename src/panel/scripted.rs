//! Canned replies in a model's place, so that a protocol's every path can be walked in a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::answer::{Answer, sampling_line};
use super::responder::{Responder, Waiting};
use super::{Call, CallSettings, DecodingMode, Member, Panel, PanelError, SamplingChoice};
use crate::digest::sha256;
use crate::record::{CallKey, CallLine, FinishReason, Message, Usage};

type Reply = dyn Fn(&CallKey, &[Message]) -> String + Send + Sync;

/// Says what a model says to a call.
pub struct Script {
    reply: Box<Reply>,
    finish_reason: FinishReason,
    /// Its model's name, and how many calls it answered, where its requests have sums.
    model: Option<(&'static str, Arc<AtomicU32>)>,
}

impl Script {
    pub fn new(reply: impl Fn(&CallKey, &[Message]) -> String + Send + Sync + 'static) -> Script {
        Script { reply: Box::new(reply), finish_reason: FinishReason::Stop, model: None }
    }

    /// The same with replies that end so.
    pub fn ending(self, finish_reason: FinishReason) -> Script {
        Script { finish_reason, ..self }
    }

    /// The same as a local model: its requests have sums, and what the recorder knows is not answered again. Counts what is.
    pub fn model(self, name: &'static str, answered: Arc<AtomicU32>) -> Script {
        Script { model: Some((name, answered)), ..self }
    }
}

impl Responder for Script {
    fn name(&self) -> String {
        "scripted".to_owned()
    }

    fn begin(self: Arc<Self>, call: &Call, panel: &Panel) -> Result<Waiting, PanelError> {
        let mut sampling =
            sampling_line(&Default::default(), panel.limit(call).unwrap_or_default(), false);
        sampling.temperature = call.temperature.or(sampling.temperature);
        let mut request = String::new();
        if let Some((name, answered)) = &self.model {
            request = sha256(format!("{name} {:?} {}", call.messages, panel.seed(call)));
            if let Some(equal) = panel.recorder.find_equal(&request) {
                let answer = Answer::from(equal);
                return Ok(Box::new(|| Ok(answer)));
            }
            answered.fetch_add(1, Ordering::Relaxed);
        }
        let answer = Answer {
            seed: 0,
            sampling,
            request,
            text: (self.reply)(&call.key, &call.messages),
            tokens: Vec::new(),
            usage: Usage::default(),
            finish_reason: self.finish_reason,
            elapsed_ms: 0,
            answered_by: None,
        };
        Ok(Box::new(|| Ok(answer)))
    }
}

/// A panel of `agents` that all speak by `script`, and what records their calls.
pub fn panel(agents: &[String], script: Script) -> (Panel, std::sync::mpsc::Receiver<CallLine>) {
    let (sender, calls) = std::sync::mpsc::channel();
    let script = Arc::new(script);
    let panel = Panel {
        members: agents
            .iter()
            .map(|agent| Member {
                agent: agent.clone(),
                source: script.clone(),
                sampling: SamplingChoice::default(),
            })
            .collect(),
        recorder: Box::new(sender),
        run_seed: 7,
        settings: CallSettings {
            decoding: DecodingMode::Text,
            thinking: Some(false),
            max_tokens: Some(4096),
            sends_seed: true,
            reask: None,
            ignore_eos: false,
        },
        salt: None,
        stop: Arc::default(),
        retriever: Some(Arc::new(crate::retrieval::scripted::Scripted::default())),
    };
    (panel, calls)
}
