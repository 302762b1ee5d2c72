//! One budget for what clients have sent and what is made of it: every body takes from it as it comes, and gives back when it is done with;
//! every answer, until it is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::error::{ApiError, Code};

/// What a byte of a body takes: itself, and two copies on its way to a prompt.
const COPIES: usize = 3;

/// The budget of a server, in bytes; clones are the same one.
#[derive(Clone, Debug)]
pub struct Budget {
    most: usize,
    used: Arc<AtomicUsize>,
}

/// A part of the budget, which is given back on drop.
#[derive(Debug)]
pub struct Reserved {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    pub fn new(most: usize) -> Budget {
        Budget { most, used: Arc::default() }
    }

    /// Nothing yet.
    pub fn open(&self) -> Reserved {
        Reserved { budget: self.clone(), bytes: 0 }
    }
}

impl Reserved {
    /// Takes what so many bytes of a body need.
    ///
    /// # Errors
    /// A budget that is used up.
    pub fn grow_by_body(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.grow(COPIES.saturating_mul(bytes))
    }

    pub fn grow(&mut self, bytes: usize) -> Result<(), ApiError> {
        let fits = |now: usize| now.checked_add(bytes).filter(|sum| *sum <= self.budget.most);
        if self.budget.used.fetch_update(Relaxed, Relaxed, fits).is_err() {
            let message =
                "the server's budget for bodies is used up; wait for answers, and read them";
            return Err(ApiError::new(Code::BudgetFull, message).retry_after(2));
        }
        self.bytes += bytes;
        Ok(())
    }

    /// The same where what takes them is made already: then nothing else gets any.
    pub fn grow_beyond(&mut self, bytes: usize) {
        self.budget.used.fetch_add(bytes, Relaxed);
        self.bytes += bytes;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_with_is_given_back() {
        let budget = Budget::new(600);
        let mut one = budget.open();
        one.grow_by_body(100).unwrap();
        let mut other = budget.open();
        other.grow(300).unwrap();
        assert_eq!(budget.open().grow(1).unwrap_err().code, Code::BudgetFull);
        drop((one, other));
        assert_eq!(budget.used.load(Relaxed), 0);
        budget.open().grow(600).unwrap();
        assert!(budget.open().grow(usize::MAX).is_err());
        let mut made = budget.open();
        made.grow_beyond(700);
        assert!(budget.open().grow(1).is_err());
    }
}
