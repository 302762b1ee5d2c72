//! Canned replies in a model's place, so that a protocol's every path can be walked in a test.

use std::sync::Arc;

use super::recorder::Recorder;
use super::{Member, Panel, Source};
use crate::record::{CallKey, CallLine, Message};

type Reply = dyn Fn(&CallKey, &[Message]) -> String + Send + Sync;

/// Says what a model says to a call.
pub struct Script(Box<Reply>);

impl Script {
    pub fn new(reply: impl Fn(&CallKey, &[Message]) -> String + Send + Sync + 'static) -> Script {
        Script(Box::new(reply))
    }

    pub fn reply(&self, key: &CallKey, messages: &[Message]) -> String {
        (self.0)(key, messages)
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
                source: Source::Scripted(script.clone()),
            })
            .collect(),
        recorder: Recorder::Replay(sender),
        run_seed: 7,
        free: true,
        thinking: false,
        max_tokens: None,
        ignore_eos: false,
        stop: Arc::default(),
        on_call: Box::new(|_| {}),
    };
    (panel, calls)
}
