//! Canned replies in a model's place, so that a protocol's every path can be walked in a test.

use std::sync::Arc;

use super::recorder::Telling;
use super::responder::{Begun, Responder};
use super::{Call, CallSettings, DecodingMode, Member, Panel, PanelError, SamplingChoice};
use crate::calls::KeptCall;
use crate::engine::Sampling;
use crate::record::{CallKey, CallLine, FinishReason, Message, SamplingLine, Usage};

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

    fn begin(self: Arc<Self>, call: &Call, panel: &Panel) -> Result<Begun, PanelError> {
        let mut begun = begun((self.reply)(&call.key, &call.messages), self.finish_reason);
        begun.sampling.temperature = call.temperature.or(begun.sampling.temperature);
        begun.sampling.max_tokens = Some(panel.limit(call).unwrap_or_default());
        Ok(begun)
    }
}

/// A call that is answered so, by the engine's own sampling.
pub fn begun(text: String, finish_reason: FinishReason) -> Begun {
    let drawn = Sampling::default();
    let sampling = SamplingLine {
        temperature: Some(drawn.temperature),
        top_k: drawn.top_k,
        top_p: drawn.top_p,
        min_p: drawn.min_p,
        repetition_penalty: drawn.repetition_penalty,
        max_tokens: Some(0),
        constrained: false,
        not_sent: Vec::new(),
    };
    let said = KeptCall {
        text,
        tokens: Vec::new(),
        finish_reason,
        usage: Usage::default(),
        elapsed_ms: 0,
        elsewhere: None,
    };
    Begun { seed: 0, sampling, request: String::new(), said: Box::new(|| Ok(said)) }
}

/// A panel of `agents` that all speak by `script`, and what records their calls.
pub fn panel(agents: &[String], script: Script) -> (Panel, std::sync::mpsc::Receiver<CallLine>) {
    let (recorder, calls, _) = Telling::new();
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
        recorder: Box::new(recorder),
        run_seed: 7,
        settings: CallSettings {
            decoding: DecodingMode::Text,
            thinking: Some(false),
            max_tokens: Some(4096),
            sends_seed: true,
        },
        salt: None,
        stop: Arc::default(),
        retriever: Some(Arc::new(crate::retrieval::scripted::Scripted::default())),
    };
    (panel, calls)
}
