//! Cases: one item worked on by one system, on a thread of a pool.
//!
//! [`pool`] works on them, [`desk`] keeps those that are asked for again, [`question`] and [`fhir`] read what they are about, and
//! [`words`] says what came of them.

pub mod desk;
pub mod fhir;
pub mod pool;
pub mod question;
pub mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use self::pool::Job;
use super::app::{App, Caller};
use super::audit::Who;
use super::error::ApiError;
use super::system::ServedSystem;
use crate::data::Item;
use crate::experiment::case::Worked;
use crate::record::CallLine;

/// What is to be worked on, and by whom.
#[derive(Clone)]
pub struct Ask {
    pub system: Arc<ServedSystem>,
    pub item: Item,
    pub seed: u64,
    pub run: u32,
    pub who: Who,
}

/// What happens to a case.
#[derive(Clone)]
pub enum CaseEvent {
    /// A thread works on it.
    Begun,
    Call(Arc<CallLine>),
    /// The last event.
    Ended(Arc<Result<Worked, ApiError>>),
}

/// Cases that somebody waits for. Dropping them stops the work.
pub struct Running {
    events: UnboundedReceiver<(usize, CaseEvent)>,
    stop: Arc<AtomicBool>,
}

impl Running {
    /// Puts the cases behind those that wait for a thread.
    ///
    /// # Errors
    /// A full queue; an audit log that cannot be written.
    pub fn begin(app: &App, asks: Vec<Ask>, caller: Option<&Caller>) -> Result<Running, ApiError> {
        let (sender, events) = unbounded_channel();
        let running = Running { events, stop: Arc::default() };
        for (index, ask) in asks.into_iter().enumerate() {
            let sender = sender.clone();
            let tell = Box::new(move |event| {
                // Nobody waits any more: the stop is set too.
                let _ = sender.send((index, event));
            });
            app.cases.submit(app, Job::new(ask, running.stop.clone(), tell, caller))?;
        }
        Ok(running)
    }

    /// The next event and the place of its case, as a future that may be dropped without losing one; `None` where cases were lost.
    pub async fn next(&mut self) -> Option<(usize, CaseEvent)> {
        self.events.recv().await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}
