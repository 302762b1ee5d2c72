//! The twin of `client` in a build without the feature `remote`: the same calls, refused.

use std::convert::Infallible;
use std::sync::atomic::AtomicBool;

use super::{Address, RemoteCompletion, RemoteError, RemoteOptions, RemoteRequest, Served};

/// Whether this build can ask an endpoint at all.
pub const AVAILABLE: bool = false;

/// A model at an endpoint, which this build never has.
#[derive(Debug)]
pub struct RemoteModel(Infallible);

impl RemoteModel {
    /// Refuses.
    ///
    /// # Errors
    /// Always [`RemoteError::NoFeature`].
    pub fn open(address: &Address, _options: RemoteOptions) -> Result<RemoteModel, RemoteError> {
        Err(RemoteError::NoFeature {
            address: address.clone(),
        })
    }

    pub fn address(&self) -> &Address {
        match self.0 {}
    }

    /// # Errors
    /// It is never called.
    pub fn look_up(&self, _stop: &AtomicBool) -> Result<Served, RemoteError> {
        match self.0 {}
    }

    /// # Errors
    /// It is never called.
    pub fn complete(
        &self,
        _request: &RemoteRequest,
        _stop: &AtomicBool,
    ) -> Result<RemoteCompletion, RemoteError> {
        match self.0 {}
    }

    pub fn refused(&self) -> Vec<String> {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::Diagnosis;

    #[test]
    fn a_build_without_the_feature_says_so() {
        let address = Address::parse("openai:m@http://127.0.0.1:9").unwrap();
        let error = RemoteModel::open(&address, RemoteOptions::default()).unwrap_err();
        assert!(matches!(error, RemoteError::NoFeature { .. }), "{error}");
        assert!(!error.concerns_item() && error.hint().unwrap().contains("`remote`"));
    }
}
