//! One backbone's engine: a thread that turns token ids to token ids, many sequences a step.
//!
//! It knows no prompts. What a sequence's tokens are depends on its request alone: never on the batch, the order
//! of arrival, a preemption, or what the prefix index held.

mod block_pool;
pub mod constraint;
mod core;
mod draft;
mod draw;
mod effort;
mod error;
mod events;
mod kept_grammars;
mod options;
mod prefix;
mod request;
mod rotation;
mod runner;
mod scheduler;
mod schema;
mod scores;
mod sequence;
mod snapshots;
mod spelling;
mod stats;
mod text;
mod turns;
mod usage;

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

pub use self::constraint::{CompiledGrammar, Constraint, Grammar};
pub use self::core::OnSnapshot;
pub use self::error::EngineError;
pub use self::events::{Event, OnEvent, RequestHandle, Ticket};
pub use self::options::EngineOptions;
pub use self::request::{Completion, PENALTIES, Request, Sampling, Stop, TokenLogprobs};
pub use self::rotation::Rotation;
pub use self::stats::{Counts, EngineSnapshot, EngineStats, Work};
pub use self::turns::take_turns;
pub use self::usage::{FinishReason, Usage};

use self::constraint::Compiler;
use self::core::{Core, Message};
use self::error::failure_of;
use self::events::Events;
use self::sequence::Sequence;
use crate::model::Decoder;
use crate::ops::Backend;
use crate::tokenizer::Tokenizer;

/// A running engine. Dropping it ends its thread once the requests at hand are done.
pub struct Engine {
    inbox: Option<Sender<Message>>,
    thread: Option<JoinHandle<Result<EngineStats, EngineError>>>,
    /// Why the thread ended, once it did for an error.
    failure: Arc<OnceLock<EngineError>>,
    compiler: Compiler,
    options: EngineOptions,
    vocabulary: usize,
    arrivals: std::sync::atomic::AtomicU64,
}

impl Engine {
    /// Starts a thread named `engine-{name}` around `decoder`. `eos_ids` end a grammar's text.
    pub fn start<B: Backend>(
        name: &str,
        decoder: Decoder<B>,
        tokenizer: Arc<Tokenizer>,
        eos_ids: &[u32],
        ops: B,
        options: EngineOptions,
    ) -> Result<Engine, EngineError> {
        let vocabulary = decoder.config.vocab_size;
        let compiler = Compiler::new(tokenizer.clone(), vocabulary, eos_ids);
        let mut core = Core::new(name, decoder, tokenizer, ops, options)?;
        let (inbox, messages) = channel();
        let failure = Arc::new(OnceLock::new());
        let noted = failure.clone();
        let run = move || {
            let ended = core.run(&messages);
            if let Err(error) = &ended {
                let _ = noted.set(error.clone());
            }
            // Requests that are left, and those that come meanwhile, hear of the failure as they are dropped.
            ended.map(|()| core.stats())
        };
        let thread = std::thread::Builder::new()
            .name(format!("engine-{name}"))
            .spawn(run)
            .map_err(|error| EngineError::Start(error.to_string()))?;
        Ok(Engine {
            inbox: Some(inbox),
            thread: Some(thread),
            failure,
            compiler,
            options,
            vocabulary,
            arrivals: 0.into(),
        })
    }

    /// Compiles a grammar on the calling thread, or finds it compiled: the next requests that it constrains begin at once.
    ///
    /// # Errors
    /// When the grammar does not compile, or the model has no end-of-turn token.
    pub fn compile(&self, grammar: &Grammar) -> Result<CompiledGrammar, EngineError> {
        self.compiler.compile(grammar)
    }

    /// Hands a request to the engine. Its grammar is compiled here, on the calling thread, unless that was done before.
    ///
    /// # Errors
    /// What can never run is refused here: an empty prompt, one beyond the context or the pool, an unknown id, a grammar that
    /// does not compile.
    pub fn submit(&self, request: Request) -> Result<Ticket, EngineError> {
        Ticket::of(|on_event| self.submit_with(request, on_event))
    }

    /// Hands a request to the engine, and its events to `on_event`. Unless the handle is dropped, the last one is
    /// [`Event::Done`], also where the engine dies.
    ///
    /// # Errors
    /// See [`Engine::submit`]; nothing is told to `on_event` then.
    pub fn submit_with(
        &self,
        mut request: Request,
        on_event: OnEvent,
    ) -> Result<RequestHandle, EngineError> {
        request.check(&self.options, self.vocabulary)?;
        // What a completion is said to be may be a lie: no token of it that the model lacks is computed.
        let known = |id: &&u32| (**id as usize) < self.vocabulary;
        request.expected.truncate(request.expected.iter().take_while(known).count());
        let constraint = request.constraint.as_ref();
        let grammar = constraint.map(|constraint| self.compile(&constraint.grammar)).transpose()?;
        let grammar = grammar.map(|grammar| grammar.start());
        let (events, handle) = Events::new(on_event, self.failure.clone());
        let age = self.arrivals.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let sequence = Sequence::new(age, request, grammar, events);
        self.send(Message::Sequence(Box::new(sequence)))?;
        Ok(handle)
    }

    /// Gives `on_snapshot` how the engine stands once the step that it is at is done. An engine that dies before drops it.
    pub fn request_snapshot(&self, on_snapshot: OnSnapshot) -> Result<(), EngineError> {
        self.send(Message::Snapshot(on_snapshot))
    }

    pub fn failure(&self) -> Option<EngineError> {
        self.failure.get().cloned()
    }

    fn send(&self, message: Message) -> Result<(), EngineError> {
        let failure = || failure_of(&self.failure);
        let inbox = self.inbox.as_ref().ok_or_else(failure)?;
        inbox.send(message).map_err(|unsent| {
            if let Message::Sequence(mut sequence) = unsent.0 {
                sequence.events.silence();
            }
            failure()
        })
    }

    /// Ends the engine once the requests at hand are done, and gives what it counted.
    pub fn finish(mut self) -> Result<EngineStats, EngineError> {
        self.inbox = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(panic)) => Err(EngineError::died(panic.as_ref())),
            None => Err(failure_of(&self.failure)),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.inbox = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
