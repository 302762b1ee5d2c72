//! Where finished calls go, and where calls that were made before are found.

use std::sync::mpsc::Sender;

use crate::diagnosis::Failure;
use crate::record::{CallKey, CallLine, SearchKey, SearchLine};

/// What keeps the calls of a panel.
pub trait Recorder: Send + Sync {
    /// The call as it was made before, if it was: it is not made again.
    fn find(&self, _key: &CallKey) -> Option<&CallLine> {
        None
    }

    /// A call of another run with the same request, if there is one: an equal one is not made again.
    fn find_equal(&self, _request: &str) -> Option<&CallLine> {
        None
    }

    /// The search as it was made before, if it was.
    fn find_search(&self, _key: &SearchKey) -> Option<&SearchLine> {
        None
    }

    /// Returns once the search is durable.
    ///
    /// # Errors
    /// When it could not be written.
    fn record_search(&self, _search: &SearchLine) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns once the call is durable.
    ///
    /// # Errors
    /// When it could not be written.
    fn record(&self, call: &CallLine) -> Result<(), Failure>;
}

/// Every call is made, and nothing is written: whoever receives has the calls.
impl Recorder for Sender<CallLine> {
    fn record(&self, call: &CallLine) -> Result<(), Failure> {
        // A reader that is gone has seen enough.
        let _ = self.send(call.clone());
        Ok(())
    }
}

/// As a sender of calls, with the searches beside them.
impl Recorder for (Sender<CallLine>, Sender<SearchLine>) {
    fn record_search(&self, search: &SearchLine) -> Result<(), Failure> {
        let _ = self.1.send(search.clone());
        Ok(())
    }

    fn record(&self, call: &CallLine) -> Result<(), Failure> {
        self.0.record(call)
    }
}
