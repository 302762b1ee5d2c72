//! How a model is found and fetched.

use std::path::PathBuf;

use super::{Environment, HubError, OfflineReason, fetch};

#[derive(Clone, Debug)]
pub struct HubOptions {
    /// Why the command forbids connections; the environment may forbid them too.
    pub offline: Option<OfflineReason>,
    /// Whether fetching prints nothing to stderr.
    pub quiet: bool,
    pub environment: Environment,
}

impl HubOptions {
    pub fn new(environment: Environment) -> Self {
        Self { offline: None, quiet: false, environment }
    }

    /// The same for a command that only looks at what is there.
    pub fn local(&self) -> Self {
        let reason = self.offline_reason().unwrap_or(OfflineReason::Command);
        Self { offline: Some(reason), ..self.clone() }
    }

    /// Why nothing may be fetched; `None` where it may.
    pub fn fetch_refusal(&self) -> Option<OfflineReason> {
        let build = (!fetch::AVAILABLE).then_some(OfflineReason::Build);
        self.offline_reason().or(build)
    }

    /// Refuses before any connection where one is forbidden; `name` is what `models` or `data` would fetch.
    ///
    /// # Errors
    /// [`HubError::Forbidden`].
    pub fn allow_fetch(&self, verb: &'static str, name: &str) -> Result<(), HubError> {
        let forbidden = |reason| HubError::Forbidden { verb, name: name.to_owned(), reason };
        self.fetch_refusal().map_or(Ok(()), |reason| Err(forbidden(reason)))
    }

    /// What forbids connections, if anything: the command, or the variable that is set.
    pub fn offline_reason(&self) -> Option<OfflineReason> {
        self.offline.or(self.environment.offline.map(OfflineReason::Variable))
    }

    /// # Errors
    /// [`HubError::NoCache`]: no variable names a place and there is no home directory.
    pub fn cache(&self) -> Result<PathBuf, HubError> {
        self.environment.cache.clone().ok_or(HubError::NoCache)
    }
}
