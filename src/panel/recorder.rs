//! Where a panel's calls and searches are recorded, and where earlier ones are looked up.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::diagnosis::Failure;
use crate::record::{CallKey, CallLine, SearchKey, SearchLine};

/// Records the calls and searches of a panel.
pub trait Recorder: Send + Sync {
    /// The call of this key in an earlier attempt at the run, if there is one; it is not made again.
    fn find(&self, _key: &CallKey) -> Option<&CallLine> {
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
    fn record_search(&self, _search: &SearchLine) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns once the call is on disk.
    fn record(&self, call: &CallLine) -> Result<(), Failure>;
}

/// Sends calls and searches to channels.
pub struct Telling {
    /// What calls are said to have given, where that is known.
    pub expected: HashMap<CallKey, Vec<u32>>,
    calls: Sender<CallLine>,
    searches: Sender<SearchLine>,
}

impl Telling {
    /// With what receives the calls and the searches.
    pub fn new() -> (Telling, Receiver<CallLine>, Receiver<SearchLine>) {
        let ((sender, calls), (searcher, searches)) = (channel(), channel());
        let expected = HashMap::new();
        (Telling { expected, calls: sender, searches: searcher }, calls, searches)
    }
}

impl Recorder for Telling {
    fn expected(&self, key: &CallKey) -> Option<&[u32]> {
        self.expected.get(key).map(Vec::as_slice)
    }

    fn record_search(&self, search: &SearchLine) -> Result<(), Failure> {
        let _ = self.searches.send(search.clone());
        Ok(())
    }

    fn record(&self, call: &CallLine) -> Result<(), Failure> {
        // A receiver that is gone needs no more calls.
        let _ = self.calls.send(call.clone());
        Ok(())
    }
}
