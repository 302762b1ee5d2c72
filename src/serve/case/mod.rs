//! Cases: one item, worked on by one system on a thread of a pool.
//!
//! [`question`] parses their input, and [`words`] puts their outcome into words.

pub mod question;
pub mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use prometheus_client::metrics::gauge::Gauge;
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;

use super::audit::{Audit, Who};
use super::error::{ApiError, Code};
use super::pool::Pool;
use super::queue::Place;
use super::system::ServedSystem;
use crate::data::Item;
use crate::digest::sha256;
use crate::experiment::case::{CaseOptions, DATASET, Worked};
use crate::panel::PanelError;
use crate::record::{CallLine, ItemText};

/// What a client asks of a system: runs of one item.
pub struct Ask {
    pub system: Arc<ServedSystem>,
    pub item: Item,
    pub seed: u64,
    /// The number of runs.
    pub n: u32,
    /// The field that has its text.
    pub param: &'static str,
    pub who: Who,
}

impl Ask {
    /// The digest of everything that determines the bytes of the response.
    pub fn digest(&self) -> String {
        let Ask { system, item, seed, n, .. } = self;
        sha256(json!([system.fingerprint, ItemText::from(item), seed, n]).to_string())
    }
}

pub enum CaseEvent {
    /// A thread has begun with it.
    Begun,
    Call(CallLine),
    /// The last event.
    Ended(Result<Worked, ApiError>),
}

/// One run, which waits for a thread.
pub struct Case {
    pub ask: Arc<Ask>,
    /// Counted from 1.
    pub run: u32,
    pub stop: Arc<AtomicBool>,
    /// Told of the place of its choice too.
    pub events: UnboundedSender<(usize, CaseEvent)>,
    /// The salt of its prefix cache, unless callers share it.
    pub salt: Option<[u8; 16]>,
    /// Its request's place in the server's queue.
    pub _place: Arc<Place>,
}

/// The cases that wait or run.
pub struct Cases {
    pool: Arc<Pool>,
    running: Gauge,
    audit: Audit,
    /// Shared by all of them.
    open: Arc<()>,
}

impl Cases {
    pub fn start(threads: usize, running: &Gauge, audit: &Audit) -> std::io::Result<Cases> {
        let pool = Pool::start("serve-case", threads, || {})?;
        let (running, audit) = (running.clone(), audit.clone());
        Ok(Cases { pool, running, audit, open: Arc::default() })
    }

    /// Has a case worked on when it is its caller's turn.
    pub fn submit(&self, caller: u64, case: Case) {
        let (running, audit, open) = (self.running.clone(), self.audit.clone(), self.open.clone());
        self.pool.add(caller, move || {
            // Else the client is gone.
            if !case.stop.load(Relaxed) {
                case.work(&running, &audit);
            }
            drop(open);
        });
    }

    /// The number of cases that wait or run.
    pub fn open(&self) -> usize {
        Arc::strong_count(&self.open) - 1
    }
}

impl Case {
    fn tell(&self, event: CaseEvent) {
        // If the receiver is gone, so is the client.
        let _ = self.events.send((self.run as usize - 1, event));
    }

    fn work(&self, running: &Gauge, audit: &Audit) {
        let call = match audit.begin_case(&self.ask, self.run) {
            Ok(call) => call,
            Err(error) => return self.tell(CaseEvent::Ended(Err(error))),
        };
        running.inc();
        self.tell(CaseEvent::Begun);
        let began = Instant::now();
        let worked = catch_unwind(AssertUnwindSafe(|| self.worked()));
        let failed = |_| Err(ApiError::new(Code::Internal, "the case failed; the server goes on"));
        let mut outcome = worked.unwrap_or_else(failed);
        let elapsed_ms = began.elapsed().as_millis() as u64;
        // Nothing is sent that is not in the audit trail.
        if let Err(error) = audit.case(&call, &self.ask, self.run, &outcome, elapsed_ms) {
            outcome = Err(error);
        }
        running.dec();
        self.tell(CaseEvent::Ended(outcome));
    }

    fn worked(&self) -> Result<Worked, ApiError> {
        let Ask { system, item, seed, param, .. } = &*self.ask;
        let (run, salt, stop) = (self.run, self.salt, self.stop.clone());
        let options = CaseOptions { seed: *seed, run, salt, stop };
        let (events, place) = (self.events.clone(), run as usize - 1);
        let on_call =
            move |call: &CallLine| drop(events.send((place, CaseEvent::Call(call.clone()))));
        let worked = system.seated.work(DATASET, item, options, on_call);
        let worked = worked.map_err(|error| match error {
            PanelError::Interrupted => ApiError::new(Code::Draining, "the case was stopped"),
            // The prompts are the system's; where they leave no room, the item's text is too long.
            error => {
                let error = ApiError::from(error);
                let is_long = error.code == Code::ContextLengthExceeded;
                ApiError { param: is_long.then(|| (*param).to_owned()), ..error }
            }
        })?;
        match worked.line.error() {
            None => Ok(worked),
            Some(error) => Err(ApiError::new(Code::Internal, error)),
        }
    }
}
