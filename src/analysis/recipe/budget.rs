//! Independent answers at a debate's price: of each question as many samples as cost what the debate of that question did, in calls or in
//! tokens, and their vote.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::analysis::{CellOutcomes, on_dataset};
use crate::analysis::metrics::bootstrap::{Estimate, paired_difference};
use crate::analysis::metrics::over_runs::mean;
use crate::diagnosis::Failure;
use crate::experiment::recipe::Recipe;
use crate::experiment::recipe::file::Analysis;
use crate::record::{AnswerLine, CallLine};
use crate::systems::vote::{WHOLE, vote};

/// A method of several samples at the price of the recipe's first method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetRow {
    pub dataset: String,
    pub method: String,
    pub reference: String,
    pub calls: AtBudget,
    /// Of prompts and completions.
    pub tokens: AtBudget,
}

/// The samples that a budget pays, one at the least.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtBudget {
    /// Of their vote; an item that errored is wrong.
    pub accuracy: f64,
    /// The reference's accuracy less it.
    pub difference: Estimate,
    /// Samples of a question in the mean.
    pub samples: f64,
    /// Questions, of all runs, on which the reference cost more than all samples.
    pub n_exhausted: usize,
}

/// # Errors
/// Runs over different questions.
pub fn budgets(recipe: &Recipe, cells: &[CellOutcomes<'_>]) -> Result<Vec<BudgetRow>, Failure> {
    let mut rows = Vec::new();
    if !recipe.analyses.contains(&Analysis::EqualBudget) {
        return Ok(rows);
    }
    for dataset in &recipe.dataset {
        let mut here = on_dataset(cells, &dataset.name);
        here.retain(|cell| !cell.outcomes.items().is_empty());
        let Some((reference, others)) = here.split_first() else { continue };
        let reference_costs = &Costs::of(reference);
        for method in others.iter().filter(|cell| is_sampled(cell)) {
            let row = Priced { reference, reference_costs, method, costs: Costs::of(method) };
            rows.push(BudgetRow {
                dataset: dataset.name.clone(),
                method: method.result.method.clone(),
                reference: reference.result.method.clone(),
                calls: row.at(|_| 1)?,
                tokens: row.at(tokens)?,
            });
        }
    }
    Ok(rows)
}

/// Whether all answers of a question are independent samples, several of an agent.
fn is_sampled(cell: &CellOutcomes<'_>) -> bool {
    let lines =
        || cell.outcomes.answers().into_iter().flatten().filter(|line| line.error.is_none());
    let is_repeated = |line: &AnswerLine| {
        let agents = line.rounds.first().map_or(&[][..], |round| &round.agents);
        agents.iter().collect::<BTreeSet<_>>().len() < agents.len()
    };
    lines().next().is_some() && lines().all(|line| line.rounds.len() == 1 && is_repeated(line))
}

fn tokens(call: &CallLine) -> usize {
    call.usage.prompt_tokens + call.usage.completion_tokens
}

/// The calls of a run, by run and item.
struct Costs<'a>(BTreeMap<(u32, &'a str), Vec<&'a CallLine>>);

impl<'a> Costs<'a> {
    fn of(cell: &CellOutcomes<'a>) -> Costs<'a> {
        let mut costs: BTreeMap<(u32, &str), Vec<&CallLine>> = BTreeMap::new();
        for call in cell.outcomes.contents.calls.by_key().into_values() {
            costs.entry((call.run, &call.item)).or_default().push(call);
        }
        Costs(costs)
    }

    fn sum(
        &self,
        line: &AnswerLine,
        price: fn(&CallLine) -> usize,
        of: impl Fn(&CallLine) -> bool,
    ) -> usize {
        let calls = self.0.get(&(line.run, line.item.as_str())).into_iter().flatten();
        calls.filter(|call| of(call)).map(|call| price(call)).sum()
    }
}

/// A method whose samples are paid with what the reference cost.
struct Priced<'a, 'b> {
    reference: &'b CellOutcomes<'a>,
    reference_costs: &'b Costs<'a>,
    method: &'b CellOutcomes<'a>,
    costs: Costs<'a>,
}

/// The vote of the samples that were paid.
struct Paid {
    is_right: bool,
    samples: usize,
    is_exhausted: bool,
}

impl Priced<'_, '_> {
    fn at(&self, price: fn(&CallLine) -> usize) -> Result<AtBudget, Failure> {
        let (answers, others) = (self.method.outcomes.answers(), self.reference.outcomes.answers());
        let pay = |(line, other): (&&AnswerLine, &&AnswerLine)| {
            self.pay(line, self.reference_costs.sum(other, price, |_| true), price)
        };
        let runs = answers.iter().zip(&others);
        let paid: Vec<Vec<Paid>> =
            runs.map(|(run, other)| run.iter().zip(other).map(pay).collect()).collect();
        let right = |run: &Vec<Paid>| run.iter().map(|one| one.is_right).collect();
        let verdicts: Vec<Vec<bool>> = paid.iter().map(right).collect();
        let all = || paid.iter().flatten();
        let share = |is: bool| f64::from(u8::from(is));
        let units = self.method.outcomes.units();
        let reference = self.reference.outcomes.verdicts();
        Ok(AtBudget {
            accuracy: mean(&all().map(|one| share(one.is_right)).collect::<Vec<_>>())
                .unwrap_or(0.0),
            difference: paired_difference(&reference, &verdicts, Some(&units))?,
            samples: mean(&all().map(|one| one.samples as f64).collect::<Vec<_>>()).unwrap_or(0.0),
            n_exhausted: all().filter(|one| one.is_exhausted).count(),
        })
    }

    /// As many samples of the question as `budget` pays, in the order in which they are voted on.
    fn pay(&self, line: &AnswerLine, budget: usize, price: fn(&CallLine) -> usize) -> Paid {
        let Some(round) = line.rounds.first() else {
            return Paid { is_right: false, samples: 0, is_exhausted: false };
        };
        let mut drawn: BTreeMap<&str, u32> = BTreeMap::new();
        let (mut samples, mut spent) = (0, 0);
        for agent in &round.agents {
            let sample = drawn.entry(agent).or_default();
            let is_own = |call: &CallLine| call.agent == *agent && call.sample == *sample;
            spent += self.costs.sum(line, price, is_own);
            if spent > budget && samples > 0 {
                break;
            }
            *sample += 1;
            samples += 1;
        }
        let answers: Vec<&str> = round.answers[..samples].iter().map(String::as_str).collect();
        let parts = |weight: &f64| (weight * f64::from(WHOLE)).round() as u32;
        let mut weights: Vec<u32> = round.weights.iter().take(samples).map(parts).collect();
        weights.resize(samples, WHOLE);
        let answer = vote(&answers, &weights).answer;
        Paid {
            is_right: line.gold.as_ref() == Some(&answer),
            samples,
            is_exhausted: samples == round.agents.len() && spent < budget,
        }
    }
}

#[cfg(test)]
mod tests;
