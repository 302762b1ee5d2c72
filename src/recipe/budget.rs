//! Independent answers at a debate's price: of each question as many samples as cost what the debate of that question did, in calls or in
//! tokens, and their vote.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Recipe;
use super::analysis::{CellOutcomes, on_dataset};
use super::results::RecipeResults;
use super::tables::{dataset, method};
use crate::analysis::facts::Facts;
use crate::analysis::metrics::bootstrap::{Estimate, paired_difference};
use crate::analysis::metrics::over_runs::mean;
use crate::analysis::table::Table;
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

pub fn budgets(recipe: &Recipe, cells: &[CellOutcomes<'_>]) -> Vec<BudgetRow> {
    let mut rows = Vec::new();
    for dataset in &recipe.dataset {
        let mut here = on_dataset(cells, &dataset.name);
        here.retain(|cell| !cell.outcomes.items.is_empty());
        let Some((reference, others)) = here.split_first() else { continue };
        for method in others.iter().filter(|cell| is_sampled(cell)) {
            let tokens = |call: &CallLine| call.usage.prompt_tokens + call.usage.completion_tokens;
            let calls = at_budget(reference, method, |_| 1);
            let both = calls.zip(at_budget(reference, method, tokens));
            rows.extend(both.map(|(calls, tokens)| BudgetRow {
                dataset: dataset.name.clone(),
                method: method.method().to_owned(),
                reference: reference.method().to_owned(),
                calls,
                tokens,
            }));
        }
    }
    rows
}

/// Whether all answers of a question are independent samples, several of an agent.
fn is_sampled(cell: &CellOutcomes<'_>) -> bool {
    let answers = cell.outcomes.answers();
    let mut answered = answers.iter().filter(|line| line.error.is_none()).peekable();
    let is_repeated = |line: &AnswerLine| {
        let agents = line.rounds.first().map_or(&[][..], |round| &round.agents);
        agents.iter().collect::<BTreeSet<_>>().len() < agents.len()
    };
    answered.peek().is_some() && answered.all(|line| line.rounds.len() == 1 && is_repeated(line))
}

/// What the calls of a cell cost together that have the same key.
fn costs<'a, K: Ord>(
    cell: &CellOutcomes<'a>,
    price: fn(&CallLine) -> usize,
    key: impl Fn(&'a CallLine) -> K,
) -> BTreeMap<K, usize> {
    let mut costs = BTreeMap::new();
    for call in cell.outcomes.contents.calls.by_key().into_values() {
        *costs.entry(key(call)).or_default() += price(call);
    }
    costs
}

/// The vote of the samples that were paid.
struct Paid {
    is_right: bool,
    samples: usize,
    is_exhausted: bool,
}

fn at_budget(
    reference: &CellOutcomes<'_>,
    method: &CellOutcomes<'_>,
    price: fn(&CallLine) -> usize,
) -> Option<AtBudget> {
    let budgets = costs(reference, price, |call| (call.run, call.item.as_str()));
    let samples =
        costs(method, price, |one| (one.run, one.item.as_str(), one.agent.as_str(), one.sample));
    let paid: Facts<Paid> = method.outcomes.answers().map(|line| {
        let budget = budgets.get(&(line.run, line.item.as_str())).copied().unwrap_or(0);
        pay(line, budget, |agent, sample| {
            samples.get(&(line.run, line.item.as_str(), agent, sample)).copied().unwrap_or(0)
        })
    });
    let over_all = |of: fn(&Paid) -> f64| mean(&paid.iter().map(of).collect::<Vec<_>>());
    let (units, right) = (method.outcomes.units(), paid.map(|one| one.is_right));
    Some(AtBudget {
        accuracy: over_all(|one| f64::from(u8::from(one.is_right)))?,
        difference: paired_difference(&reference.outcomes.right(), &right, &units)?,
        samples: over_all(|one| one.samples as f64)?,
        n_exhausted: paid.iter().filter(|one| one.is_exhausted).count(),
    })
}

/// As many samples of the question as `budget` pays, in the order in which they are voted on; `cost` is that of an agent's sample.
fn pay(line: &AnswerLine, budget: usize, cost: impl Fn(&str, u32) -> usize) -> Paid {
    let Some(round) = line.rounds.first() else {
        return Paid { is_right: false, samples: 0, is_exhausted: false };
    };
    let mut drawn: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut samples, mut spent) = (0, 0);
    for agent in &round.agents {
        let sample = drawn.entry(agent).or_default();
        spent += cost(agent, *sample);
        if spent > budget && samples > 0 {
            break;
        }
        *sample += 1;
        samples += 1;
    }
    let answers: Vec<&str> = round.answers.iter().take(samples).map(String::as_str).collect();
    let parts = |weight: &f64| (weight * f64::from(WHOLE)).round() as u32;
    let mut weights: Vec<u32> = round.weights.iter().take(samples).map(parts).collect();
    weights.resize(samples, WHOLE);
    Paid {
        is_right: line.gold.as_deref() == Some(&*vote(&answers, &weights).answer),
        samples,
        is_exhausted: samples == round.agents.len() && spent < budget,
    }
}

/// Two rows a method: at as many calls, and at as many tokens.
pub fn table(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let rows = results.budgets.iter().flat_map(|row| {
        [("calls", &row.calls), ("tokens", &row.tokens)].map(|(paid, at)| (row, paid, at))
    });
    let rows: Vec<_> = rows.collect();
    Table::of("budget", "Independent samples at a debate's price", &rows)
        .grouped_by(|(row, ..)| dataset(recipe, &row.dataset).to_owned())
        .text("method", |(row, ..)| method(recipe, &row.method))
        .text("paid in", |(_, paid, _)| *paid)
        .number("samples", |(.., at)| at.samples)
        .number("accuracy", |(.., at)| at.accuracy)
        .interval("first method less it", |(.., at)| &at.difference)
        .number("of its samples too few", |(.., at)| at.n_exhausted)
        .note("Of each question as many of a method's samples, in their order, as cost no more than what the recipe's first method did with that question in the same run, one at the least; their vote. Tokens are those of prompts and completions, each prompt counted whole. Too few: questions, of all runs, that cost the first method more than all samples.")
        .unless_empty()
}

#[cfg(test)]
mod tests;
