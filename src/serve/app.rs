//! The state shared by all handlers: options, models and systems, keys, and the phase of the server.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use tokio::sync::{Semaphore, watch};

use super::audit::Audit;
use super::error::{ApiError, Code};
use super::keys::Key;
use super::models::Served;
use super::options::ServeOptions;
use super::queue::{Pool, Queue};
use super::request::decoding::SEED_BITS;
use crate::diagnosis::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Serving,
    /// Running requests may finish; new ones are refused.
    Draining,
    /// Running requests are aborted.
    Cut,
}

/// The current keys; `None` if no key is needed.
pub type Keys = Option<Arc<Vec<Key>>>;

/// Threads that read requests: templates, tokenizers and grammars.
const READERS: usize = 4;
/// Of the threads that read requests and write answers: they get a tenth of an engine's share of a core that both want.
const NICENESS: i32 = 10;

/// Lets the engines' threads go first where cores are few: texts of one client, however long, slow no other's completions by much.
pub fn give_way() {
    // Where the whole process gives way more, it stays so.
    if cfg!(target_os = "linux") {
        let _ = rustix::process::setpriority_process(None, NICENESS);
    }
}

/// The shared state.
pub struct App {
    pub options: ServeOptions,
    pub phase: watch::Receiver<Phase>,
    pub keys: watch::Receiver<Keys>,
    /// Open connections.
    pub connections: AtomicUsize,
    pub audit: Audit,
    /// Bytes that are left for bodies in flight and answers that are not read.
    pub budget: Arc<Semaphore>,
    pub readers: Arc<Pool>,
    /// What works on cases of systems.
    pub cases: Arc<Pool>,
    pub queue: Queue,
    served: OnceLock<Served>,
}

impl App {
    pub fn new(
        options: ServeOptions,
        phase: watch::Receiver<Phase>,
        keys: watch::Receiver<Keys>,
    ) -> Result<App, Failure> {
        let audit = options.audit.as_ref().map(Audit::open).transpose()?.unwrap_or_default();
        let budget = options.limits.bodies_bytes.min(Semaphore::MAX_PERMITS);
        Ok(App {
            budget: Arc::new(Semaphore::new(budget)),
            readers: Pool::start("serve", READERS, give_way)?,
            cases: Pool::start("serve-case", options.limits.cases.get(), || {})?,
            queue: Queue::new(options.limits.queued_sequences.get()),
            options,
            phase,
            keys,
            connections: AtomicUsize::new(0),
            audit,
            served: OnceLock::new(),
        })
    }

    /// Starts to serve these models and systems.
    pub fn begin(&self, served: Served) {
        let _ = self.served.set(served);
    }

    /// The models and systems.
    ///
    /// # Errors
    /// While models are loading, while the server shuts down, and if an engine died.
    pub fn served(&self) -> Result<&Served, ApiError> {
        if *self.phase.borrow() != Phase::Serving {
            return Err(ApiError::draining());
        }
        let served = self
            .loaded()
            .ok_or_else(|| ApiError::new(Code::LOADING, "the models are loading").retry_after(5))?;
        match served.failure() {
            None => Ok(served),
            Some(error) => {
                Err(ApiError::new(Code::ENGINE_FAILED, error.to_string()).retry_after(10))
            }
        }
    }

    /// The models and systems, in any phase.
    pub fn loaded(&self) -> Option<&Served> {
        self.served.get()
    }

    /// The seed of a request: the one that it asks for, else the server's default, else a random one.
    pub fn seed(&self, asked: Option<u64>) -> Result<u64, ApiError> {
        asked.or(self.options.default_seed).map_or_else(random_seed, Ok)
    }
}

/// 53 random bits.
fn random_seed() -> Result<u64, ApiError> {
    let seed = getrandom::u64();
    let seed = seed.map_err(|error| ApiError::new(Code::INTERNAL, error.to_string()))?;
    Ok(seed & SEED_BITS)
}
