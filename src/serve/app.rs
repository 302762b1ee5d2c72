//! The state shared by all handlers: options, models and systems, keys, and the phase of the server.

use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use super::admission::{Admission, KeyLoad};
use super::audit::Audit;
use super::budget::{Budget, Turns};
use super::case::pool::Cases;
use super::error::{ApiError, Code};
use super::failures::Failures;
use super::guard::Caller;
use super::keys::Key;
use super::metrics::Metrics;
use super::models::Served;
use super::options::ServeOptions;
use crate::diagnosis::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Serving,
    /// Running requests may finish; new ones are refused.
    Draining,
    /// Running requests are aborted.
    Cut,
}

/// The holders of the current keys.
#[derive(Debug, Default)]
pub struct KeyRing {
    callers: Vec<Caller>,
}

impl KeyRing {
    /// A key that was there before goes on with its load.
    pub fn new(keys: Vec<Key>, before: Option<&KeyRing>) -> KeyRing {
        let load_of = |key: &Key| {
            let mut callers = before.into_iter().flat_map(|ring| &ring.callers);
            let old = callers.find(|old| old.key().sum() == key.sum());
            old.map_or_else(KeyLoad::default, Caller::load)
        };
        let caller = |key: Key| Caller::new(load_of(&key), key);
        KeyRing { callers: keys.into_iter().map(caller).collect() }
    }

    /// The holder of this key. All keys are compared, so that the time tells nothing.
    pub fn find(&self, given: &str) -> Option<&Caller> {
        self.callers.iter().fold(None, |found, caller| match caller.key().is(given) {
            true => Some(caller),
            false => found,
        })
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.callers.iter().map(Caller::name)
    }
}

/// The shared state.
pub struct App {
    pub options: ServeOptions,
    pub phase: watch::Receiver<Phase>,
    /// `None` if no key is needed.
    pub keys: watch::Receiver<Option<Arc<KeyRing>>>,
    pub failures: Failures,
    pub metrics: Metrics,
    pub audit: Audit,
    /// Of bodies in flight.
    pub budget: Budget,
    /// Of what their texts need while they are tokenised.
    pub turns: Turns,
    pub cases: Cases,
    /// When the process started, in seconds since 1970.
    pub created: u64,
    served: OnceLock<(Served, Arc<Admission>)>,
}

impl App {
    pub fn new(
        options: ServeOptions,
        phase: watch::Receiver<Phase>,
        keys: watch::Receiver<Option<Arc<KeyRing>>>,
    ) -> Result<App, Failure> {
        let metrics = Metrics::new(&options.metrics_prefix);
        let audit = options.audit.as_ref().map(Audit::open).transpose()?.unwrap_or_default();
        let created =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Ok(App {
            budget: Budget::new(options.limits.bodies_bytes),
            turns: Turns::new(options.limits.bodies_bytes),
            cases: Cases::start(options.limits.cases, &metrics.cases, &audit)?,
            options,
            phase,
            keys,
            failures: Failures::default(),
            metrics,
            audit,
            created,
            served: OnceLock::new(),
        })
    }

    /// Starts to serve these models and systems.
    pub fn begin(&self, served: Served) {
        let admission = Admission::new(&self.options.limits, served.kv_tokens());
        self.audit.served(&served, &self.options.arguments);
        let _ = self.served.set((served, Arc::new(admission)));
    }

    /// The models and systems.
    ///
    /// # Errors
    /// While models are loading, while the server shuts down, and if an engine died.
    pub fn served(&self) -> Result<&Served, ApiError> {
        if *self.phase.borrow() != Phase::Serving {
            return Err(ApiError::draining());
        }
        let served = self.loaded().ok_or_else(loading)?;
        match served.failure() {
            None => Ok(served),
            Some(error) => {
                Err(ApiError::new(Code::EngineFailed, error.to_string()).retry_after(10))
            }
        }
    }

    /// The models and systems, in any phase.
    pub fn loaded(&self) -> Option<&Served> {
        self.served.get().map(|(served, _)| served)
    }

    pub fn admission(&self) -> Result<&Arc<Admission>, ApiError> {
        self.served.get().map(|(_, admission)| admission).ok_or_else(loading)
    }
}

fn loading() -> ApiError {
    ApiError::new(Code::Loading, "the models are loading").retry_after(5)
}
