//! Engines that share a machine. A step reads all weights, however few its rows: an engine of few sequences lets others go first while one
//! has a full batch, and gathers more sequences meanwhile. What it computes of each stays the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::Engine;
use super::core::Message;

/// Steps of full batches that an engine of few sequences lets go first, at most.
const MOST: u64 = 16;
/// How often it looks whether it still should.
pub const POLL: Duration = Duration::from_micros(200);

/// What the engines of a machine tell each other.
#[derive(Debug, Default)]
pub struct Turns {
    /// Engines that have a full batch.
    full: AtomicUsize,
    /// Steps of full batches so far.
    steps: AtomicU64,
}

/// Lets the engines of one machine take turns.
pub fn take_turns<'a>(engines: impl IntoIterator<Item = &'a Engine>) {
    let turns = Arc::new(Turns::default());
    for engine in engines {
        // One that has ended takes none, and says so to whoever asks something of it.
        let _ = engine.send(Message::Turns(turns.clone()));
    }
}

/// An engine's place among those of its machine; by default it is alone. Dropping it lets those go on that wait for it.
#[derive(Debug, Default)]
pub struct Place {
    turns: Arc<Turns>,
    is_full: bool,
    /// [`Turns::steps`] when its last step ended.
    seen: u64,
}

impl Place {
    pub fn new(turns: Arc<Turns>) -> Place {
        let seen = turns.steps.load(Ordering::Relaxed);
        Place { turns, is_full: false, seen }
    }

    /// Says how many sequences there are for a batch of at most `most`, and gives whether to wait for more of them before the next step.
    pub fn waits(&mut self, sequences: usize, most: usize) -> bool {
        self.mark(sequences >= most);
        let waited = self.turns.steps.load(Ordering::Relaxed) - self.seen;
        2 * sequences < most && waited < MOST && self.turns.full.load(Ordering::Relaxed) > 0
    }

    /// Its step is done.
    pub fn stepped(&mut self) {
        let others = u64::from(self.is_full);
        self.seen = self.turns.steps.fetch_add(others, Ordering::Relaxed) + others;
    }

    fn mark(&mut self, is_full: bool) {
        match (self.is_full, is_full) {
            (false, true) => self.turns.full.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.turns.full.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
        self.is_full = is_full;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.mark(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_wait_for_a_full_batch_a_bounded_while() {
        let turns = Arc::new(Turns::default());
        let (mut one, mut other) = (Place::new(turns.clone()), Place::new(turns));
        assert!(!other.waits(1, 8), "nobody is full");
        assert!(!one.waits(8, 8), "a full batch goes on");
        assert!(other.waits(1, 8) && other.waits(3, 8));
        assert!(!other.waits(4, 8), "half a batch is enough");
        for _ in 0..MOST {
            assert!(other.waits(1, 8));
            one.stepped();
        }
        assert!(!other.waits(1, 8));
        other.stepped();
        assert!(other.waits(1, 8), "it waits anew");
        assert!(!one.waits(7, 8) && !other.waits(1, 8), "nobody is full any more");
        one.waits(8, 8);
        assert!(other.waits(1, 8));
        drop(one);
        assert!(!other.waits(1, 8), "an engine that ended keeps nobody");
    }

    #[test]
    fn two_full_batches_do_not_wait_for_each_other() {
        let turns = Arc::new(Turns::default());
        let (mut one, mut other) = (Place::new(turns.clone()), Place::new(turns));
        assert!(!one.waits(8, 8) && !other.waits(9, 8) && !one.waits(8, 8));
    }
}
