//! Failures of a panel, as far as its answers and interventions on it show them exactly; no model judges.

use serde::Serialize;

use super::change::Change;
use super::shapley::Shapley;
use crate::record::ItemLine;

/// What of these befell an item.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Diagnoses {
    /// Who gave the right answer at first, where they were less than half and the answer is another.
    pub suppressed_minority: Vec<String>,
    /// Who went over to what more than half of the others had answered in the round before.
    pub conformed: Vec<Conformed>,
    /// Who alone turns the answer: left out, put on another model or made to answer otherwise, the others being as they are.
    pub authority: Vec<String>,
}

#[derive(Debug, PartialEq, Serialize)]
pub struct Conformed {
    pub agent: String,
    pub round: u32,
    pub from: String,
    pub to: String,
}

impl Diagnoses {
    /// `turned`: whether the changes turned the answer.
    pub fn new(
        before: &ItemLine,
        (changes, turned): (&[Change], bool),
        shapley: Option<&Shapley>,
    ) -> Diagnoses {
        let mut found = Diagnoses::default();
        if let Some(line) = before.answer() {
            let first = line.rounds.first().zip(line.gold.as_ref());
            if let Some((first, gold)) = first.filter(|(_, gold)| line.answer != **gold) {
                let given = first.agents.iter().zip(&first.answers);
                let right =
                    given.filter(|(_, answer)| *answer == gold).map(|(agent, _)| agent.clone());
                let right: Vec<String> = right.collect();
                let is_minority = 2 * right.len() < first.answers.len();
                found.suppressed_minority = if is_minority { right } else { Vec::new() };
            }
            for pair in line.rounds.windows(2).filter(|pair| pair[0].agents == pair[1].agents) {
                let [last, round] = pair else { continue };
                for (at, agent) in round.agents.iter().enumerate() {
                    let (from, to) = (last.answers[at].clone(), round.answers[at].clone());
                    // The agent itself gave another.
                    let gave = last.answers.iter().filter(|answer| **answer == to).count();
                    if from != to && !to.is_empty() && 2 * gave > last.answers.len() - 1 {
                        let (agent, round) = (agent.clone(), round.round);
                        found.conformed.push(Conformed { agent, round, from, to });
                    }
                }
            }
        }
        let mut authority: Vec<&str> = shapley.into_iter().flat_map(Shapley::pivotal).collect();
        if let Some(Some(agent)) = changes.first().map(Change::agent)
            && turned
            && changes.iter().all(|change| change.agent() == Some(agent))
            && !authority.contains(&agent)
        {
            authority.push(agent);
        }
        found.authority = authority.into_iter().map(str::to_owned).collect();
        found
    }

    /// A sentence for each that was found.
    pub fn in_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if !self.suppressed_minority.is_empty() {
            let agents = self.suppressed_minority.join(", ");
            words.push(format!("suppressed right minority: {agents}"));
        }
        words.extend(self.conformed.iter().map(|one| {
            let Conformed { agent, round, from, to } = one;
            let from = if from.is_empty() { "no answer" } else { from };
            format!("conformity: {agent} goes over from {from} to {to} in round {round}")
        }));
        if !self.authority.is_empty() {
            words.push(format!("authority: alone turns the answer: {}", self.authority.join(", ")));
        }
        words
    }
}
