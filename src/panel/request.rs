//! Turns a call into an engine's request, and waits for its completion.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::backbone::Backbone;
use super::request_digest::digest;
use super::responder::{Begun, Responder, Waiting};
use super::{Call, DecodingMode, Panel, PanelError, SamplingChoice};
use crate::calls::{KeptCall, store_key};
use crate::engine::{Constraint, Grammar, Request, Stop};
use crate::record::SamplingLine;

impl Responder for Backbone {
    fn name(&self) -> String {
        self.description.checkpoint.name.clone()
    }

    fn begin(self: Arc<Self>, call: &Call, panel: &Panel) -> Result<Begun, PanelError> {
        let request = panel.request(&self, call)?;
        let digest = digest(&self.identity, &request);
        let (seed, drawn) = (request.seed, request.sampling);
        let sampling = SamplingLine {
            temperature: Some(drawn.temperature),
            top_k: drawn.top_k,
            top_p: drawn.top_p,
            min_p: drawn.min_p,
            repetition_penalty: drawn.repetition_penalty,
            max_tokens: Some(request.max_tokens),
            constrained: request.constraint.is_some(),
            not_sent: Vec::new(),
        };
        let (key, calls) = (store_key(&digest, panel.salt), self.calls.clone());
        let said: Waiting = match calls.get(&key) {
            Some(kept) => Box::new(|| Ok(kept)),
            None => {
                let said = self.ask(request, panel.stop.clone())?;
                Box::new(move || said().inspect(|said| calls.put(&key, said)))
            }
        };
        Ok(Begun { seed, sampling, request: digest, said })
    }
}

impl Backbone {
    fn ask(&self, request: Request, stop: Arc<AtomicBool>) -> Result<Waiting, PanelError> {
        let asked_at = Instant::now();
        let ticket = self.engine.submit(request)?;
        Ok(Box::new(move || {
            let wanted = || !stop.load(Ordering::Relaxed);
            let completion = ticket.wait_while(wanted).ok_or(PanelError::Interrupted)??;
            Ok(KeptCall {
                text: completion.text,
                tokens: completion.tokens,
                finish_reason: completion.finish_reason,
                usage: completion.usage,
                elapsed_ms: asked_at.elapsed().as_millis() as u64,
                elsewhere: None,
            })
        }))
    }
}

impl Panel {
    /// The grammar that constrains the completion of `call`, if any.
    pub(super) fn grammar(&self, call: &Call) -> Option<Grammar> {
        match self.settings.decoding {
            DecodingMode::Grammar => call.grammar.clone(),
            DecodingMode::Json => {
                matches!(call.grammar, Some(Grammar::JsonSchema(_))).then_some(Grammar::JsonObject)
            }
            DecodingMode::Text => None,
        }
    }

    /// The request to `backbone` for `call`.
    fn request(&self, backbone: &Backbone, call: &Call) -> Result<Request, PanelError> {
        let description = &backbone.description;
        let thinks = self.settings.thinking.unwrap_or(false);
        let tokens = description.tokenise(&call.messages, thinks)?;
        let context = description.context;
        let room = context.saturating_sub(tokens.len());
        if room == 0 {
            return Err(PanelError::PromptTooLong { prompt: tokens.len(), context });
        }
        let own = self.members[call.member].sampling;
        let sampling = match call.temperature {
            None => own,
            temperature => SamplingChoice {
                temperature,
                top_p: Some(1.0),
                top_k: Some(0),
                min_p: Some(0.0),
                ..own
            },
        };
        let constraint = self
            .grammar(call)
            .map(|grammar| Constraint { grammar, after: backbone.think_end.filter(|_| thinks) });
        Ok(Request {
            tokens,
            sampling: sampling.over(description.generation.sampling),
            seed: self.seed(call),
            constraint,
            stop: Stop { ids: description.generation.eos_ids.clone(), ..Stop::default() },
            max_tokens: self.limit(call).map_or(room, |limit| limit.min(room)),
            salt: self.salt,
            caller: self.salt.map_or(0, |salt| u128::from_le_bytes(salt) as u64),
            expected: self.recorder.expected(&call.key).unwrap_or_default().to_vec(),
            ..Request::default()
        })
    }
}
