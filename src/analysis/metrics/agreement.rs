//! How often the trajectories of a question end in the same answer, and in the same wrong answer (MED-MAD, Figures 3 and 7, Appendix B.7).
//!
//! A trajectory is one agent's answer, or one sampled chain's. Agreement@0 and Same-wrong@0 look at the initial ones,
//! Same-wrong@final at the last round's.

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

/// Shares of all questions, per run and over the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agreement {
    pub agreement_at_0: OverRuns,
    pub same_wrong_at_0: OverRuns,
    pub same_wrong_at_final: OverRuns,
}

impl Agreement {
    /// Over `[runs][questions]`; `None` without runs, or when one of them has no question.
    pub fn over_runs(runs: &[Vec<Trajectories>]) -> Option<Agreement> {
        let shares = |holds: fn(&Trajectories) -> bool| {
            let runs: Vec<Vec<bool>> =
                runs.iter().map(|run| run.iter().map(holds).collect()).collect();
            OverRuns::of_shares(&runs)
        };
        Some(Agreement {
            agreement_at_0: shares(|question| agree(&question.initial))?,
            same_wrong_at_0: shares(|question| same_wrong(&question.initial, question.gold))?,
            same_wrong_at_final: shares(|question| same_wrong(&question.last, question.gold))?,
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
        assert_eq!(agreement.agreement_at_0.per_run, [0.5, 1.0]);
        assert_eq!(agreement.same_wrong_at_0.per_run, [0.25, 1.0]);
        assert_eq!(agreement.same_wrong_at_final.per_run, [0.5, 0.0]);
        assert_eq!(agreement.same_wrong_at_final.mean, 0.25);
        assert_eq!(Agreement::over_runs(&[]), None);
        assert_eq!(Agreement::over_runs(&[vec![]]), None);
    }
}
