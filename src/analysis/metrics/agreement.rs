//! How often the trajectories of a question end in the same answer, and in the same wrong answer (MED-MAD, Figures 3 and 7, Appendix B.7).
//!
//! A trajectory is one agent's answer, or one sampled chain's. Agreement@0 and Same-wrong@0 look at the initial ones,
//! Same-wrong@final at the last round's. A question with fewer than two neither agrees nor disagrees, such as one that MDAgents calls
//! basic and gives to one agent: it is left out, and counted.

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::over_runs::{OverRuns, mean};
use crate::analysis::facts::Facts;
use crate::retrieval::cosine;

/// One question's normalised answers; none where the item errored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trajectories<'a> {
    pub initial: Vec<&'a str>,
    /// Of the last round that ran; the initial ones where there was no other.
    pub last: Vec<&'a str>,
    pub gold: &'a str,
}

/// Shares of the questions with two trajectories or more, per run and over the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    pub agreement_at_0: OverRuns,
    pub same_wrong_at_0: OverRuns,
    pub same_wrong_at_final: OverRuns,
    /// Of all questions, those with fewer than two initial trajectories, and with fewer than two at last.
    pub lone_at_0: OverRuns,
    pub lone_at_final: OverRuns,
}

impl Agreement {
    /// `None` when a run has no question with two trajectories, and without runs.
    pub fn of(questions: &Facts<Trajectories<'_>>) -> Option<Agreement> {
        let shares = |asked: fn(&Trajectories<'_>) -> bool,
                      holds: fn(&Trajectories<'_>) -> bool| {
            questions.filter_map(|one| asked(one).then(|| holds(one))).share(|holds| *holds)
        };
        let at_0 = |question: &Trajectories<'_>| question.initial.len() > 1;
        let at_last = |question: &Trajectories<'_>| question.last.len() > 1;
        Some(Agreement {
            agreement_at_0: shares(at_0, |question| agree(&question.initial))?,
            same_wrong_at_0: shares(at_0, |question| same_wrong(&question.initial, question.gold))?,
            same_wrong_at_final: shares(at_last, |question| {
                same_wrong(&question.last, question.gold)
            })?,
            lone_at_0: questions.share(|one| one.initial.len() < 2)?,
            lone_at_final: questions.share(|one| one.last.len() < 2)?,
        })
    }
}

/// Whether all of two or more trajectories chose one and the same option; an empty answer is no choice.
pub fn agree<S: AsRef<str> + PartialEq>(answers: &[S]) -> bool {
    match answers {
        [first, others @ ..] if !others.is_empty() && !first.as_ref().is_empty() => {
            others.iter().all(|other| other == first)
        }
        _ => false,
    }
}

/// Whether they agree, and not on the gold option.
pub fn same_wrong<S: AsRef<str> + PartialEq>(answers: &[S], gold: &str) -> bool {
    agree(answers) && answers[0].as_ref() != gold
}

/// The mean over all pairs of `vectors`, −1 to 1; `None` where fewer than two make no pair. A vector of zeros has the
/// cosine 0 with every other, as sentence-transformers has it.
pub fn mean_pairwise_cosine(vectors: &[Vec<f32>]) -> Option<f64> {
    let pairs = vectors.iter().tuple_combinations();
    mean(&pairs.map(|(left, right)| cosine(left, right)).collect_vec())
}

/// From the scores of two raters on the same cases, in the same order: 1 where they always agree, 0 where they do as often
/// as by chance. `None` where chance leaves no disagreement to beat: no case at all, or all scores of both the same.
pub fn cohen_kappa(left: &[u8], right: &[u8]) -> Option<f64> {
    let cost = |one: &u8, other: &u8| u64::from(one != other);
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

    #[test]
    fn empty_answers_and_lone_trajectories_are_no_agreement() {
        assert!(agree(&["B", "B", "B"]));
        assert!(!agree(&["B", "B", "C"]));
        assert!(!agree(&["", "", ""]));
        assert!(!agree(&["B", "B", ""]));
        assert!(!agree(&["B"]));
        assert!(!agree::<&str>(&[]));
    }

    #[test]
    fn agreeing_on_the_gold_option_is_not_wrong() {
        assert!(same_wrong(&["B", "B"], "A"));
        assert!(!same_wrong(&["A", "A"], "A"));
        assert!(!same_wrong(&["B", "C"], "A"));
        assert!(!same_wrong(&["", ""], "A"));
    }

    #[test]
    fn shares_over_runs() {
        let question = |initial: &[&'static str], last: &[&'static str]| Trajectories {
            initial: initial.to_vec(),
            last: last.to_vec(),
            gold: "A",
        };
        let first = vec![
            question(&["A", "A", "A"], &["A", "A", "A"]),
            question(&["B", "B", "B"], &["B", "B", "B"]),
            question(&["A", "B", "C"], &["C", "C", "C"]),
            question(&[], &[]),
        ];
        let second = vec![question(&["B", "B", "B"], &["B", "B", "A"]); 4];
        let agreement = Agreement::of(&Facts(vec![first, second])).unwrap();
        let third = 1.0 / 3.0;
        assert_eq!(agreement.agreement_at_0.per_run, [2.0 * third, 1.0]);
        assert_eq!(agreement.same_wrong_at_0.per_run, [third, 1.0]);
        assert_eq!(agreement.same_wrong_at_final.per_run, [2.0 * third, 0.0]);
        assert_eq!(agreement.lone_at_0.per_run, [0.25, 0.0]);
        assert_eq!(Agreement::of(&Facts(vec![])), None);
        assert_eq!(Agreement::of(&Facts(vec![vec![]])), None);
    }

    /// MDAgents gives a basic question to one agent, and every other to three.
    #[test]
    fn a_question_of_one_trajectory_neither_agrees_nor_disagrees() {
        let question = |initial: &[&'static str]| Trajectories {
            initial: initial.to_vec(),
            last: initial.to_vec(),
            gold: "A",
        };
        let run = vec![question(&["B"]), question(&["A"]), question(&["B", "B", "B"])];
        let agreement = Agreement::of(&Facts(vec![run])).unwrap();
        assert_eq!(agreement.agreement_at_0.per_run, [1.0]);
        assert_eq!(agreement.same_wrong_at_final.per_run, [1.0]);
        assert_eq!(agreement.lone_at_0.per_run, [2.0 / 3.0]);
        assert_eq!(agreement.lone_at_final.per_run, [2.0 / 3.0]);
        assert_eq!(Agreement::of(&Facts(vec![vec![question(&["A"]); 4]])), None);
    }
}

#[cfg(test)]
mod similarity_tests {
    use super::*;

