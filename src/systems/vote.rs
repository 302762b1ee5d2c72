//! Votes on several answers: the weighted vote, the majority, and the log line of a round.

use itertools::Itertools;

use super::case::Verdict;
use super::reading::reply::Explained;
use crate::panel::Asked;
use crate::record::{RoundLine, Stage};

/// Of a weight of 1: weights are whole thousandths, so that sums and ties are exact.
pub const WHOLE: u32 = 1000;

/// The answer with the greatest sum of weights (App. B.4), without reasons. Empty answers have no vote; of equal sums the first in panel
/// order wins. Its confidence is the mean weight of the agents that gave the answer, 0 to 1 (App. B.4, B.8); without one it says nothing.
pub fn vote(answers: &[impl AsRef<str>], weights: &[u32]) -> Verdict {
    let weight_of = |answer: &str| -> u32 {
        let pairs = answers.iter().zip(weights);
        pairs.filter(|(given, _)| given.as_ref() == answer).map(|(_, weight)| weight).sum()
    };
    let mut winner = "";
    let mut tie = false;
    for answer in answers.iter().map(AsRef::as_ref).filter(|answer| !answer.is_empty()) {
        if winner.is_empty() || weight_of(answer) > weight_of(winner) {
            (winner, tie) = (answer, false);
        } else if answer != winner && weight_of(answer) == weight_of(winner) {
            tie = true;
        }
    }
    let count = answers.iter().filter(|given| given.as_ref() == winner).count();
    let team_confidence = f64::from(weight_of(winner)) / (WHOLE as usize * count) as f64;
    Verdict { answer: winner.to_owned(), tie, team_confidence, rationale: String::new() }
}

/// The most common value, the first of several, and how often it is there.
pub fn most<T: PartialEq + Copy>(values: &[T]) -> Option<(T, usize)> {
    let count = |value: &T| values.iter().filter(|one| *one == value).count();
    let counts = values.iter().map(|value| (*value, count(value)));
    counts.reduce(|best, one| if one.1 > best.1 { one } else { best })
}

/// Whether all gave the same letter; empty answers do not agree.
pub fn consensus(answers: &[impl AsRef<str>]) -> bool {
    let mut answers = answers.iter().map(AsRef::as_ref);
    answers.all_equal_value().is_ok_and(|letter| !letter.is_empty())
}

/// The most common letter, the first of several; empty answers have no vote.
pub fn majority(answers: &[String]) -> String {
    vote(answers, &vec![WHOLE; answers.len()]).answer
}

/// The fraction of the answers that are this letter; 0 for an empty one.
fn support(answers: &[String], answer: &str) -> f64 {
    let gave = answers.iter().filter(|given| *given == answer).count();
    if answer.is_empty() || answers.is_empty() { 0.0 } else { gave as f64 / answers.len() as f64 }
}

/// What one decides for all: as sure as others gave the same answer.
pub fn decided(decision: Explained, answers: &[String]) -> Verdict {
    let Explained { explanation, answer, .. } = decision;
    let team_confidence = support(answers, &answer);
    Verdict { team_confidence, rationale: explanation, answer, tie: false }
}

/// The line of a round without confidences, in which all votes have the same weight.
pub fn round_line(
    round: u32,
    stage: Stage,
    agents: Vec<String>,
    answers: Vec<String>,
    brief: String,
) -> RoundLine {
    RoundLine {
        round,
        stage,
        labels: Vec::new(),
        confidences: Vec::new(),
        weights: vec![1.0; agents.len()],
        agents,
        aggregate: majority(&answers),
        answers,
        brief,
    }
}

/// The same of answers with their reasons.
pub fn round_of(round: u32, stage: Stage, said: &[Asked<Explained>], brief: String) -> RoundLine {
    let agents = said.iter().map(|one| one.call.agent.clone()).collect();
    let answers = said.iter().map(|one| one.value.answer.clone()).collect();
    round_line(round, stage, agents, answers, brief)
}

/// A weight as logs have it, from 0 to 1.
pub fn of_whole(weight: u32) -> f64 {
    f64::from(weight) / f64::from(WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_answer_wins() {
        let expected = |answer: &str, tie, team_confidence| Verdict {
            answer: answer.into(),
            tie,
            team_confidence,
            rationale: String::new(),
        };
        assert_eq!(vote(&["A", "B", "B"], &[900, 500, 300]), expected("A", false, 0.9));
        assert_eq!(vote(&["A", "B", "B"], &[700, 500, 300]), expected("B", false, 0.4));
        // 0.1 + 0.2 is not 0.3 in floating point.
        assert_eq!(vote(&["C", "B", "B"], &[300, 100, 200]), expected("C", true, 0.3));
        assert_eq!(vote(&["C", "B", "A"], &[100, 500, 500]), expected("B", true, 0.5));
        assert_eq!(vote(&["C", "B", "A"], &[1000; 3]), expected("C", true, 1.0));
        assert_eq!(vote(&["A", "B", "C"], &[500, 500, 700]), expected("C", false, 0.7));
        assert_eq!(vote(&["J", "J", "A"], &[100, 100, 100]), expected("J", false, 0.1));
    }

    #[test]
    fn an_empty_answer_has_no_vote() {
        let won = vote(&["", "", "D"], &[900, 900, 100]);
        assert_eq!((won.answer.as_str(), won.tie), ("D", false));
        assert_eq!(won.team_confidence, 0.1);
        let none = vote(&["", "", ""], &[900, 700, 100]);
        assert_eq!((none.answer.as_str(), none.tie), ("", false));
    }

    fn answers(letters: &[&str]) -> Vec<String> {
        letters.iter().map(|letter| letter.to_string()).collect()
    }

    #[test]
    fn of_equally_many_the_first_wins() {
        assert_eq!(majority(&answers(&["C", "B", "A"])), "C");
        assert_eq!(majority(&answers(&["C", "B", "B"])), "B");
        assert_eq!(majority(&answers(&["", "", "D"])), "D");
        assert_eq!(majority(&answers(&["", ""])), "");
        assert_eq!(majority(&[]), "");
    }

    #[test]
    fn support_is_the_share_that_gave_it() {
        let given = answers(&["B", "B", "C", ""]);
        assert_eq!(support(&given, "B"), 0.5);
        assert_eq!(support(&given, "E"), 0.0);
        assert_eq!(support(&given, ""), 0.0);
        assert_eq!(support(&[], "A"), 0.0);
    }

    #[test]
    fn consensus_is_one_letter_from_all() {
        assert!(consensus(&["B", "B", "B"]));
        assert!(!consensus(&["B", "B", "C"]));
        assert!(!consensus(&["", "", ""]));
        assert!(!consensus(&["B", "B", ""]));
        assert!(!consensus(&[""; 0]));
    }
}
