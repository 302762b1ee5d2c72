//! One budget for what clients have sent and what is made of it: every body takes from it as it comes, and gives back when it is done with;
//! every answer, until it is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::admission::KeyLoad;
use super::error::{ApiError, Code};

/// What a byte of a body takes: itself, and two copies on its way to a prompt.
const COPIES: usize = 3;
/// What a value of JSON takes in memory, however short it is written.
pub const VALUE_BYTES: usize = 96;

/// The budget of a server, in bytes; clones are the same one.
#[derive(Clone, Debug)]
pub struct Budget {
    most: usize,
    used: Arc<AtomicUsize>,
}

/// A part of the budget, which is given back on drop.
#[derive(Debug)]
pub struct Reserved {
    most: usize,
    used: Arc<AtomicUsize>,
    caller: Option<KeyLoad>,
    bytes: usize,
}

impl Budget {
    pub fn new(most: usize) -> Budget {
        Budget { most, used: Arc::default() }
    }

    /// A caller's half.
    pub fn of_caller(&self) -> usize {
        self.most.div_ceil(2)
    }

    /// Nothing yet, of the budget and of a caller's half of it.
    pub fn open(&self, caller: Option<KeyLoad>) -> Reserved {
        Reserved { most: self.most, used: self.used.clone(), caller, bytes: 0 }
    }
}

impl Reserved {
    /// Takes what so many bytes of a body need.
    ///
    /// # Errors
    /// A budget that others have used up; a caller who has its half.
    pub fn grow_by_body(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.grow(COPIES.saturating_mul(bytes))
    }

    pub fn grow(&mut self, bytes: usize) -> Result<(), ApiError> {
        let full = |whose: &str| {
            let message =
                format!("{whose} budget for bodies is used up; wait for answers, and read them");
            ApiError::new(Code::BudgetFull, message).retry_after(2)
        };
        if let Some(caller) = &self.caller
            && !add(&caller.bytes, bytes, self.most.div_ceil(2))
        {
            return Err(full("this key's half of the"));
        }
        if !add(&self.used, bytes, self.most) {
            if let Some(caller) = &self.caller {
                caller.bytes.fetch_sub(bytes, Relaxed);
            }
            return Err(full("the server's"));
        }
        self.bytes += bytes;
        Ok(())
    }

    /// The same where what takes them is made already: then nothing else gets any.
    pub fn grow_beyond(&mut self, bytes: usize) {
        self.used.fetch_add(bytes, Relaxed);
        if let Some(caller) = &self.caller {
            caller.bytes.fetch_add(bytes, Relaxed);
        }
        self.bytes += bytes;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Relaxed);
        if let Some(caller) = &self.caller {
            caller.bytes.fetch_sub(self.bytes, Relaxed);
        }
    }
}

/// What tokenising takes beside the bodies: many times the memory of a text, for a moment. A text waits for its turn at it.
#[derive(Clone, Debug)]
pub struct Turns {
    free: Arc<Semaphore>,
    most_kib: u32,
}

/// What tokenising a byte takes at most, measured (`benches/LOG.md`).
const TOKENISING: usize = 400;

impl Turns {
    /// Turns that take at most so many bytes together.
    pub fn new(most: usize) -> Turns {
        let most_kib = u32::try_from(most >> 10).unwrap_or(u32::MAX).max(1);
        Turns { free: Arc::new(Semaphore::new(most_kib as usize)), most_kib }
    }

    /// Waits for the turn of a text of so many bytes. None has more than half, so that a slow one lets others by.
    pub async fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes.saturating_mul(TOKENISING) >> 10).unwrap_or(u32::MAX);
        self.free.clone().acquire_many_owned(kib.clamp(1, self.most_kib.div_ceil(2))).await.ok()
    }
}

/// Adds to a counter unless the sum would exceed `most`.
pub fn add(counter: &AtomicUsize, count: usize, most: usize) -> bool {
    let fits = |now: usize| now.checked_add(count).filter(|sum| *sum <= most);
    counter.fetch_update(Relaxed, Relaxed, fits).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_texts_need_at_a_time_is_waited_for() {
        use futures_util::FutureExt;
        let turns = Turns::new(1 << 20);
        let one = turns.take(usize::MAX).now_or_never().flatten().unwrap();
        let two = turns.take(1000).now_or_never().flatten().unwrap();
        assert!(turns.take(1000).now_or_never().is_none(), "0.9 of a megabyte are taken");
        assert!(turns.take(100).now_or_never().is_some());
        drop((one, two));
        assert!(turns.take(1000).now_or_never().is_some());
    }

    #[test]
    fn a_caller_has_half_of_the_budget_and_what_is_done_with_is_given_back() {
        let budget = Budget::new(600);
        let (ward, lab) = (KeyLoad::default(), KeyLoad::default());
        let mut one = budget.open(Some(ward.clone()));
        one.grow_by_body(100).unwrap();
        let mut two = budget.open(Some(ward.clone()));
        assert_eq!(two.grow(1).unwrap_err().code, Code::BudgetFull);
        let mut other = budget.open(Some(lab));
        other.grow(300).unwrap();
        assert!(budget.open(None).grow(1).is_err(), "the whole budget is in use");
        drop((one, two));
        assert_eq!(ward.bytes.load(Relaxed), 0);
        drop(other);
        assert_eq!(budget.used.load(Relaxed), 0);
        budget.open(None).grow(600).unwrap();
        assert!(budget.open(None).grow(usize::MAX).is_err());
    }
}
