//! How often the trajectories of a question end in the same answer, and in the same wrong answer (MED-MAD, Figures 3 and 7, Appendix B.7).
//!
//! A trajectory is one agent's answer, or one sampled chain's. Agreement@0 and Same-wrong@0 look at the initial ones,
//! Same-wrong@final at the last round's. A question with fewer than two neither agrees nor disagrees, such as one that MDAgents calls
//! basic and gives to one agent: it is left out, and counted.

use serde::{Deserialize, Serialize};

use super::over_runs::OverRuns;

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
#[serde(deny_unknown_fields)]
pub struct Agreement {
    pub agreement_at_0: OverRuns,
    pub same_wrong_at_0: OverRuns,
    pub same_wrong_at_final: OverRuns,
    /// Of all questions, those with fewer than two initial trajectories, and with fewer than two at last.
    pub lone_at_0: OverRuns,
    pub lone_at_final: OverRuns,
}

impl Agreement {
    /// Over `[runs][questions]`; `None` when a run has no question with two trajectories, and without runs.
    pub fn over_runs(runs: &[Vec<Trajectories>]) -> Option<Agreement> {
        let shares = |asked: fn(&Trajectories) -> bool, holds: fn(&Trajectories) -> bool| {
            let of_run = |run: &Vec<Trajectories>| {
                run.iter().filter(|one| asked(one)).map(holds).collect::<Vec<_>>()
            };
            OverRuns::of_shares(&runs.iter().map(of_run).collect::<Vec<_>>())
        };
        let at_0 = |question: &Trajectories| question.initial.len() > 1;
        let at_last = |question: &Trajectories| question.last.len() > 1;
        Some(Agreement {
            agreement_at_0: shares(at_0, |question| agree(&question.initial))?,
            same_wrong_at_0: shares(at_0, |question| same_wrong(&question.initial, question.gold))?,
            same_wrong_at_final: shares(at_last, |question| {
                same_wrong(&question.last, question.gold)
            })?,
            lone_at_0: shares(|_| true, |question| question.initial.len() < 2)?,
            lone_at_final: shares(|_| true, |question| question.last.len() < 2)?,
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
        let agreement = Agreement::over_runs(&[first, second]).unwrap();
        let third = 1.0 / 3.0;
        assert_eq!(agreement.agreement_at_0.per_run, [2.0 * third, 1.0]);
        assert_eq!(agreement.same_wrong_at_0.per_run, [third, 1.0]);
        assert_eq!(agreement.same_wrong_at_final.per_run, [2.0 * third, 0.0]);
        assert_eq!(agreement.lone_at_0.per_run, [0.25, 0.0]);
        assert_eq!(Agreement::over_runs(&[]), None);
        assert_eq!(Agreement::over_runs(&[vec![]]), None);
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
        let agreement = Agreement::over_runs(&[run]).unwrap();
        assert_eq!(agreement.agreement_at_0.per_run, [1.0]);
        assert_eq!(agreement.same_wrong_at_final.per_run, [1.0]);
        assert_eq!(agreement.lone_at_0.per_run, [2.0 / 3.0]);
        assert_eq!(agreement.lone_at_final.per_run, [2.0 / 3.0]);
        assert_eq!(Agreement::over_runs(&[vec![question(&["A"]); 4]]), None);
    }
}
