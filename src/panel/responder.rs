//! What answers an agent's calls: a local model, or one at a remote endpoint.

use std::sync::Arc;

use super::remote::{RemoteModel, RemoteRequest};
use super::{Call, Panel, PanelError, SamplingChoice};
use crate::calls::KeptCall;
use crate::record::SamplingLine;

/// Waits for a completion; dropping it cancels the call.
pub type Waiting = Box<dyn FnOnce() -> Result<KeptCall, PanelError>>;

/// How a call is made, as its line has it, and what waits for its completion.
pub struct Begun {
    pub seed: u64,
    /// What an endpoint says of it comes with the completion.
    pub sampling: SamplingLine,
    /// The hash of everything that determines the answer; empty for a remote endpoint, whose answers are not deterministic.
    pub request: String,
    pub said: Waiting,
}

pub trait Responder: Send + Sync {
    /// Its name in plans and logs.
    fn name(&self) -> String;

    /// Begins to answer `call`; several calls may be in flight at once.
    ///
    /// # Errors
    /// A call that can never be answered, such as a prompt longer than the context.
    fn begin(self: Arc<Self>, call: &Call, panel: &Panel) -> Result<Begun, PanelError>;
}

impl Responder for RemoteModel {
    fn name(&self) -> String {
        self.address().to_string()
    }

    fn begin(self: Arc<Self>, call: &Call, panel: &Panel) -> Result<Begun, PanelError> {
        // An endpoint may not support turning filters off.
        let own = panel.members[call.member].sampling;
        let sampling = SamplingChoice { temperature: call.temperature.or(own.temperature), ..own };
        let request = RemoteRequest {
            messages: call.messages.clone(),
            max_tokens: panel.limit(call),
            seed: panel.seed(call),
            omit_seed: !panel.settings.sends_seed,
            sampling,
            grammar: panel.grammar(call),
            thinking: panel.settings.thinking,
        };
        let sampling = SamplingLine {
            temperature: sampling.temperature,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
            max_tokens: request.max_tokens,
            ..SamplingLine::default()
        };
        let seed = request.seed;
        let said = self.send(request, panel.stop.clone());
        Ok(Begun { seed, sampling, request: String::new(), said })
    }
}
