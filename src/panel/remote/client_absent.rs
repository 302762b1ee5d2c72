//! In place of `client` in a build without the feature `remote`: endpoints are refused.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{Address, RemoteOptions, RemoteRequest};
use crate::diagnosis::Failure;
use crate::panel::PanelError;
use crate::panel::responder::Waiting;

/// A model at an endpoint. It has no values in this build, so its methods are never called.
#[derive(Debug)]
pub enum RemoteModel {}

impl RemoteModel {
    pub fn open(address: &Address, _options: RemoteOptions) -> Result<RemoteModel, Failure> {
        Err(Failure::usage(
            format!("{address} cannot be asked: this build lacks the feature `remote`"),
            "build with the feature `remote`, which is on by default, or name a local model",
        ))
    }

    pub fn address(&self) -> &Address {
        match *self {}
    }

    pub fn look_up(&self, _stop: &AtomicBool) -> Result<(), PanelError> {
        match *self {}
    }

    pub fn send(self: Arc<Self>, _request: RemoteRequest, _stop: Arc<AtomicBool>) -> Waiting {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_the_feature_says_so() {
        let address = Address::parse("openai:m@http://127.0.0.1:9").unwrap();
        let error = RemoteModel::open(&address, RemoteOptions::default()).unwrap_err();
        assert!(error.to_string().contains("lacks the feature"), "{error}");
        assert!(error.hint().unwrap().contains("`remote`"));
    }
}