    fn mean(vectors: &[&[f32]]) -> Option<f64> {
        let vectors: Vec<Vec<f32>> = vectors.iter().map(|vector| vector.to_vec()).collect();
        mean_pairwise_cosine(&vectors)
    }

    #[test]
    fn lengths_do_not_matter_and_every_pair_counts_once() {
        assert_eq!(mean(&[&[3.0, 4.0], &[0.3, 0.4]]), Some(1.0));
        assert_eq!(mean(&[&[1.0, 0.0], &[0.0, 2.0]]), Some(0.0));
        assert_eq!(mean(&[&[1.0, 0.0], &[-2.0, 0.0]]), Some(-1.0));
        // Pairs: 1, 0, 0.
        let three = mean(&[&[1.0, 0.0], &[1.0, 0.0], &[0.0, 1.0]]).unwrap();
        assert!((three - 1.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn one_vector_has_no_pair_and_zeros_no_direction() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[&[1.0]]), None);
        assert_eq!(mean(&[&[0.0, 0.0], &[1.0, 0.0]]), Some(0.0));
    }
}

#[cfg(test)]
mod kappa_tests {
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
        let found = cohen_kappa(&left, &right).unwrap();
        assert!((found - 0.4).abs() < 1e-15, "{found}");
    }

    #[test]
    fn constant_scores_have_no_kappa_and_one_constant_rater_has_zero() {
        assert_eq!(cohen_kappa(&[], &[]), None);
        assert_eq!(cohen_kappa(&[2, 2, 2], &[2, 2, 2]), None);
        assert_eq!(cohen_kappa(&[2, 2, 2], &[1, 2, 3]), Some(0.0));
        assert_eq!(cohen_kappa(&[1, 1], &[2, 2]), Some(0.0));
        assert_eq!(cohen_kappa(&[0, 3, 1], &[0, 3, 1]), Some(1.0));
    }
}
