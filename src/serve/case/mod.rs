//! Cases: one item, worked on by one system on a thread of a pool.
//!
//! [`pool`] runs them, [`question`] parses their input, and [`words`] puts their outcome into words.

pub mod pool;
pub mod question;
pub mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use self::pool::Job;
use super::app::App;
use super::audit::Who;
use super::error::ApiError;
use super::guard::{Caller, turn};
use super::queue::Place;
use super::system::ServedSystem;
use crate::data::Item;
use crate::digest::sha256;
use crate::experiment::case::Worked;
use crate::record::{CallLine, ItemText};

/// The input of a case: the item, the system that works on it, and the client.
#[derive(Clone)]
pub struct Ask {
    pub system: Arc<ServedSystem>,
    pub item: Item,
    pub seed: u64,
    pub run: u32,
    /// The number of runs of the request, of which this is one.
    pub n: u32,
    /// The field that has its text.
    pub param: &'static str,
    pub who: Who,
}

impl Ask {
    /// The first and only run of an item.
    ///
    /// # Errors
    /// An item that the models of the system cannot read: nothing is queued for it.
    pub fn new(
        system: Arc<ServedSystem>,
        item: Item,
        seed: u64,
        param: &'static str,
    ) -> Result<Ask, ApiError> {
        system.refuse_longer(&item, param)?;
        Ok(Ask { system, item, seed, run: 1, n: 1, param, who: Who::default() })
    }

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

/// Cases that a request waits for. Dropping them stops the work. Whoever does not read keeps a place in the queue until then.
pub struct Running {
    events: UnboundedReceiver<(usize, CaseEvent)>,
    stop: Arc<AtomicBool>,
    _place: Arc<Place>,
}

impl Running {
    /// Queues the cases, each as a sequence.
    pub fn begin(app: &App, asks: Vec<Ask>, caller: Option<&Caller>) -> Result<Running, ApiError> {
        app.audit.check()?;
        let place = Arc::new(app.queue()?.enter(asks.len(), 0, caller)?);
        let salt = caller.filter(|_| !app.options.share_prefixes).map(|caller| caller.salt(None));
        let turn = turn(caller);
        let (sender, events) = unbounded_channel();
        let running = Running { events, stop: Arc::default(), _place: place.clone() };
        for (index, ask) in asks.into_iter().enumerate() {
            let sender = sender.clone();
            let on_event = Arc::new(move |event: CaseEvent| {
                // If the receiver is gone, so is the client.
                let _ = sender.send((index, event));
            });
            let stop = running.stop.clone();
            app.cases.submit(turn, Job { ask, stop, on_event, salt, _place: place.clone() });
        }
        Ok(running)
    }

    /// The next event and the index of its case; `None` if the cases were lost. Cancel-safe.
    pub async fn next(&mut self) -> Option<(usize, CaseEvent)> {
        self.events.recv().await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}
