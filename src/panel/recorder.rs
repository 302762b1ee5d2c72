//! Where finished calls go: a run's log, or, for a replay, whoever compares.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use crate::run::error::RunError;
use crate::run::log::Log;
use crate::run::records::{CallKey, CallRecord};

pub enum Recorder {
    /// A run: calls of an earlier attempt are not made again.
    Log {
        log: Log,
        finished: HashMap<CallKey, CallRecord>,
        /// Calls of other runs, by their requests: an equal one is not made again.
        shared: Arc<HashMap<String, CallRecord>>,
    },
    /// A replay or a measurement: every call is made again, and nothing is written.
    Replay(Sender<CallRecord>),
}

impl Recorder {
    /// The call as it was made before, if it was.
    pub fn find(&self, key: &CallKey) -> Option<&CallRecord> {
        match self {
            Recorder::Log { finished, .. } => finished.get(key),
            Recorder::Replay(_) => None,
        }
    }

    /// A call of another run with the same request, if there is one.
    pub fn find_equal(&self, request: &str) -> Option<&CallRecord> {
        match self {
            Recorder::Log { shared, .. } => shared.get(request),
            Recorder::Replay(_) => None,
        }
    }

    /// Returns once the call is durable.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn record(&self, call: &CallRecord) -> Result<(), RunError> {
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
