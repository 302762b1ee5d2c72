//! A queue whose callers take turns: what many of one caller wait for keeps no other waiting longer than a round.

use std::collections::VecDeque;

/// What waits, by caller. Each caller's own comes in order.
#[derive(Debug)]
pub struct Rotation<T> {
    /// Whose turn is next stands first. Nobody is here with nothing.
    callers: VecDeque<(u64, VecDeque<T>)>,
}

impl<T> Default for Rotation<T> {
    fn default() -> Rotation<T> {
        Rotation { callers: VecDeque::new() }
    }
}

impl<T> Rotation<T> {
    /// Behind what its caller has waiting already; a caller that comes anew stands behind the others.
    pub fn push(&mut self, caller: u64, item: T) {
        match self.callers.iter_mut().find(|(other, _)| *other == caller) {
            Some((_, own)) => own.push_back(item),
            None => self.callers.push_back((caller, VecDeque::from([item]))),
        }
    }

    /// Before what its caller has waiting, and before the others if it has nothing.
    pub fn push_first(&mut self, caller: u64, item: T) {
        match self.callers.iter_mut().find(|(other, _)| *other == caller) {
            Some((_, own)) => own.push_front(item),
            None => self.callers.push_front((caller, VecDeque::from([item]))),
        }
    }

    /// Takes the first that fits of the next caller that has some, and ends its turn. What does not fit is passed over and keeps its place.
    pub fn take(&mut self, mut fits: impl FnMut(&mut T) -> bool) -> Option<T> {
        for at in 0..self.callers.len() {
            if let Some(place) = self.callers[at].1.iter_mut().position(&mut fits) {
                let (caller, mut own) = self.callers.remove(at)?;
                let taken = own.remove(place);
                if !own.is_empty() {
                    self.callers.push_back((caller, own));
                }
                return taken;
            }
        }
        None
    }

    /// Drops what is not wanted any more.
    pub fn retain(&mut self, is_wanted: impl Fn(&T) -> bool) {
        for (_, own) in &mut self.callers {
            own.retain(&is_wanted);
        }
        self.callers.retain(|(_, own)| !own.is_empty());
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.callers.iter().flat_map(|(_, own)| own)
    }

    pub fn len(&self) -> usize {
        self.callers.iter().map(|(_, own)| own.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.callers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes the first so many.
    fn first(waiting: &mut Rotation<&'static str>, count: usize) -> Vec<&'static str> {
        (0..count).filter_map(|_| waiting.take(|_| true)).collect()
    }

    #[test]
    fn two_of_one_caller_wait_for_no_more_than_two_of_one_that_has_256() {
        let mut waiting = Rotation::default();
        (0..256).for_each(|_| waiting.push(1, "many"));
        assert_eq!(first(&mut waiting, 3), ["many"; 3]);
        waiting.push(2, "few");
        waiting.push(2, "few");
        assert_eq!(first(&mut waiting, 4), ["many", "few", "many", "few"]);
        assert_eq!((waiting.len(), waiting.iter().count()), (251, 251));
        // A third has its turn after both at the latest.
        waiting.push(2, "few");
        waiting.push(3, "one");
        assert!(first(&mut waiting, 3).contains(&"one"));
    }

    #[test]
    fn what_does_not_fit_keeps_its_place_and_what_comes_back_is_first() {
        let mut waiting = Rotation::default();
        ["a", "b"].into_iter().for_each(|item| waiting.push(1, item));
        waiting.push(2, "c");
        assert_eq!(waiting.take(|item| *item != "a"), Some("b"));
        assert_eq!(waiting.take(|item| *item != "a"), Some("c"));
        assert_eq!(waiting.take(|item| *item != "a"), None);
        waiting.push_first(1, "z");
        waiting.push_first(3, "y");
        assert_eq!(first(&mut waiting, 9), ["y", "z", "a"]);
        waiting.push(1, "d");
        waiting.retain(|_| false);
        assert!(waiting.is_empty());
    }
}
