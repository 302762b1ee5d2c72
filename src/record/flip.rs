//! Changes of answers between two rounds, and what the others had answered before: of a question's rounds alone, with no model as a judge.

use super::{AnswerLine, RoundLine};

/// An agent's answer in a round, where it was another in the round before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flip<'a> {
    /// Empty where no answer could be read.
    pub from: &'a str,
    pub to: &'a str,
    pub cause: Cause,
}

/// Who had given the new answer in the round before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// More than half of the others.
    Majority,
    /// One of the others at least.
    Other,
    /// Nobody.
    Nobody,
    /// The new one could not be read.
    Unread,
}

impl AnswerLine {
    /// In the order of rounds and agents. Rounds of other agents, and of several samples each, have none.
    pub fn flips(&self) -> impl Iterator<Item = Flip<'_>> {
        self.in_pairs().flat_map(|(last, round)| {
            let flip = move |at: usize| {
                let (from, to) = (&*last.answers[at], &*round.answers[at]);
                (from != to).then(|| Flip { from, to, cause: cause(last, to) })
            };
            (0..round.agents.len()).filter_map(flip)
        })
    }

    /// How often an agent stood before a round against more than half of the others, who agreed.
    pub fn faced_majorities(&self) -> usize {
        let faces = |(last, _): (&RoundLine, &RoundLine)| {
            let faces = |own: &&String| {
                let others =
                    last.answers.iter().filter(|answer| !answer.is_empty() && answer != own);
                others.clone().any(|answer| is_of_most(last, answer))
            };
            last.answers.iter().filter(faces).count()
        };
        self.in_pairs().map(faces).sum()
    }

    /// Whether somebody gave the right answer at first, and less than half of the panel did.
    pub fn has_right_minority(&self) -> bool {
        let Some((first, gold)) = self.rounds.first().zip(self.gold.as_ref()) else {
            return false;
        };
        let right = first.answers.iter().filter(|answer| *answer == gold).count();
        right > 0 && 2 * right < first.answers.len()
    }

    /// Rounds one after the other of the same agents, each asked once.
    fn in_pairs(&self) -> impl Iterator<Item = (&RoundLine, &RoundLine)> {
        let pairs = self.rounds.windows(2).map(|pair| (&pair[0], &pair[1]));
        pairs.filter(|(last, round)| {
            let agents = &round.agents;
            let is_once = (1..agents.len()).all(|at| !agents[..at].contains(&agents[at]));
            last.agents == *agents && is_once
        })
    }
}

fn cause(last: &RoundLine, to: &str) -> Cause {
    match last.answers.iter().any(|answer| answer == to) {
        _ if to.is_empty() => Cause::Unread,
        true if is_of_most(last, to) => Cause::Majority,
        true => Cause::Other,
        false => Cause::Nobody,
    }
}

/// Whether more than half of the others gave it; whoever is asked about gave another.
fn is_of_most(last: &RoundLine, answer: &str) -> bool {
    2 * last.answers.iter().filter(|given| *given == answer).count() > last.answers.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Stage;

    fn line(gold: &str, rounds: &[[&str; 3]]) -> AnswerLine {
        let round = |(number, answers): (usize, &[&str; 3])| RoundLine {
            round: number as u32,
            stage: Stage::Round,
            agents: ["sym", "ddx", "guide"].map(str::to_owned).into(),
            labels: Vec::new(),
            answers: answers.map(str::to_owned).into(),
            confidences: Vec::new(),
            weights: Vec::new(),
            aggregate: String::new(),
            brief: String::new(),
        };
        let rounds = rounds.iter().enumerate().map(round).collect();
        AnswerLine { gold: Some(gold.to_owned()), rounds, ..AnswerLine::default() }
    }

    #[test]
    fn a_flip_has_the_cause_that_the_round_before_gives() {
        let line = line("B", &[["A", "A", "B"], ["A", "B", "A"], ["C", "", "A"]]);
        let flips: Vec<_> = line.flips().map(|flip| (flip.from, flip.to, flip.cause)).collect();
        assert_eq!(
            flips,
            [
                ("A", "B", Cause::Other),
                ("B", "A", Cause::Majority),
                ("A", "C", Cause::Nobody),
                ("B", "", Cause::Unread),
            ]
        );
        // The guide before the first round of debate, ddx before the second.
        assert_eq!(line.faced_majorities(), 2);
        assert!(line.has_right_minority());
    }

    #[test]
    fn a_right_half_is_no_minority_and_samples_do_not_flip() {
        let mut line = line("A", &[["A", "A", "B"], ["B", "B", "B"]]);
        assert!(!line.has_right_minority());
        assert_eq!(line.flips().count(), 2);
        for round in &mut line.rounds {
            round.agents = vec!["solo".to_owned(); 3];
        }
        assert_eq!((line.flips().count(), line.faced_majorities()), (0, 0));
    }
}
