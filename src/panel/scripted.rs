//! Canned replies in a model's place, so that a protocol's every path can be walked in a test.

use std::sync::Arc;

use super::answer::{Answer, sampling_line};
use super::responder::{Responder, Waiting};
use super::{Call, CallSettings, DecodingMode, Member, Panel, PanelError, SamplingChoice};
use crate::calls::Kept;
use crate::record::{CallKey, CallLine, FinishReason, Message, Usage};

type Reply = dyn Fn(&CallKey, &[Message]) -> String + Send + Sync;

/// Says what a model says to a call.
pub struct Script {
    reply: Box<Reply>,
    finish_reason: FinishReason,
}

impl Script {
    pub fn new(reply: impl Fn(&CallKey, &[Message]) -> String + Send + Sync + 'static) -> Script {
        Script { reply: Box::new(reply), finish_reason: FinishReason::Stop }
    }

    /// The same with replies that end so.
    pub fn ending(self, finish_reason: FinishReason) -> Script {
        Script { finish_reason, ..self }
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
        let answer = Answer {
            seed: 0,
            sampling,
            request: String::new(),
            said: Kept {
                text: (self.reply)(&call.key, &call.messages),
                tokens: Vec::new(),
                finish_reason: self.finish_reason,
                usage: Usage::default(),
                elapsed_ms: 0,
                elsewhere: None,
            },
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
            ignore_eos: false,
        },
        salt: None,
        stop: Arc::default(),
        retriever: Some(Arc::new(crate::retrieval::scripted::Scripted::default())),
    };
    (panel, calls)
}
