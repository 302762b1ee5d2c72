//! The program's ceiling on what bytes from outside may take: its allocator counts for each thread that has one.
//!
//! An allocator may not unwind, and one that fails ends the process; so a thread that would pass its ceiling, or whose time is over, stops for
//! good at that allocation, and whoever waits for it gets an error. What it holds is lost until the program ends. A thread without a ceiling
//! pays for one look at a thread-local pointer.
#![expect(unsafe_code, reason = "an allocator is unsafe to write")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicU8, AtomicUsize};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use wardround::ceiling::{Ceiling, CeilingError, Keeper, Work};

/// Holds the engine's work to its ceilings.
pub const KEEPER: Keeper =
    Keeper { run, held: || here().map_or(0, |watch| watch.bytes - watch.left.load(Relaxed)) };
/// The system's allocator, with a look at the thread's ceiling before each call.
pub struct Counting;

/// Bytes that a panic may take beyond the ceiling, for its message: a thread stopped in one would keep the standard error to itself.
const LONGEST_MESSAGE: usize = 16 << 20;
/// Bytes that stopped threads hold.
pub static LOST: AtomicUsize = AtomicUsize::new(0);

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

/// The ceiling of this thread.
#[inline]
fn here() -> Option<&'static Watch> {
    // SAFETY: it is null, or `run` set it on this thread to what an `Arc` on the thread's own stack holds, and sets it to null before
    // that `Arc` is dropped; the reference does not leave the functions below.
    unsafe { HERE.get().as_ref() }
}

/// On a thread of its own; where this thread has a ceiling already, here, under that one.
fn run(ceiling: Ceiling, work: Work) -> Result<(), CeilingError> {
    let Ceiling { what, bytes, time, .. } = ceiling;
    if here().is_some() {
        work();
        return Ok(());
    }
    let lost = LOST.load(Relaxed);
    if lost > ceiling.lost {
        return Err(CeilingError::Spent { what, lost });
    }
    let (state, left) = (AtomicU8::new(RUNNING), AtomicUsize::new(bytes));
    let watch = Arc::new(Watch { state, bytes, left, waiter: thread::current() });
    let watched = watch.clone();
    let builder = thread::Builder::new().name("bounded".into()).stack_size(ceiling.stack);
    let begun = builder.spawn(move || {
        HERE.set(Arc::as_ptr(&watched));
        work();
        HERE.set(std::ptr::null());
        watched.turn(DONE);
    });
    begun.map_err(|error| CeilingError::Thread { what, problem: error.to_string() })?;
    let end = Instant::now() + time;
    loop {
        match watch.state.load(Acquire) {
            DONE => return Ok(()),
            FULL => return Err(CeilingError::Memory { what, bytes }),
            LATE => return Err(CeilingError::Time { what, time }),
            _ => match end.saturating_duration_since(Instant::now()) {
                Duration::ZERO => watch.turn(LATE),
                left => thread::park_timeout(left),
            },
        }
    }
}

impl Watch {
    /// From running to `state`, unless another was first.
    fn turn(&self, state: u8) {
        let _ = self.state.compare_exchange(RUNNING, state, AcqRel, Acquire);
        self.waiter.unpark();
    }

    /// Takes `bytes`, or never returns.
    fn take(&self, bytes: usize) {
        let left = self.left.load(Relaxed);
        let goes_on = bytes <= left && self.state.load(Relaxed) == RUNNING;
        if !(goes_on || thread::panicking() && bytes < LONGEST_MESSAGE) {
            LOST.fetch_add(self.bytes - left, Relaxed);
            self.turn(FULL);
            loop {
                thread::sleep(Duration::from_secs(1 << 20));
            }
        }
        self.left.store(left.saturating_sub(bytes), Relaxed);
    }

    /// What was allocated elsewhere may be freed here: never more is left than there was.
    fn give_back(&self, bytes: usize) {
        let left = self.left.load(Relaxed).saturating_add(bytes);
        self.left.store(left.min(self.bytes), Relaxed);
    }
}

// SAFETY: every call is handed on to the system's allocator as it came; before it the thread may stop, but nothing unwinds.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        here().inspect(|watch| watch.take(layout.size()));
        // SAFETY: here and below, the caller's promises are those that are asked for.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        here().inspect(|watch| watch.take(layout.size()));
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        here().inspect(|watch| watch.give_back(layout.size()));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        here().inspect(|watch| match size.checked_sub(layout.size()) {
            Some(more) => watch.take(more),
            None => watch.give_back(layout.size() - size),
        });
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
