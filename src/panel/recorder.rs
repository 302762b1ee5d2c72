//! Where a panel's calls and searches are recorded, and where earlier ones are looked up.

use std::collections::HashMap;
use std::sync::mpsc::Sender;

use crate::diagnosis::Failure;
use crate::record::{CallKey, CallLine, SearchKey, SearchLine};

/// Records the calls and searches of a panel.
pub trait Recorder: Send + Sync {
    /// The call of this key in an earlier attempt at the run, if there is one; it is not made again.
    fn find(&self, _key: &CallKey) -> Option<&CallLine> {
        None
    }

    /// A call of another run with the same request hash, if there is one; its answer is used again.
    fn find_equal(&self, _request: &str) -> Option<&CallLine> {
        None
    }

    /// The tokens that the call of this key is said to have given, where they are to be checked; see [`crate::engine::Request::expected`].
    fn expected(&self, _key: &CallKey) -> Option<&[u32]> {
        None
    }

    /// The search of this key in an earlier attempt at the run, if there is one.
    fn find_search(&self, _key: &SearchKey) -> Option<&SearchLine> {
        None
    }

    /// Returns once the search is on disk.
    ///
    /// # Errors
    /// When it could not be written.
    fn record_search(&self, _search: &SearchLine) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns once the call is on disk.
    ///
    /// # Errors
    /// When it could not be written.
    fn record(&self, call: &CallLine) -> Result<(), Failure>;
}

/// Sends the calls to a channel; nothing is written and nothing is looked up.
impl Recorder for Sender<CallLine> {
    fn record(&self, call: &CallLine) -> Result<(), Failure> {
        // A receiver that is gone needs no more calls.
        let _ = self.send(call.clone());
        Ok(())
    }
}

/// Is told of every call; nothing is written and nothing is looked up.
impl<F: Fn(&CallLine) + Send + Sync> Recorder for F {
    fn record(&self, call: &CallLine) -> Result<(), Failure> {
        self(call);
        Ok(())
    }
}

/// The same, where it is known what the calls are said to have given.
pub struct Expecting<R> {
    pub tokens: HashMap<CallKey, Vec<u32>>,
    pub calls: R,
}

impl<R: Recorder> Recorder for Expecting<R> {
    fn expected(&self, key: &CallKey) -> Option<&[u32]> {
        self.tokens.get(key).map(Vec::as_slice)
    }

    fn record(&self, call: &CallLine) -> Result<(), Failure> {
        self.calls.record(call)
    }
}

/// The same, with a channel for searches.
impl<R: Recorder> Recorder for (R, Sender<SearchLine>) {
    fn expected(&self, key: &CallKey) -> Option<&[u32]> {
        self.0.expected(key)
    }

    fn record_search(&self, search: &SearchLine) -> Result<(), Failure> {
        let _ = self.1.send(search.clone());
        Ok(())
    }

    fn record(&self, call: &CallLine) -> Result<(), Failure> {
        self.0.record(call)
    }
}
