//! One ceiling on memory and time for whatever reads or renders bytes from outside.
//!
//! [`bounded`] runs work on a thread of its own. An allocator may not unwind, and one that fails ends the process; so a thread that
//! would pass its ceiling, or whose time is over, stops for good at that allocation, and whoever waits for it gets an error. What
//! the thread holds is lost: one ceiling at most, once for each [`Source`], and [`MOST_LOST`] for the whole process. A thread without
//! a ceiling pays for one look at a thread-local pointer.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use thiserror::Error;

use self::clock::ThreadClock;
use crate::diagnosis::{Blame, Diagnosis};

/// What a piece of work may take.
#[derive(Clone, Copy, Debug)]
pub struct Ceiling {
    /// That its thread has allocated and not freed.
    pub bytes: usize,
    /// That its thread has computed: what else the machine does counts for nothing, but [`MOST_WAITING`] times as much by the clock do.
    pub time: Duration,
    /// Of its thread; only what is used becomes memory.
    pub stack: usize,
}

impl Ceiling {
    /// With the stack that threads usually have.
    pub const fn new(bytes: usize, time: Duration) -> Ceiling {
        Ceiling { bytes, time, stack: 2 << 20 }
    }

    /// With a stack of so many bytes, for work that calls itself deeply.
    pub const fn with_stack(self, stack: usize) -> Ceiling {
        Ceiling { stack, ..self }
    }
}

/// What stopped threads may hold, all together. A process that lost more begins no further work from outside: an error is better
/// than a kernel that ends it.
pub const MOST_LOST: usize = 4 << 30;

/// How much longer than its time a piece of work may take by the clock. Beyond it, it waits for something, which nothing here should.
pub const MOST_WAITING: u32 = 10;

/// Bytes that a panic may take beyond the ceiling, for its message: a thread stopped in one would keep the standard error to itself.
const LONGEST_MESSAGE: usize = 16 << 20;

