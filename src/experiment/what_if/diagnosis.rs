//! Failures of a panel, as far as its answers and interventions on it show them exactly; no model judges.

use serde::Serialize;

use super::change::Change;
use super::repeated::Repeated;
use super::shapley::Shapley;
use super::ward::Outcome;
use crate::record::{Cause, Flip};

/// What of these befell an item.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Diagnoses {
    /// Who gave the right answer at first, where they were less than half and the answer is another.
    pub suppressed_minority: Vec<String>,
    /// Who went over to what more than half of the others had answered in the round before.
    pub conformed: Vec<Conformed>,
    /// Who alone turns the answer: left out, put on another model or made to answer otherwise, the others being as they are.
    pub authority: Vec<String>,
    pub repeated: Vec<Repeated>,
}

#[derive(Debug, PartialEq, Serialize)]
pub struct Conformed {
    pub agent: String,
    pub round: u32,
    pub from: String,
    pub to: String,
}

impl Conformed {
    fn of(flip: Flip<'_>) -> Conformed {
        let Flip { agent, round, from, to, .. } = flip;
        let [agent, from, to] = [agent, from, to].map(str::to_owned);
        Conformed { agent, round, from, to }
    }
}

impl Diagnoses {
    /// `turned`: whether the changes turned the answer.
    pub fn new(
        before: &Outcome,
        (changes, turned): (&[Change], bool),
        shapley: Option<&Shapley>,
    ) -> Diagnoses {
        let mut found =
            Diagnoses { repeated: Repeated::among(&before.calls), ..Diagnoses::default() };
        if let Some(line) = before.line.answer() {
            if line.gold.as_ref() != Some(&line.answer) {
                let right = line.right_minority().into_iter();
                found.suppressed_minority = right.map(str::to_owned).collect();
            }
            let to_most = line.flips().filter(|flip| flip.cause == Cause::Majority);
            found.conformed = to_most.map(Conformed::of).collect();
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
        words.extend(self.repeated.iter().map(|one| {
            let Repeated { agent, round, windows, repeated } = one;
            format!("repeated evidence: of {agent}'s words in round {round}, {repeated} of {windows} were written before")
        }));
        words
    }
}
