//! Which cases go when no more can be kept: those of whoever keeps most.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::serve::guard::Identity;

/// How long a case is kept after its end.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// The most cases kept; the oldest that has ended of whoever keeps most of them is dropped first.
const MOST: usize = 1000;

/// Whose case it is, what it takes, and when it ended; `None` while it waits or runs.
pub struct End {
    pub number: u64,
    pub owner: Option<Identity>,
    pub bytes: usize,
    pub at: Option<Instant>,
}

/// The arrival numbers of the cases to remove before another one is added; `cases` are in the order of arrival.
pub fn expired(cases: Vec<End>, now: Instant) -> Vec<u64> {
    let is_old = |end: &End| end.at.is_some_and(|at| now - at >= KEPT);
    let (old, kept): (Vec<End>, Vec<End>) = cases.into_iter().partition(is_old);
    let beyond = (kept.len() + 1).saturating_sub(MOST);
    let old = old.into_iter().map(|end| end.number);
    old.chain(excess(kept, beyond, |_| 1)).collect()
}

/// The arrival numbers of ended cases that weigh at least `beyond` together, as far as there are so many: each the oldest of whoever
/// keeps most by weight, so that nobody loses a case to one who keeps more.
pub fn excess(mut cases: Vec<End>, beyond: usize, weight: fn(&End) -> usize) -> Vec<u64> {
    let mut kept: HashMap<Option<Identity>, usize> = HashMap::new();
    for end in &cases {
        *kept.entry(end.owner).or_default() += weight(end);
    }
    let mut gone = Vec::new();
    let mut freed = 0;
    while freed < beyond {
        let of = |end: &End| kept.get(&end.owner).copied().unwrap_or_default();
        let ended = cases.iter().filter(|end| end.at.is_some());
        let Some(most) = ended.map(of).max() else { break };
        let first = cases.iter().position(|end| end.at.is_some() && of(end) == most);
        let Some(first) = first else { break };
        let end = cases.remove(first);
        let weight = weight(&end);
        if let Some(all) = kept.get_mut(&end.owner) {
            *all -= weight;
        }
        freed += weight;
        gone.push(end.number);
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_kept_for_an_hour_after_their_end_and_a_thousand_of_them() {
        let start = Instant::now();
        let minutes = |count: u64| start + Duration::from_secs(60 * count);
        let of = |at: Option<Instant>| move |number| end(number, 0, 1, at);
        let few =
            || (0..3).map(|number| end(number, 0, 1, Some(minutes(number)))).collect::<Vec<_>>();
        assert!(expired(few(), minutes(59)).is_empty());
        assert_eq!(expired(few(), minutes(61)), [0, 1]);
        // What is at work stays for ever, what ended makes room, the oldest first.
        let full = |count: usize| {
            let all = (0..10).map(of(None)).chain((10..1000).map(of(Some(start))));
            all.take(count).collect::<Vec<_>>()
        };
        assert!(expired(full(999), start).is_empty());
        assert_eq!(expired(full(1000), start), [10]);
        assert_eq!(expired(full(1000), minutes(60)).len(), 990);
        let at_work: Vec<End> = (0..1200).map(of(None)).collect();
        assert!(expired(at_work, minutes(999)).is_empty());
    }

    fn end(number: u64, owner: u8, bytes: usize, at: Option<Instant>) -> End {
        End { number, owner: Some(Identity::of_test(owner)), bytes, at }
    }

    #[test]
    fn who_keeps_most_makes_room_and_removes_nothing_of_others() {
        let start = Instant::now();
        let ended = |number, owner, bytes| end(number, owner, bytes, Some(start));
        // The case of the first owner is the oldest; the second keeps all others.
        let many: Vec<End> =
            (0..1000).map(|number| ended(number, u8::from(number > 0), 1)).collect();
        assert_eq!(expired(many, start), [1]);
        // By bytes it is the owner of few that are large.
        let sizes = || vec![ended(0, 0, 10), ended(1, 0, 10), ended(2, 1, 60), ended(3, 1, 30)];
        let bytes = |end: &End| end.bytes;
        assert!(excess(sizes(), 0, bytes).is_empty());
        assert_eq!(excess(sizes(), 1, bytes), [2]);
        assert_eq!(excess(sizes(), 61, bytes), [2, 3]);
        assert_eq!(excess(sizes(), 999, bytes), [2, 3, 0, 1]);
        // What is at work counts as kept, and stays.
        let at_work = vec![ended(0, 0, 10), end(1, 1, 90, None), ended(2, 1, 5)];
        assert_eq!(excess(at_work, 6, bytes), [2, 0]);
    }
}
