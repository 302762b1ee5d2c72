//! A pool of spin-waiting worker threads: while a step runs, they take parts of its loops without being woken for each.
//!
//! A step is hundreds of loops of some ten microseconds; to put a thread to sleep after each and wake it for the next
//! costs a good part of that.

use std::any::Any;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a loop does with a part of its range.
type Body<'a> = dyn Fn(Range<usize>) + Sync + 'a;

/// Turns of a waiting loop before it lets other threads run.
const TURNS: u32 = 1 << 9;

#[derive(Debug, Default)]
pub struct Team {
    /// A loop is under way: another one, begun meanwhile, runs where it is.
    busy: AtomicBool,
    task: UnsafeCell<Option<Task>>,
    /// The task's number, and in the low 16 bits how many of its pieces nobody has taken.
    left: AtomicU64,
    done: AtomicUsize,
    is_open: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

const PIECE_BITS: u32 = 16;
const MOST_PIECES: usize = (1 << PIECE_BITS) - 1;

#[derive(Clone, Copy, Debug)]
struct Task {
    body: *const Body<'static>,
    count: usize,
    pieces: usize,
}

// SAFETY: `task` is written by the one thread that set `busy`, while no piece is left, and read by threads that took a
// piece, before they count it as done; the body is `Sync`.
unsafe impl Sync for Team {}
// SAFETY: as above.
unsafe impl Send for Team {}

impl Team {
    /// Calls `body` with `pieces` ranges that cover `0..count` once, here and on every worker.
    pub fn split(&self, count: usize, pieces: usize, body: &Body<'_>) {
        if self.busy.swap(true, Ordering::Acquire) {
            body(0..count);
            return;
        }
        let pieces = pieces.min(MOST_PIECES);
        let body: *const Body<'_> = body;
        // SAFETY: only the lifetime changes, and every piece is done before this call returns. No piece of the last
        // task is left, so nobody reads `task`.
        unsafe {
            let body = std::mem::transmute::<*const Body<'_>, *const Body<'static>>(body);
            *self.task.get() = Some(Task { body, count, pieces });
        }
        self.done.store(0, Ordering::Relaxed);
        let number = (self.left.load(Ordering::Relaxed) >> PIECE_BITS) + 1;
        let all = number << PIECE_BITS | pieces as u64;
        self.left.store(all, Ordering::Release);
        while self.take_piece() {}
        let mut turns = 0;
        while self.done.load(Ordering::Acquire) < pieces {
            wait(&mut turns);
        }
        let panic = self.panic().take();
        self.busy.store(false, Ordering::Release);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Does one piece of the task under way. `false` if none is left.
    fn take_piece(&self) -> bool {
        let mut left = self.left.load(Ordering::Acquire);
        loop {
            if left & MOST_PIECES as u64 == 0 {
                return false;
            }
            let taken = self.left.compare_exchange_weak(
                left,
                left - 1,
                Ordering::Acquire,
                Ordering::Acquire,
            );
            match taken {
                Ok(_) => break,
                Err(now) => left = now,
            }
        }
        let index = (left & MOST_PIECES as u64) as usize - 1;
        // SAFETY: the task stays until this piece, which nobody else has, is done.
        let task = unsafe { *self.task.get() };
        if let Some(task) = task {
            let range = task.count * index / task.pieces..task.count * (index + 1) / task.pieces;
            // SAFETY: as above: its body outlives its pieces.
            let body = unsafe { &*task.body };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(range))) {
                *self.panic() = Some(panic);
            }
        }
        self.done.fetch_add(1, Ordering::Release);
        true
    }

    fn panic(&self) -> std::sync::MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `step`; the current pool's other threads work on its loops. It must not wait for jobs of the pool: a thread that has
    /// stolen one may become a worker while it waits for a part of it, and the step then waits for the worker, for ever.
    pub fn run_leader<T: Send>(&self, step: impl FnOnce() -> T + Send) -> T {
        let leader = rayon::current_thread_index();
        rayon::in_place_scope(|scope| {
            self.is_open.store(true, Ordering::Release);
            let _closing = Closing(&self.is_open);
            scope.spawn_broadcast(|_, thread| {
                if Some(thread.index()) != leader {
                    self.run_worker();
                }
            });
            step()
        })
    }

    /// Works on pieces until the step ends.
    fn run_worker(&self) {
        let mut turns = 0;
        while self.is_open.load(Ordering::Acquire) {
            if self.take_piece() {
                turns = 0;
            } else {
                wait(&mut turns);
            }
        }
    }
}

/// One turn of a waiting loop; the threads of a machine with more of them than cores get theirs too.
fn wait(turns: &mut u32) {
    std::hint::spin_loop();
    *turns = (*turns + 1) % TURNS;
    if *turns == 0 {
        std::thread::yield_now();
    }
}

/// Ends the workers' loops, also when a step panics.
struct Closing<'a>(&'a AtomicBool);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_threads<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(run)
    }

    #[test]
    fn every_index_is_visited_once_by_whoever_serves() {
        for threads in [1, 2, 4] {
            let team = Team::default();
            on_threads(threads, || {
                team.run_leader(|| {
                    for count in [1, 2, 7, 1000] {
                        for pieces in [1, 2, 8] {
                            let visits: Vec<AtomicUsize> =
                                (0..count).map(|_| AtomicUsize::new(0)).collect();
                            team.split(count, pieces, &|range| {
                                for visit in &visits[range] {
                                    visit.fetch_add(1, Ordering::Relaxed);
                                }
                            });
                            assert!(visits.iter().all(|v| v.load(Ordering::Relaxed) == 1));
                        }
                    }
                });
            });
        }
    }

    #[test]
    fn pieces_run_at_the_same_time() {
        let team = Team::default();
        on_threads(2, || {
            let barrier = std::sync::Barrier::new(2);
            team.run_leader(|| {
                team.split(2, 2, &|_| {
                    barrier.wait();
                })
            });
        });
    }

    #[test]
    fn a_loop_within_a_loop_runs_where_it_is() {
        let team = Team::default();
        let sum = AtomicUsize::new(0);
        on_threads(2, || {
            team.run_leader(|| {
                team.split(4, 4, &|range| {
                    let here = std::thread::current().id();
                    team.split(3, 3, &|inner| {
                        assert_eq!(std::thread::current().id(), here);
                        sum.fetch_add(range.len() * inner.len(), Ordering::Relaxed);
                    });
                });
            });
        });
        assert_eq!(sum.into_inner(), 12);
    }

    #[test]
    fn pieces_that_wait_for_one_another_are_on_several_threads() {
        let team = Team::default();
        let barrier = std::sync::Barrier::new(3);
        on_threads(3, || {
            team.run_leader(|| {
                team.split(3, 3, &|_| {
                    barrier.wait();
                });
            });
        });
    }

    #[test]
    fn a_piece_that_panics_ends_the_step_and_no_other() {
        let team = Team::default();
        for threads in [1, 2] {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                on_threads(threads, || {
                    team.run_leader(|| {
                        team.split(8, 8, &|range| assert!(range.start != 3, "the fourth"));
                    });
                });
            }));
            assert!(outcome.is_err());
            let count = AtomicUsize::new(0);
            team.split(5, 5, &|range| {
                count.fetch_add(range.len(), Ordering::Relaxed);
            });
            assert_eq!(count.into_inner(), 5);
        }
    }
}
