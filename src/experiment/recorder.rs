//! The recorder of a run: its log, what an earlier attempt logged, and the calls of other runs.

use std::collections::HashMap;
use std::sync::Arc;

use super::log::Log;
use crate::diagnosis::Failure;
use crate::panel::recorder::Recorder;
use crate::record::{CallKey, CallLine};

pub(super) struct LogRecorder {
    pub log: Log,
    pub finished: HashMap<CallKey, CallLine>,
    /// By their requests.
    pub shared: Arc<HashMap<String, CallLine>>,
}

impl Recorder for LogRecorder {
    fn find(&self, key: &CallKey) -> Option<&CallLine> {
        self.finished.get(key)
    }

    fn find_equal(&self, request: &str) -> Option<&CallLine> {
        self.shared.get(request)
    }

    fn record(&self, call: &CallLine) -> Result<(), Failure> {
        Ok(self.log.call(call.clone())?)
    }
}
