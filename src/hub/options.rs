//! How a model is found and fetched.

use super::{Cache, Environment, HubError, OfflineReason, fetch};

#[derive(Clone, Debug)]
pub struct HubOptions {
    /// Whether `--offline` was given; the environment may forbid connections too.
    pub offline: bool,
    /// A branch, tag or commit in place of the card's; without a card, in place of `main`.
    pub revision: Option<String>,
    /// Whether fetching prints nothing to stderr.
    pub quiet: bool,
    pub environment: Environment,
}

impl HubOptions {
    pub fn new(environment: Environment) -> Self {
        Self { offline: false, revision: None, quiet: false, environment }
    }

    /// Why nothing may be fetched; `None` where it may.
    pub fn fetch_refusal(&self) -> Option<OfflineReason> {
        let build = (!fetch::AVAILABLE).then_some(OfflineReason::Build);
        self.offline_reason().or(build)
    }

    /// The flag or variable by which the user forbids connections, if any.
    pub fn offline_reason(&self) -> Option<OfflineReason> {
        match self.environment.offline {
            _ if self.offline => Some(OfflineReason::Flag),
            variable => variable.map(OfflineReason::Variable),
        }
    }

    /// # Errors
    /// [`HubError::NoCache`]: no variable names a place and there is no home directory.
    pub fn cache(&self) -> Result<Cache, HubError> {
        self.environment.cache.clone().map(Cache::new).ok_or(HubError::NoCache)
    }
}
