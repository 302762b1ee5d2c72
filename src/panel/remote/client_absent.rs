//! In place of `client` in a build without the feature `remote`: endpoints are refused.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{Address, RemoteError, RemoteOptions, RemoteRequest, Waiting};

/// A model at an endpoint. It has no values in this build, so its methods are never called.
#[derive(Debug)]
pub enum RemoteModel {}

impl RemoteModel {
    /// # Errors
    /// Always [`RemoteError::NoFeature`].
    pub fn open(address: &Address, _options: RemoteOptions) -> Result<RemoteModel, RemoteError> {
        Err(RemoteError::NoFeature { address: address.clone() })
    }

    pub fn address(&self) -> &Address {
        match *self {}
    }

    pub fn look_up(&self, _stop: &AtomicBool) -> Result<Option<bool>, RemoteError> {
        match *self {}
    }

    pub fn send(self: Arc<Self>, _request: RemoteRequest, _stop: Arc<AtomicBool>) -> Waiting {
        match *self {}
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
