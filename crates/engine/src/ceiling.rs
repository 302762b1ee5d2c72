//! What work on bytes from outside may take, beyond what lengths and fuel bound.
//!
//! Only an allocator sees what a library takes, and the allocator is the program's. A program that has a say in it hands its [`Keeper`] to
//! [`keep_with`], as `wardround` does; without one, lengths and fuel are all that bounds such work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use thiserror::Error;

use crate::fault::faults;

/// What a piece of work may take.
#[derive(Clone, Copy, Debug)]
pub struct Ceiling {
    pub what: &'static str,
    /// That its thread has allocated and not freed.
    pub bytes: usize,
    /// By the clock, with room for a machine that is busy.
    pub time: Duration,
    /// Of its thread; only what is used becomes memory.
    pub stack: usize,
    /// What work that was stopped may hold already when this is begun: the whole process's.
    pub lost: usize,
}

impl Ceiling {
    /// With the stack that threads usually have, and begun while less than four gigabytes are lost: an error is better than a kernel that
    /// ends the process.
    pub const fn new(what: &'static str, bytes: usize, time: Duration) -> Ceiling {
        Ceiling { what, bytes, time, stack: 2 << 20, lost: 4 << 30 }
    }
}

/// Work that may be ended in its midst: it takes no lock that others wait for.
pub type Work = Box<dyn FnOnce() + Send>;

/// Whoever holds work to its ceiling.
#[derive(Clone, Copy, Debug)]
pub struct Keeper {
    /// Does the work, or says why it was not done, or not to its end.
    pub run: fn(Ceiling, Work) -> Result<(), CeilingError>,
    /// Bytes that this thread holds under its ceiling; 0 where it has none.
    pub held: fn() -> usize,
}

static KEEPER: OnceLock<Keeper> = OnceLock::new();

/// From now on `keeper` does what is bounded. The first one stays.
pub fn keep_with(keeper: Keeper) {
    let _ = KEEPER.set(keeper);
}

/// Bytes that this thread holds under its ceiling; 0 where nobody counts them.
pub fn held() -> usize {
    KEEPER.get().map_or(0, |keeper| (keeper.held)())
}

faults! {
    /// Why work was not done.
    #[derive(Clone, Debug, PartialEq, Eq, Error)]
    pub enum CeilingError {
        #[error("{what} would need more than {} MB of memory, and was stopped", bytes.div_ceil(1_000_000))]
        Memory { what: &'static str, bytes: usize } => Artefact;
        #[error("{what} was not done after {} s, and was stopped", time.as_secs())]
        Time { what: &'static str, time: Duration } => Artefact;
        #[error("{what}: the library that does it panicked")]
        Panicked { what: &'static str } => Artefact;
        #[error("{what} was not begun: what was stopped before holds {} MB", lost / 1_000_000)]
        Spent { what: &'static str, lost: usize } => Machine,
            "start the program again, and see which model or grammar was refused";
        #[error("{what}: no thread can be started: {problem}")]
        Thread { what: &'static str, problem: String } => Machine;
    }
}

/// A source of work, such as a model's template. What was stopped once is refused from then on.
#[derive(Debug, Default)]
pub struct Source(OnceLock<CeilingError>);

impl Source {
    /// Does `work` under `ceiling`.
    ///
    /// # Errors
    /// Work that was stopped, now or before, panicked, or could not be begun.
    pub fn bounded<T: Send + 'static>(
        &self,
        ceiling: Ceiling,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CeilingError> {
        if let Some(refused) = self.0.get() {
            return Err(refused.clone());
        }
        let (give, done) = mpsc::channel();
        let work = move || drop(give.send(catch_unwind(AssertUnwindSafe(work))));
        let run = KEEPER.get().map_or(without_a_keeper as _, |keeper| keeper.run);
        let ended = run(ceiling, Box::new(work));
        if let Err(error @ (CeilingError::Memory { .. } | CeilingError::Time { .. })) = &ended {
            let _ = self.0.set(error.clone());
        }
        ended?;
        let done = done.recv().ok().and_then(Result::ok);
        done.ok_or(CeilingError::Panicked { what: ceiling.what })
    }
}

/// On a thread of its own where it wants a deep stack.
fn without_a_keeper(ceiling: Ceiling, work: Work) -> Result<(), CeilingError> {
    let Ceiling { what, stack, .. } = ceiling;
    if stack <= 2 << 20 {
        work();
        return Ok(());
    }
    let thread = thread::Builder::new().stack_size(stack).spawn(work);
    let thread =
        thread.map_err(|error| CeilingError::Thread { what, problem: error.to_string() })?;
    thread.join().map_err(|_| CeilingError::Panicked { what })
}
