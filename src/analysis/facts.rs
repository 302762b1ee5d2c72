//! Facts: a value of each item in each run, and the figures of such values.

use super::metrics::over_runs::{OverRuns, mean, share};

/// `[runs][items]`: of every run the same items, in the same order, unless some were left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts<T>(pub Vec<Vec<T>>);

impl<T> Facts<T> {
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }

    pub fn map<U>(&self, of: impl Fn(&T) -> U) -> Facts<U> {
        Facts(self.0.iter().map(|run| run.iter().map(&of).collect()).collect())
    }

    /// Of the items that have one.
    pub fn filter_map<U>(&self, of: impl Fn(&T) -> Option<U>) -> Facts<U> {
        Facts(self.0.iter().map(|run| run.iter().filter_map(&of).collect()).collect())
    }

    /// Those of some items alone.
    pub fn only(&self, takes: impl Fn(&T) -> bool) -> Facts<T>
    where
        T: Copy,
    {
        self.filter_map(|one| takes(one).then_some(*one))
    }

    /// A figure of each run, and over the runs; `None` where a run has none, and without runs.
    pub fn over_runs(&self, of: impl Fn(&[T]) -> Option<f64>) -> Option<OverRuns> {
        OverRuns::of(self.0.iter().map(|run| of(run)).collect::<Option<_>>()?)
    }

    /// The share that is so. Of what is right it is the accuracy: an item that errored is wrong and stays in the denominator.
    pub fn share(&self, is: impl Fn(&T) -> bool) -> Option<OverRuns> {
        self.over_runs(|run| share(run.iter().filter(|one| is(one)).count(), run.len()))
    }

    /// Each item's mean over the runs, of which each has every item.
    pub fn by_item(&self, of: impl Fn(&T) -> f64) -> Vec<f64> {
        let items = self.0.first().map_or(0, Vec::len);
        let over = |item: usize| mean(&self.0.iter().map(|run| of(&run[item])).collect::<Vec<_>>());
        (0..items).filter_map(over).collect()
    }
}
