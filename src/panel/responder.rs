//! What answers an agent's calls: a local model, or one at a remote endpoint.

use std::sync::Arc;

use super::remote::{RemoteModel, RemoteRequest};
use super::{Call, Panel, PanelError, SamplingChoice};
use crate::calls::{Kept, Store, StoreKey};
use crate::digest::sha256;
use crate::record::SamplingLine;

/// Waits for a completion; dropping it cancels the call.
pub type Waiting = Box<dyn FnOnce() -> Result<Kept, PanelError>>;

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

    fn takes_images(&self) -> bool {
        false
    }

    /// How many completions came out of the store of calls, which several may share.
    fn taken(&self) -> u64 {
        0
    }
}

/// A model at an endpoint.
pub struct Endpoint {
    pub model: Arc<RemoteModel>,
    /// Where its completions are kept, and looked up, though it may answer otherwise when it is asked again.
    pub calls: Arc<Store>,
}

impl Responder for Endpoint {
    fn name(&self) -> String {
        self.model.address().to_string()
    }

    fn takes_images(&self) -> bool {
        true
    }

    fn begin(self: Arc<Self>, call: &Call, panel: &Panel) -> Result<Begun, PanelError> {
        // An endpoint may not support turning filters off.
        let own = panel.members[call.member].sampling;
        let sampling = SamplingChoice { temperature: call.temperature.or(own.temperature), ..own };
        let request = RemoteRequest {
            messages: call.messages.clone(),
            image: call.image.clone(),
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
            repetition_penalty: None,
            max_tokens: request.max_tokens,
            constrained: false,
            not_sent: Vec::new(),
        };
        let seed = request.seed;
        // What is in an image is not in the request.
        let calls = Some(self.calls.clone());
        let calls = calls.filter(|calls| calls.keeps_remote() && call.image.is_none());
        let sum = sha256(format!("{} {request:?}", self.name()));
        let said = through_store(calls, &sum, panel, || {
            Ok(self.model.clone().send(request, panel.stop.clone()))
        })?;
        Ok(Begun { seed, sampling, request: String::new(), said })
    }

    fn taken(&self) -> u64 {
        self.calls.taken()
    }
}

/// The completion that a store holds of the request of this sum, else the one that `ask` begins to get, which the store then keeps.
pub(super) fn through_store(
    calls: Option<Arc<Store>>,
    sum: &str,
    panel: &Panel,
    ask: impl FnOnce() -> Result<Waiting, PanelError>,
) -> Result<Waiting, PanelError> {
    let Some(calls) = calls else { return ask() };
    let key = StoreKey::of(sum, panel.salt);
    if let Some(kept) = calls.get(&key) {
        return Ok(Box::new(|| Ok(kept)));
    }
    let said = ask()?;
    Ok(Box::new(move || {
        let said = said()?;
        calls.put(&key, &said);
        Ok(said)
    }))
}
