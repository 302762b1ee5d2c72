//! What a case can be filtered by.

use serde::Serialize;

use crate::analysis::metrics::agreement::same_wrong;
use crate::record::{AnswerLine, CallLine, Parse, Stage};

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
    /// All first answers agree, and are wrong.
    SameWrong,
    /// The answers of the last round in which several answered differ, or one is missing.
    Disagreement,
    /// No record could be read from a call's text; the answer alone was taken from it.
    Fallback,
    /// A call's record was read after mending.
    Repaired,
    Error,
    Tie,
}

impl Flag {
    pub const ALL: [Flag; 11] = [
        Flag::Wrong,
        Flag::Right,
        Flag::Changed,
        Flag::RightToWrong,
        Flag::WrongToRight,
        Flag::SameWrong,
        Flag::Disagreement,
        Flag::Fallback,
        Flag::Repaired,
        Flag::Error,
        Flag::Tie,
    ];

    pub fn label(self) -> &'static str {
        match self {
            Flag::Wrong => "wrong",
            Flag::Right => "right",
            Flag::Changed => "changed after round 0",
            Flag::RightToWrong => "flipped right → wrong",
            Flag::WrongToRight => "flipped wrong → right",
            Flag::SameWrong => "same wrong at first",
            Flag::Disagreement => "disagreement at end",
            Flag::Fallback => "parse fallback",
            Flag::Repaired => "parse repaired",
            Flag::Error => "errors",
            Flag::Tie => "ties",
        }
    }

    /// Every flag of an item, in the order of [`Flag::ALL`]. An error counts as wrong where there is a gold answer.
    pub fn of(item: &AnswerLine, calls: &[&CallLine]) -> Vec<Flag> {
        let error = item.error.is_some();
        let right = !error && item.correct == Some(true);
        let wrong = item.gold.is_some() && !right;
        let first = item.rounds.first().filter(|_| !error);
        let changed = first.is_some_and(|round| round.aggregate != item.answer);
        let right_at_first =
            first.is_some_and(|round| Some(&round.aggregate) == item.gold.as_ref());
        let last = item.rounds.iter().rfind(|round| round.answers.len() > 1);
        let parsed = |parse| calls.iter().any(|call| call.parse == parse);
        Flag::ALL
            .into_iter()
            .filter(|flag| match flag {
                Flag::Wrong => wrong,
                Flag::Right => right,
                Flag::Changed => changed,
                Flag::RightToWrong => changed && right_at_first && wrong,
                Flag::WrongToRight => changed && !right_at_first && right,
                Flag::SameWrong => same_wrong_at_first(item),
                Flag::Disagreement => last.is_some_and(|round| !unanimous(&round.answers)),
                Flag::Fallback => parsed(Parse::Fallback),
                Flag::Repaired => parsed(Parse::Repaired),
                Flag::Error => error,
                Flag::Tie => item.tie,
            })
            .collect()
    }
}

fn same_wrong_at_first(item: &AnswerLine) -> bool {
    let mut rounds = item.rounds.iter();
    let initial = rounds.find(|round| round.stage == Stage::Initial);
    let answers = initial.map(|round| round.answers.iter().map(String::as_str).collect::<Vec<_>>());
    let gold = item.gold.as_deref();
    answers.is_some_and(|answers| gold.is_some_and(|gold| same_wrong(&answers, gold)))
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
    use crate::record::RoundLine;
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
        assert_eq!(Flag::of(&tied, &[&repaired]), [Flag::Repaired, Flag::Tie]);
        repaired.parse = Parse::Fallback;
        assert_eq!(Flag::of(&tied, &[&repaired]), [Flag::Fallback, Flag::Tie]);
    }

    #[test]
    fn first_answers_are_wrong_alike_only_where_there_are_several() {
        let flags = |answers: Vec<RoundLine>| Flag::of(&item("x", Some("B"), answers, "A"), &[]);
        assert_eq!(
            flags(vec![round(0, ["A", "A", "A"])]),
            [Flag::Wrong, Flag::SameWrong]
        );
        assert_eq!(flags(vec![round(0, ["A"])]), [Flag::Wrong]);
        assert_eq!(
            flags(vec![round(0, ["", ""])]),
            [Flag::Wrong, Flag::Changed, Flag::Disagreement]
        );
    }

    #[test]
    fn whoever_decides_alone_ends_no_disagreement() {
        let mut decided = round(1, ["A"]);
        decided.stage = Stage::Final;
        let rounds = vec![round(0, ["A", "B"]), decided];
        let flags = Flag::of(&item("x", Some("A"), rounds, "A"), &[]);
        assert_eq!(flags, [Flag::Right, Flag::Disagreement]);
    }
}
