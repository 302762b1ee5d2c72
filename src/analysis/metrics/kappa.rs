//! Cohen's kappa: how far two raters agree beyond what their own habits of scoring would give by chance.
//!
//! κ = 1 − Σ w·O / Σ w·E over all pairs of scores: O is how often the raters gave that pair, E how often they would if each
//! kept his frequencies and neither looked at the case (Cohen 1960). Unweighted, w is 1 wherever the scores differ;
//! quadratic, the square of their distance (Cohen 1968).

/// What a disagreement costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// Every one the same.
    None,
    /// The square of the distance between the scores.
    Quadratic,
}

/// From the scores of two raters on the same cases, in the same order: 1 where they always agree, 0 where they do as often
/// as by chance. `None` where chance leaves no disagreement to beat: no case at all, or all scores of both the same.
pub fn cohen_kappa(left: &[u8], right: &[u8], weights: Weights) -> Option<f64> {
    let cost = |&one: &u8, &other: &u8| match weights {
        Weights::None => u64::from(one != other),
        Weights::Quadratic => u64::from(one.abs_diff(other)).pow(2),
    };
    let pairs = left.iter().zip(right);
    let observed: u64 = pairs.map(|(one, other)| cost(one, other)).sum();
    let all_pairs = left.iter().flat_map(|one| right.iter().map(move |other| cost(one, other)));
    // Over n² pairs, where the observed ones are over n.
    let expected: u64 = all_pairs.sum();
    (expected > 0).then(|| 1.0 - (observed * left.len() as u64) as f64 / expected as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both said yes 20 times, no 15 times; the first alone yes 5 times, the second alone 10 times: observed 0.7, by chance
    /// 0.5, so (0.7 − 0.5) / (1 − 0.5).
    #[test]
    fn the_textbook_table_gives_two_fifths() {
        let table = [(1, 1, 20), (1, 0, 5), (0, 1, 10), (0, 0, 15)];
        let side = |of: fn(&(u8, u8, usize)) -> u8| {
            let runs = table.iter().map(|row| vec![of(row); row.2]);
            runs.collect::<Vec<_>>().concat()
        };
        let (left, right) = (side(|row| row.0), side(|row| row.1));
        for weights in [Weights::None, Weights::Quadratic] {
            let found = cohen_kappa(&left, &right, weights).unwrap();
            assert!((found - 0.4).abs() < 1e-15, "{weights:?}: {found}");
        }
    }

    /// By hand: 2 of the 4 differ, by 1 and by 2; of all 16 pairs 12 do, and their squares sum to 32.
    #[test]
    fn a_far_disagreement_weighs_more() {
        let (left, right) = ([0, 1, 2, 3], [0, 2, 2, 1]);
        let unweighted = cohen_kappa(&left, &right, Weights::None).unwrap();
        assert!((unweighted - (1.0 - 2.0 * 4.0 / 12.0)).abs() < 1e-15);
        let quadratic = cohen_kappa(&left, &right, Weights::Quadratic).unwrap();
        assert!((quadratic - (1.0 - 5.0 * 4.0 / 32.0)).abs() < 1e-15);
    }

    #[test]
    fn constant_scores_have_no_kappa_and_one_constant_rater_has_zero() {
        for weights in [Weights::None, Weights::Quadratic] {
            assert_eq!(cohen_kappa(&[], &[], weights), None);
            assert_eq!(cohen_kappa(&[2, 2, 2], &[2, 2, 2], weights), None);
            assert_eq!(cohen_kappa(&[2, 2, 2], &[1, 2, 3], weights), Some(0.0));
            assert_eq!(cohen_kappa(&[1, 1], &[2, 2], weights), Some(0.0));
            assert_eq!(cohen_kappa(&[0, 3, 1], &[0, 3, 1], weights), Some(1.0));
        }
        assert_eq!(cohen_kappa(&[0, 3], &[3, 0], Weights::Quadratic), Some(-1.0));
    }
}
