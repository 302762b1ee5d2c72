//! The recorder of a run: its log, what an earlier attempt logged, and the calls of other runs.

use std::collections::HashMap;
use std::sync::Arc;

use super::driver::Observer;
use super::log::Log;
use crate::diagnosis::Failure;
use crate::panel::recorder::Recorder;
use crate::record::{CallKey, CallLine, SearchKey, SearchLine};

pub(super) struct LogRecorder {
    pub log: Log,
    pub finished: HashMap<CallKey, CallLine>,
    pub searches: HashMap<SearchKey, SearchLine>,
    /// Whether the log keeps the texts of passages, or their sums alone.
    pub keeps_passages: bool,
    /// By their requests.
    pub shared: Arc<HashMap<String, CallLine>>,
    /// Told of every call once it is logged.
    pub observer: Arc<dyn Observer>,
}

impl Recorder for LogRecorder {
    fn find(&self, key: &CallKey) -> Option<&CallLine> {
        self.finished.get(key)
    }

    fn find_equal(&self, request: &str) -> Option<&CallLine> {
        self.shared.get(request)
    }

    fn find_search(&self, key: &SearchKey) -> Option<&SearchLine> {
        self.searches.get(key)
    }

    fn record_search(&self, search: &SearchLine) -> Result<(), Failure> {
        let mut search = search.clone();
        if !self.keeps_passages {
            search.shown.iter_mut().for_each(|passage| passage.text = None);
        }
        Ok(self.log.search(search)?)
    }

    fn record(&self, call: &CallLine) -> Result<(), Failure> {
        self.log.call(call.clone())?;
        self.observer.call(call);
        Ok(())
    }
}
