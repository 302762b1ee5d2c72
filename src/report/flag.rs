//! What a case can be filtered by.

use serde::Serialize;

use crate::run::records::{CallRecord, ItemRecord, Parse};

/// A property of a finished item that a reader looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    Wrong,
    Right,
    /// The final answer is not round 0's aggregate.
    Changed,
    RightToWrong,
    WrongToRight,
    /// The last round's answers differ, or one is missing.
    Disagreement,
    /// A call's record was repaired or fell back to the answer alone.
    Parse,
    Error,
    Tie,
}

impl Flag {
    pub const ALL: [Flag; 9] = [
        Flag::Wrong,
        Flag::Right,
        Flag::Changed,
        Flag::RightToWrong,
        Flag::WrongToRight,
        Flag::Disagreement,
        Flag::Parse,
        Flag::Error,
        Flag::Tie,
    ];

    pub fn label(self) -> &'static str {
        match self {
            Flag::Wrong => "wrong",
            Flag::Right => "right",
            Flag::Changed => "changed in debate",
            Flag::RightToWrong => "right → wrong",
            Flag::WrongToRight => "wrong → right",
            Flag::Disagreement => "disagreement at end",
            Flag::Parse => "fallback or repaired",
            Flag::Error => "errors",
            Flag::Tie => "ties",
        }
    }

    /// Every flag of an item, in the order of [`Flag::ALL`]. An error counts as wrong where there is a gold answer.
    pub fn of(item: &ItemRecord, calls: &[&CallRecord]) -> Vec<Flag> {
        let error = item.error.is_some();
        let right = !error && item.correct == Some(true);
        let wrong = item.gold.is_some() && !right;
        let first = item.rounds.first().filter(|_| !error);
        let changed = first.is_some_and(|round| round.aggregate != item.answer);
        let right_at_first =
            first.is_some_and(|round| Some(&round.aggregate) == item.gold.as_ref());
        let last = item.rounds.last();
        Flag::ALL
            .into_iter()
            .filter(|flag| match flag {
                Flag::Wrong => wrong,
                Flag::Right => right,
                Flag::Changed => changed,
                Flag::RightToWrong => changed && right_at_first && wrong,
                Flag::WrongToRight => changed && !right_at_first && right,
                Flag::Disagreement => last.is_some_and(|round| !unanimous(&round.answers)),
                Flag::Parse => calls.iter().any(|call| call.parse != Parse::Ok),
                Flag::Error => error,
                Flag::Tie => item.tie,
            })
            .collect()
    }
}

fn unanimous(answers: &[String]) -> bool {
    match answers.split_first() {
        Some((first, others)) => !first.is_empty() && others.iter().all(|other| other == first),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures::{call, item, round};

    #[test]
    fn an_item_that_debate_turned_is_flagged_both_ways() {
        let turned = |gold: Option<&str>| {
            let rounds = vec![round(0, ["A", "A", "B"]), round(1, ["B", "B", "B"])];
            Flag::of(&item("x", gold, rounds, "B"), &[])
        };
        assert_eq!(
            turned(Some("B")),
            [Flag::Right, Flag::Changed, Flag::WrongToRight]
        );
        assert_eq!(
            turned(Some("A")),
            [Flag::Wrong, Flag::Changed, Flag::RightToWrong]
        );
        assert_eq!(turned(Some("C")), [Flag::Wrong, Flag::Changed]);
        assert_eq!(turned(None), [Flag::Changed]);
    }

    #[test]
    fn a_missing_answer_is_disagreement() {
        let rounds = vec![round(0, ["A", "", "A"])];
        let flags = Flag::of(&item("x", Some("A"), rounds, "A"), &[]);
        assert_eq!(flags, [Flag::Right, Flag::Disagreement]);
    }

    #[test]
    fn an_error_is_wrong_only_against_a_gold_answer() {
        let mut failed = item("x", Some("A"), Vec::new(), "");
        failed.error = Some("the prompt is too long".into());
        failed.correct = None;
        assert_eq!(Flag::of(&failed, &[]), [Flag::Wrong, Flag::Error]);
        failed.gold = None;
        assert_eq!(Flag::of(&failed, &[]), [Flag::Error]);
    }

    #[test]
    fn a_repaired_call_and_a_tie_are_flagged() {
        let mut tied = item("x", None, vec![round(0, ["A", "A", "A"])], "A");
        tied.tie = true;
        let mut repaired = call("x", "sym", 0);
        repaired.parse = Parse::Repaired;
        assert_eq!(Flag::of(&tied, &[&repaired]), [Flag::Parse, Flag::Tie]);
    }
}
