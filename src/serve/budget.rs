//! One budget for what clients have sent and what is made of it: every body takes from it as it comes, and gives back when it is done with.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::admission::KeyLoad;
use super::error::{ApiError, Code};

/// What a byte of a body takes: itself, and two copies on its way to a prompt.
const COPIES: usize = 3;
/// What a value of JSON takes in memory, however short it is written.
pub const VALUE_BYTES: usize = 96;

/// The budget of a server, in bytes.
#[derive(Debug)]
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

    /// # Errors
    /// See [`Reserved::grow_by_body`].
    pub fn grow(&mut self, bytes: usize) -> Result<(), ApiError> {
        let full = |whose: &str| {
            let message = format!("{whose} budget for request bodies is used up; wait for answers");
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
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Relaxed);
        if let Some(caller) = &self.caller {
            caller.bytes.fetch_sub(self.bytes, Relaxed);
        }
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
