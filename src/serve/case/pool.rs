//! The threads that work on cases; one case at a time each.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, unbounded};
use prometheus_client::metrics::gauge::Gauge;

use super::desk::Desk;
use super::{Ask, CaseEvent};
use crate::experiment::case::{CaseOptions, DATASET, Worked};
use crate::panel::PanelError;
use crate::record::CallLine;
use crate::serve::admission::Permit;
use crate::serve::app::{App, Caller};
use crate::serve::audit::{Audit, CaseRecord};
use crate::serve::error::{ApiError, Code};

/// Told of what happens to a case.
pub type Tell = Box<dyn Fn(CaseEvent) + Send + Sync>;

/// A case that waits for a thread.
pub struct Job {
    /// Where the case is kept.
    id: Option<String>,
    ask: Ask,
    stop: Arc<AtomicBool>,
    tell: Arc<Tell>,
    caller: Option<Caller>,
    /// Its place in the server's queue.
    permit: Option<Permit>,
    /// Whose computed prompts it may share.
    salt: Option<[u8; 16]>,
    open: Option<Open>,
}

/// Counts a case while it waits or is at work.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Threads, and the desk that keeps cases.
pub struct Cases {
    jobs: Sender<Job>,
    desk: Desk,
    /// Cases that wait or are at work.
    open: Arc<AtomicUsize>,
}

impl Job {
    pub fn new(ask: Ask, stop: Arc<AtomicBool>, tell: Tell, caller: Option<&Caller>) -> Job {
        Job {
            id: None,
            ask,
            stop,
            tell: Arc::new(tell),
            caller: caller.cloned(),
            permit: None,
            salt: None,
            open: None,
        }
    }

    /// The case under the id by which it is asked for.
    pub fn named(self, id: &str) -> Job {
        Job { id: Some(id.to_owned()), ..self }
    }
}

impl Cases {
    /// Starts so many threads, and the desk.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn start(threads: usize, running: &Gauge, audit: &Audit) -> std::io::Result<Cases> {
        let (jobs, waiting) = unbounded::<Job>();
        for _ in 0..threads {
            let (waiting, running, audit) = (waiting.clone(), running.clone(), audit.clone());
            let work = move || work(&waiting, &running, &audit);
            std::thread::Builder::new().name("serve-case".to_owned()).spawn(work)?;
        }
        Ok(Cases { jobs, desk: Desk::start()?, open: Arc::default() })
    }

    /// Puts a case behind those that wait. It counts as one sequence of the server's queue until it is done.
    ///
    /// # Errors
    /// A full queue; an audit log that cannot be written.
    pub fn submit(&self, app: &App, mut job: Job) -> Result<(), ApiError> {
        app.audit.check()?;
        let load = job.caller.as_ref().map(|caller| caller.load.clone());
        job.permit = Some(app.admission()?.admit(1, 0, load)?);
        let isolated = job.caller.as_ref().filter(|_| app.options.isolate_keys);
        job.salt = isolated.map(|caller| caller.key.salt(None));
        self.open.fetch_add(1, Relaxed);
        job.open = Some(Open(self.open.clone()));
        let lost = |_| ApiError::new(Code::Internal, "no thread works on cases any more");
        self.jobs.send(job).map_err(lost)
    }

    /// Cases that wait or are at work.
    pub fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    pub fn desk(&self) -> &Desk {
        &self.desk
    }
}

/// Works on what waits until the server ends.
fn work(waiting: &Receiver<Job>, running: &Gauge, audit: &Audit) {
    while let Ok(job) = waiting.recv() {
        // A client that is gone while its case waits costs nothing.
        if job.stop.load(Relaxed) {
            continue;
        }
        running.inc();
        (job.tell)(CaseEvent::Begun);
        let began = Instant::now();
        let worked = catch_unwind(AssertUnwindSafe(|| worked(&job)));
        let failed = |_| Err(ApiError::new(Code::Internal, "the case failed; the server goes on"));
        let mut outcome = worked.unwrap_or_else(failed);
        let record = CaseRecord {
            id: job.id.as_deref(),
            ask: &job.ask,
            outcome: &outcome,
            elapsed_ms: began.elapsed().as_millis() as u64,
        };
        // What is not in the audit log is not given out.
        if let Err(error) = audit.case(&record) {
            outcome = Err(error);
        }
        running.dec();
        (job.tell)(CaseEvent::Ended(Arc::new(outcome)));
    }
}

fn worked(job: &Job) -> Result<Worked, ApiError> {
    let Ask { system, item, seed, run, .. } = &job.ask;
    let options = CaseOptions { seed: *seed, run: *run, salt: job.salt, stop: job.stop.clone() };
    let tell = job.tell.clone();
    let on_call = move |call: &CallLine| tell(CaseEvent::Call(Arc::new(call.clone())));
    let worked =
        system.seated.work(DATASET, item, options, on_call).map_err(|error| match error {
            PanelError::Interrupted => ApiError::new(Code::Draining, "the case was stopped"),
            error => error.into(),
        })?;
    match worked.line.error() {
        None => Ok(worked),
        Some(error) => Err(ApiError::new(Code::Internal, error)),
    }
}
