//! What answers an agent's calls: a local model, or one at a remote endpoint.

use std::sync::Arc;

use super::answer::Answer;
use super::backbone::Backbone;
use super::remote::{RemoteError, RemoteModel, RemoteRequest};
use super::{Call, Panel, PanelError};
use crate::console;
use crate::record::SamplingLine;

/// Waits for an answer; dropping it cancels the call.
pub type Waiting = Box<dyn FnOnce() -> Result<Answer, PanelError>>;

pub trait Responder: Send + Sync {
    /// Its name in plans and logs.
    fn name(&self) -> String;

    /// Begins to answer `call`; several calls may be in flight at once.
    ///
    /// # Errors
    /// A call that can never be answered, such as a prompt longer than the context.
    fn begin(self: Arc<Self>, call: &Call, panel: &Panel) -> Result<Waiting, PanelError>;

    fn takes_images(&self) -> bool {
        false
    }

    /// The local model, where this is the last reference to one.
    fn into_backbone(self: Arc<Self>) -> Option<Backbone> {
        None
    }
}

impl Responder for RemoteModel {
    fn name(&self) -> String {
        self.address().to_string()
    }

    fn takes_images(&self) -> bool {
        true
    }

    fn begin(self: Arc<Self>, call: &Call, panel: &Panel) -> Result<Waiting, PanelError> {
        let seed = panel.seed(call);
        let sampling = panel.remote_sampling(call);
        let max_tokens = panel.limit(call);
        let request = RemoteRequest {
            messages: call.messages.clone(),
            image: call.image.clone(),
            max_tokens,
            seed,
            omit_seed: !panel.settings.sends_seed,
            sampling,
            grammar: panel.grammar(call),
            thinking: panel.settings.thinking,
        };
        let sent = self.send(request, panel.stop.clone());
        Ok(Box::new(move || {
            let completion = sent().map_err(|error| match error {
                RemoteError::Interrupted => PanelError::Interrupted,
                other => PanelError::Remote(other),
            })?;
            for note in &completion.notes {
                console::note(format!("note: {note}"));
            }
            Ok(Answer {
                seed,
                sampling: SamplingLine {
                    temperature: sampling.temperature,
                    top_k: sampling.top_k,
                    top_p: sampling.top_p,
                    min_p: sampling.min_p,
                    repetition_penalty: None,
                    max_tokens,
                    constrained: completion.is_constrained,
                    not_sent: completion.not_sent,
                },
                request: String::new(),
                text: completion.text,
                tokens: Vec::new(),
                usage: completion.usage,
                finish_reason: completion.finish_reason,
                elapsed_ms: completion.elapsed_ms,
                answered_by: completion.answered_by,
            })
        }))
    }
}
