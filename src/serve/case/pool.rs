//! The thread pool that works on cases.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, unbounded};
use prometheus_client::metrics::gauge::Gauge;

use super::{Ask, CaseEvent};
use crate::experiment::case::{CaseOptions, DATASET, Worked};
use crate::panel::PanelError;
use crate::record::CallLine;
use crate::serve::admission::Permit;
use crate::serve::app::App;
use crate::serve::audit::Audit;
use crate::serve::error::{ApiError, Code};
use crate::serve::guard::Caller;

pub type OnEvent = Arc<dyn Fn(CaseEvent) + Send + Sync>;

/// A case that waits for a thread.
struct Job {
    ask: Ask,
    stop: Arc<AtomicBool>,
    on_event: OnEvent,
    /// Its place in the server's queue.
    _permit: Permit,
    /// The salt of its prefix cache, unless callers share it.
    salt: Option<[u8; 16]>,
    /// Shared by all that wait or run.
    _open: Arc<()>,
}

/// The threads that work on cases.
pub struct Cases {
    jobs: Sender<Job>,
    open: Arc<()>,
}

impl Cases {
    pub fn start(threads: usize, running: &Gauge, audit: &Audit) -> std::io::Result<Cases> {
        let (jobs, waiting) = unbounded::<Job>();
        for _ in 0..threads {
            let (waiting, running, audit) = (waiting.clone(), running.clone(), audit.clone());
            let work = move || work(&waiting, &running, &audit);
            std::thread::Builder::new().name("serve-case".to_owned()).spawn(work)?;
        }
        Ok(Cases { jobs, open: Arc::default() })
    }

    /// Queues a case. Until its end it counts as one sequence of the server's queue.
    pub fn submit(
        &self,
        app: &App,
        ask: Ask,
        stop: Arc<AtomicBool>,
        on_event: OnEvent,
        caller: Option<&Caller>,
    ) -> Result<(), ApiError> {
        app.audit.check()?;
        let isolated = caller.filter(|_| !app.options.share_prefixes);
        let job = Job {
            ask,
            stop,
            on_event,
            _permit: app.admission()?.admit(1, 0, caller.map(Caller::load))?,
            salt: isolated.map(|caller| caller.salt(None)),
            _open: self.open.clone(),
        };
        let lost = |_| ApiError::new(Code::Internal, "no thread works on cases any more");
        self.jobs.send(job).map_err(lost)
    }

    /// The number of cases that wait or run.
    pub fn open(&self) -> usize {
        Arc::strong_count(&self.open) - 1
    }
}

/// Works on queued cases until the server ends.
fn work(waiting: &Receiver<Job>, running: &Gauge, audit: &Audit) {
    while let Ok(job) = waiting.recv() {
        // The client is gone.
        if job.stop.load(Relaxed) {
            continue;
        }
        let call = match audit.begin_case(&job.ask) {
            Ok(call) => call,
            Err(error) => {
                (job.on_event)(CaseEvent::Ended(Err(error)));
                continue;
            }
        };
        running.inc();
        (job.on_event)(CaseEvent::Begun);
        let began = Instant::now();
        let worked = catch_unwind(AssertUnwindSafe(|| worked(&job)));
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
