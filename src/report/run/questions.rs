//! What a run on questions came to: accuracy by run, cost.

use std::collections::BTreeSet;

use super::{Results, all_runs};
use crate::analysis::facts::Facts;
use crate::analysis::health::{self, ParseHealth};
use crate::analysis::metrics::cost::{self, Cost};
use crate::analysis::metrics::over_runs::{OverRuns, Spread, mean};
use crate::experiment::contents::Contents;
use crate::record::{AnswerLine, CallLine, ItemLine};
use crate::report::item::filter::{Property, is_right_at_first};
use crate::report::table::{Cell, Table};

/// The items and calls of one run, or of all.
struct Tally<'a> {
    run: Option<u32>,
    items: Vec<&'a ItemLine>,
    calls: Vec<&'a CallLine>,
}

impl<'a> Tally<'a> {
    fn graded(&self) -> Facts<&'a ItemLine> {
        Facts(vec![self.items.clone()]).only(|item| item.correct().is_some())
    }

    fn having(&self, flag: Property) -> usize {
        self.items.iter().filter(|item| flag.is_of(item, &[])).count()
    }

    fn answered(&self) -> impl Iterator<Item = &'a AnswerLine> {
        let answered = self.items.iter().filter(|item| item.error().is_none());
        answered.filter_map(|item| item.answer())
    }

    fn mean_rounds(&self) -> Cell {
        let rounds: Vec<f64> = self.answered().map(|item| f64::from(item.rounds_run)).collect();
        mean(&rounds).map_or(Cell::Nothing, |mean| Cell::Number(mean, 2))
    }

    fn accuracy(&self) -> Option<f64> {
        Some(self.graded().share(|item| item.correct() == Some(true))?.mean)
    }

    /// An item that errored is wrong, at first too.
    fn at_first(&self) -> Option<f64> {
        let is_right = |item: &&ItemLine| item.answer().and_then(is_right_at_first) == Some(true);
        Some(self.graded().share(is_right)?.mean)
    }
}

pub fn results(contents: &Contents) -> Results {
    let items: Vec<&ItemLine> = contents.outcomes().into_values().collect();
    let calls: Vec<&CallLine> = contents.calls.records.iter().collect();
    let numbers = items.iter().map(|item| item.run());
    let numbers: BTreeSet<u32> = numbers.chain(calls.iter().map(|call| call.run)).collect();
    let of_run = |run: u32| Tally {
        run: Some(run),
        items: items.iter().copied().filter(|item| item.run() == run).collect(),
        calls: calls.iter().copied().filter(|call| call.run == run).collect(),
    };
    let runs: Vec<Tally> = numbers.into_iter().map(of_run).collect();
    let all = Tally { run: None, items, calls };
    let accuracy = OverRuns::of(runs.iter().filter_map(Tally::accuracy).collect());
    let overall = accuracy.as_ref().map(Spread::from);
    let went_on = all.answered().any(|item| item.rounds_run > 0);
    let first = all.at_first().filter(|_| went_on);
    let about = first.map(|share| {
        let n = all.graded().iter().count();
        format!("The vote before any debate: {:.0} of {n} right.", share * n as f64)
    });
    let health = ParseHealth::of(&contents.calls.records);
    let mut tables = vec![table(&runs, &all, overall)];
    let calls = all.calls.iter().copied();
    if let Some(cost) = Cost::of(calls, all.items.len()) {
        let rows = [all_runs(&cost, health)];
        tables.extend(health::table(&rows));
        tables.push(cost::table(&rows));
    }
    Results { about: about.into_iter().collect(), tables, ..Results::default() }
}

/// The runs, and where there are several what they come to.
fn table(runs: &[Tally<'_>], all: &Tally<'_>, overall: Option<Spread>) -> Table {
    let rows = runs.iter().chain((runs.len() > 1).then_some(all));
    Table::of("accuracy", "Accuracy by run", rows)
        .text("run", |one| one.run.map_or("all".to_owned(), |run| run.to_string()))
        .number("accuracy", |one| one.accuracy())
        .number("round 0", |one| one.at_first())
        .replies(|one| ParseHealth::of(one.calls.iter().copied()))
        .number("items", |one| one.items.len())
        .number("graded", |one| one.graded().iter().count())
        .number("right", |one| one.having(Property::Right))
        .number("errors", |one| one.having(Property::Error))
        .number("wrong → right", |one| one.having(Property::WrongToRight))
        .number("right → wrong", |one| one.having(Property::RightToWrong))
        .number("ties", |one| one.answered().filter(|item| item.tie).count())
        .number("mean rounds", |one| one.mean_rounds())
        .note("An item that failed counts as wrong.")
        .notes(overall.map(|spread| format!("Over all runs: {spread}.")))
        .build()
}