/// Why work was not done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "what each means is its message")]
pub enum CeilingError {
    #[error("{what} would need more than {} MB of memory, and was stopped", bytes.div_ceil(1_000_000))]
    Memory { what: &'static str, bytes: usize },
    #[error("{what} was not done after {} s of computing, and was stopped", time.as_secs())]
    Time { what: &'static str, time: Duration },
    #[error("{what}: the library that does it panicked")]
    Panicked { what: &'static str },
    #[error("{what} was not begun: what was stopped before holds {} MB", lost / 1_000_000)]
    Spent { what: &'static str, lost: usize },
    #[error("{what}: no thread can be started: {problem}")]
    Thread { what: &'static str, problem: String },
}

impl Diagnosis for CeilingError {
    fn blame(&self) -> Blame {
        match self {
            CeilingError::Spent { .. } | CeilingError::Thread { .. } => Blame::Machine,
            _ => Blame::Artefact,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            CeilingError::Spent { .. } => {
                Some("start the program again, and see which model or grammar was refused".into())
            }
            _ => None,
        }
    }
}

impl CeilingError {
    /// Whether the work was stopped, and what it held is lost.
    fn is_loss(&self) -> bool {
        matches!(self, CeilingError::Memory { .. } | CeilingError::Time { .. })
    }
}

/// A fixed source of work, such as a model's template. What was stopped once is refused from then on.
#[derive(Debug, Default)]
pub struct Source(OnceLock<CeilingError>);

impl Source {
    /// As [`bounded`].
    ///
    /// # Errors
    /// See there; the first time that this source was stopped, again.
    pub fn bounded<T: Send + 'static>(
        &self,
        what: &'static str,
        ceiling: Ceiling,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CeilingError> {
        if let Some(refused) = self.0.get() {
            return Err(refused.clone());
        }
        let done = bounded(what, ceiling, work);
        if let Some(error) = done.as_ref().err().filter(|error| error.is_loss()) {
            let _ = self.0.set(error.clone());
        }
        done
    }
}

/// Does `work` on a thread of its own, under `ceiling`; where this thread has a ceiling already, here, under that one. What `work`
/// gives away or leaves in static variables must bear that it never comes back: it takes no lock that others wait for.
///
/// # Errors
/// Work that was stopped, panicked, or could not be begun. `what` names it.
pub fn bounded<T: Send + 'static>(
    what: &'static str,
    ceiling: Ceiling,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CeilingError> {
    let panicked = |_| CeilingError::Panicked { what };
    if !HERE.get().is_null() {
        return catch_unwind(AssertUnwindSafe(work)).map_err(panicked);
    }
    let lost = LOST.load(Ordering::Relaxed);
    if lost > MOST_LOST {
        return Err(CeilingError::Spent { what, lost });
    }
    let begun = Instant::now();
    let watch = Arc::new(Watch {
        state: AtomicU8::new(RUNNING),
        bytes: ceiling.bytes,
        left: AtomicUsize::new(ceiling.bytes),
        waiter: thread::current(),
    });
    let watched = watch.clone();
    let builder = thread::Builder::new().name("bounded".into()).stack_size(ceiling.stack);
    let thread = builder.spawn(move || {
        HERE.set(Arc::as_ptr(&watched));
        let done = catch_unwind(AssertUnwindSafe(work));
        HERE.set(std::ptr::null());
        // In vain where the time was over: then nobody waits.
        watched.turn(DONE);
        watched.waiter.unpark();
        done
    });
    let thread =
        thread.map_err(|error| CeilingError::Thread { what, problem: error.to_string() })?;
    let clock = ThreadClock::of(&thread);
    let left = || {
        let by_the_clock = begun.elapsed();
        let computed = clock.as_ref().and_then(ThreadClock::read).unwrap_or(by_the_clock);
        let left = ceiling.time.checked_sub(computed)?;
        Some(left.min(ceiling.time.saturating_mul(MOST_WAITING).checked_sub(by_the_clock)?))
    };
    loop {
        match watch.state.load(Ordering::Acquire) {
            DONE => return thread.join().and_then(|done| done).map_err(panicked),
            FULL => return Err(CeilingError::Memory { what, bytes: ceiling.bytes }),
            LATE => return Err(CeilingError::Time { what, time: ceiling.time }),
            // No thread computes faster than the clock, so that it need not be looked at before.
            _ => match left() {
                Some(left) if !left.is_zero() => thread::park_timeout(left.max(LEAST_LOOK)),
                _ => watch.turn(LATE),
            },
        }
    }
}

/// How often a thread's time is looked at, at most.
const LEAST_LOOK: Duration = Duration::from_millis(1);

/// Bytes that stopped threads hold.
pub fn lost() -> usize {
    LOST.load(Ordering::Relaxed)
}

/// Bytes that this thread holds under its ceiling; 0 where it has none.
pub fn held() -> usize {
    here().map_or(0, |watch| watch.bytes - watch.left.load(Ordering::Relaxed))
}

/// The most that `work` held at a time: what ceilings are set by.
#[cfg(test)]
pub fn measured(work: impl FnOnce() + Send + 'static) -> usize {
    let ceiling = Ceiling::new(usize::MAX / 2, Duration::from_secs(600));
    let work = || {
        PEAK.set(0);
        work();
        PEAK.get()
    };
    bounded("measuring", ceiling, work).unwrap()
}

/// Does `work` as whatever has a ceiling does it, here and with all the memory and time that it wants: what is [`bounded`] in it stays on
/// this thread, whose time can be told.
#[cfg(test)]
pub fn on_this_thread<T>(work: impl FnOnce() -> T) -> T {
    let bytes = usize::MAX / 2;
    let (state, left) = (AtomicU8::new(RUNNING), AtomicUsize::new(bytes));
    let watch = Watch { state, bytes, left, waiter: thread::current() };
    HERE.set(&raw const watch);
    let done = catch_unwind(AssertUnwindSafe(work));
    HERE.set(std::ptr::null());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
thread_local! {
    /// The most that this thread held: others are at work beside a test.
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

static LOST: AtomicUsize = AtomicUsize::new(0);

/// The states of a piece of work.
const RUNNING: u8 = 0;
const DONE: u8 = 1;
const FULL: u8 = 2;
const LATE: u8 = 3;

/// A ceiling and what is left of it. Only its own thread changes `left`.
struct Watch {
    state: AtomicU8,
    bytes: usize,
    left: AtomicUsize,
    waiter: Thread,
}

thread_local! {
    /// Of this thread; null: it has none. Made without allocating, and nothing happens at its end.
    static HERE: Cell<*const Watch> = const { Cell::new(std::ptr::null()) };
}

impl Watch {
    /// From running to `state`, unless another was first.
    fn turn(&self, state: u8) {
        let (new, old) = (Ordering::AcqRel, Ordering::Acquire);
        let _ = self.state.compare_exchange(RUNNING, state, new, old);
    }

    /// Takes `bytes`, or never returns.
    fn take(&self, bytes: usize) {
        let left = self.left.load(Ordering::Relaxed).checked_sub(bytes);
        let goes_on = left.is_some() && self.state.load(Ordering::Relaxed) == RUNNING;
        let tells_a_panic = || thread::panicking() && bytes < LONGEST_MESSAGE;
        if !(goes_on || tells_a_panic()) {
            self.stop();
        }
        self.left.store(left.unwrap_or(0), Ordering::Relaxed);
        #[cfg(test)]
        PEAK.set(PEAK.get().max(self.bytes - left.unwrap_or(0)));
    }

    /// What was allocated elsewhere may be freed here: never more is left than there was.
    fn give_back(&self, bytes: usize) {
        let left = self.left.load(Ordering::Relaxed).saturating_add(bytes);
        self.left.store(left.min(self.bytes), Ordering::Relaxed);
    }

    /// Ends this thread as far as others see it. Its stack and its heap stay as they are.
    #[cold]
    fn stop(&self) -> ! {
        LOST.fetch_add(self.bytes - self.left.load(Ordering::Relaxed), Ordering::Relaxed);
        // Unless its time was over before.
        self.turn(FULL);
        self.waiter.unpark();
        loop {
            thread::sleep(Duration::from_secs(1 << 20));
        }
    }
}

/// The system's allocator, with a look at the thread's ceiling before each call.
struct Counting;
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The ceiling of this thread.
#[inline]
#[expect(unsafe_code, reason = "the pointer is one that its own thread keeps alive")]
fn here() -> Option<&'static Watch> {
    // SAFETY: it is null, or `bounded` set it on this thread to what an `Arc` on the thread's own stack holds, and sets it to null
    // before that `Arc` is dropped; the reference does not leave the calls below.
    unsafe { HERE.get().as_ref() }
}

// SAFETY: every call is handed on to the system's allocator as it came; before it the thread may stop, but nothing unwinds.
#[expect(unsafe_code, reason = "an allocator is unsafe to write")]
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(watch) = here() {
            watch.take(layout.size());
        }
        // SAFETY: the caller's promises are those that are asked for here.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if let Some(watch) = here() {
            watch.take(layout.size());
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if let Some(watch) = here() {
            watch.give_back(layout.size());
        }
        // SAFETY: as above; `pointer` came from the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if let Some(watch) = here() {
            match size.checked_sub(layout.size()) {
                Some(more) => watch.take(more),
                None => watch.give_back(layout.size() - size),
            }
        }
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

mod clock;
#[cfg(test)]
mod tests;
