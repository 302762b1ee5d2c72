//! Where finished calls go: a run's log, or, for a replay, whoever compares.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use crate::experiment::error::RunError;
use crate::experiment::log::Log;
use crate::record::{CallKey, CallLine};

pub enum Recorder {
    /// A run: calls of an earlier attempt are not made again.
    Log {
        log: Log,
        finished: HashMap<CallKey, CallLine>,
        /// Calls of other runs, by their requests: an equal one is not made again.
        shared: Arc<HashMap<String, CallLine>>,
    },
    /// A replay or a measurement: every call is made again, and nothing is written.
    Replay(Sender<CallLine>),
}

impl Recorder {
    /// The call as it was made before, if it was.
    pub fn find(&self, key: &CallKey) -> Option<&CallLine> {
        match self {
            Recorder::Log { finished, .. } => finished.get(key),
            Recorder::Replay(_) => None,
        }
    }

    /// A call of another run with the same request, if there is one.
    pub fn find_equal(&self, request: &str) -> Option<&CallLine> {
        match self {
            Recorder::Log { shared, .. } => shared.get(request),
            Recorder::Replay(_) => None,
        }
    }

    /// Returns once the call is durable.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn record(&self, call: &CallLine) -> Result<(), RunError> {
        match self {
            Recorder::Log { log, .. } => log.call(call.clone()),
            Recorder::Replay(calls) => {
                // A reader that is gone has seen enough.
                let _ = calls.send(call.clone());
                Ok(())
            }
        }
    }
}
