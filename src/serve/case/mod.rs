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

use super::app::App;
use super::audit::Who;
use super::budget::Reserved;
use super::error::ApiError;
use super::guard::Caller;
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

impl CaseEvent {
    /// About how many bytes it takes in memory: the calls once, and once more in the outcome.
    fn bytes(&self) -> usize {
        match self {
            CaseEvent::Begun => 0,
            CaseEvent::Ended(outcome) => {
                let searches = outcome.iter().flat_map(|worked| &worked.searches);
                let passages = searches.flat_map(|search| &search.shown);
                passages.map(|passage| passage.text.as_ref().map_or(0, String::len) + 256).sum()
            }
            CaseEvent::Call(call) => {
                let CallLine { messages, text, tokens, .. } = call;
                let prompt: usize = messages.iter().map(|message| message.content.len()).sum();
                // What was read of the reply is in its record once more.
                2 * (prompt + 2 * text.len() + 4 * tokens.len()) + 1024
            }
        }
    }
}

/// Cases that a request waits for. Dropping them stops the work.
pub struct Running {
    /// Each event counts in the budget until it is taken: whoever does not read must not fill the memory.
    events: UnboundedReceiver<(usize, CaseEvent, Reserved)>,
    stop: Arc<AtomicBool>,
}

impl Running {
    /// Queues the cases.
    pub fn begin(app: &App, asks: Vec<Ask>, caller: Option<&Caller>) -> Result<Running, ApiError> {
        let (sender, events) = unbounded_channel();
        let running = Running { events, stop: Arc::default() };
        for (index, ask) in asks.into_iter().enumerate() {
            let sender = sender.clone();
            let (budget, load) = (app.budget.clone(), caller.map(Caller::load));
            let on_event = Arc::new(move |event: CaseEvent| {
                let mut reserved = budget.open(load.clone());
                reserved.grow_beyond(event.bytes());
                // If the receiver is gone, so is the client.
                let _ = sender.send((index, event, reserved));
            });
            app.cases.submit(app, ask, running.stop.clone(), on_event, caller)?;
        }
        Ok(running)
    }

    /// The next event and the index of its case; `None` if the cases were lost. Cancel-safe.
    pub async fn next(&mut self) -> Option<(usize, CaseEvent)> {
        let (index, event, _reserved) = self.events.recv().await?;
        Some((index, event))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}
