//! What answers an agent's calls: a local model, or one at a remote endpoint.

use std::sync::Arc;

use super::answer::Answer;
use super::backbone::Backbone;
use super::remote::{RemoteCompletion, RemoteError, RemoteModel, RemoteRequest};
use super::{Call, Panel, PanelError};
use crate::calls::{Elsewhere, Kept, Key, Store};
use crate::console;
use crate::digest::sha256;
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

    /// How many completions came out of the store of calls, which several may share.
    fn taken(&self) -> u64 {
        0
    }

    /// The local model, where this is the last reference to one.
    fn into_backbone(self: Arc<Self>) -> Option<Backbone> {
        None
    }
}

/// A model at an endpoint.
pub struct Endpoint {
    pub model: Arc<RemoteModel>,
    /// Where its completions are kept, and looked up, though it may answer otherwise when it is asked again.
    pub calls: Option<Arc<Store>>,
}

impl Responder for Endpoint {
    fn name(&self) -> String {
        self.model.address().to_string()
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
        let answer = move |said: Kept| {
            let Elsewhere { constrained, not_sent, .. } =
                said.elsewhere.clone().unwrap_or_default();
            let sampling = SamplingLine {
                temperature: sampling.temperature,
                top_k: sampling.top_k,
                top_p: sampling.top_p,
                min_p: sampling.min_p,
                repetition_penalty: None,
                max_tokens,
                constrained,
                not_sent,
            };
            Answer { seed, sampling, request: String::new(), said }
        };
        // What is in an image is not in the request.
        let calls = self.calls.clone().filter(|_| call.image.is_none());
        let sum = sha256(format!("{} {request:?}", self.name()));
        let calls = calls.map(|calls| (Key::of(&sum, panel.salt), calls));
        if let Some(kept) = calls.as_ref().and_then(|(key, calls)| calls.get(key)) {
            return Ok(Box::new(move || Ok(answer(kept))));
        }
        let sent = self.model.clone().send(request, panel.stop.clone());
        Ok(Box::new(move || {
            let RemoteCompletion { said, notes, .. } = sent().map_err(|error| match error {
                RemoteError::Interrupted => PanelError::Interrupted,
                other => PanelError::Remote(other),
            })?;
            for note in &notes {
                console::note(format!("note: {note}"));
            }
            if let Some((key, calls)) = calls {
                calls.put(&key, &said);
            }
            Ok(answer(said))
        }))
    }

    fn taken(&self) -> u64 {
        self.calls.as_ref().map_or(0, |calls| calls.taken())
    }
}
