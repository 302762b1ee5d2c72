//! The threads that work on cases.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use prometheus_client::metrics::gauge::Gauge;

use super::{Ask, CaseEvent};
use crate::experiment::case::{CaseOptions, DATASET, Worked};
use crate::panel::PanelError;
use crate::record::CallLine;
use crate::serve::audit::Audit;
use crate::serve::error::{ApiError, Code};
use crate::serve::pool::Pool;
use crate::serve::queue::Place;

pub type OnEvent = Arc<dyn Fn(CaseEvent) + Send + Sync>;

/// A case that waits for a thread.
pub struct Job {
    pub ask: Ask,
    pub stop: Arc<AtomicBool>,
    pub on_event: OnEvent,
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
    pub fn submit(&self, caller: u64, job: Job) {
        let (running, audit, open) = (self.running.clone(), self.audit.clone(), self.open.clone());
        self.pool.add(caller, move || {
            work(&job, &running, &audit);
            drop(open);
        });
    }

    /// The number of cases that wait or run.
    pub fn open(&self) -> usize {
        Arc::strong_count(&self.open) - 1
    }
}

fn work(job: &Job, running: &Gauge, audit: &Audit) {
    // The client is gone.
    if job.stop.load(Relaxed) {
        return;
    }
    let call = match audit.begin_case(&job.ask) {
        Ok(call) => call,
        Err(error) => return (job.on_event)(CaseEvent::Ended(Err(error))),
    };
    running.inc();
    (job.on_event)(CaseEvent::Begun);
    let began = Instant::now();
    let worked = catch_unwind(AssertUnwindSafe(|| worked(job)));
    let failed = |_| Err(ApiError::new(Code::Internal, "the case failed; the server goes on"));
    let mut outcome = worked.unwrap_or_else(failed);
    let elapsed_ms = began.elapsed().as_millis() as u64;
    // Nothing is sent that is not in the audit trail.
    if let Err(error) = audit.case(&call, &job.ask, &outcome, elapsed_ms) {
        outcome = Err(error);
    }
    running.dec();
    (job.on_event)(CaseEvent::Ended(outcome));
}

fn worked(job: &Job) -> Result<Worked, ApiError> {
    let Ask { system, item, seed, run, param, .. } = &job.ask;
    let (salt, stop) = (job.salt, job.stop.clone());
    let options = CaseOptions { seed: *seed, run: *run, salt, stop, ..CaseOptions::default() };
    let on_event = job.on_event.clone();
    let on_call = move |call: &CallLine| on_event(CaseEvent::Call(call.clone()));
    let worked =
        system.seated.work(DATASET, item, options, on_call).map_err(|error| match error {
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
