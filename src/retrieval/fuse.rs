//! Two orders made one: reciprocal rank fusion (Cormack, Clarke and Büttcher 2009).

use std::collections::BTreeMap;

/// The constant of the paper.
const K: f64 = 60.0;

/// A chunk of one of the corpora.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub shelf: usize,
    pub chunk: usize,
}

/// A chunk with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    pub place: Place,
    pub score: f32,
}

/// Best first, ties to the lower place.
pub fn sort(found: &mut [Found]) {
    found.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.place.cmp(&other.place)));
}

/// Σ 1 / (60 + rank) over the orders that have a place, ranks from 1.
pub fn fuse(orders: &[Vec<Place>]) -> Vec<Found> {
    let mut scores: BTreeMap<Place, f64> = BTreeMap::new();
    for order in orders {
        for (index, place) in order.iter().enumerate() {
            *scores.entry(*place).or_default() += 1.0 / (K + index as f64 + 1.0);
        }
    }
    let found = scores.into_iter().map(|(place, score)| Found { place, score: score as f32 });
    let mut found: Vec<Found> = found.collect();
    sort(&mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_orders_have_comes_first() {
        let place = |chunk| Place { shelf: 0, chunk };
        let fused = fuse(&[vec![place(4), place(9), place(2)], vec![place(9), place(7)]]);
        let order: Vec<usize> = fused.iter().map(|found| found.place.chunk).collect();
        assert_eq!(order, [9, 4, 7, 2]);
        assert_eq!(fused[0].score, (1.0 / 62.0 + 1.0 / 61.0) as f32);
    }
}
