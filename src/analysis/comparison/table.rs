//! A comparison as tables: the runs, what they cost, and how the first compares with each other.

use itertools::Itertools;
use serde_json::json;

use super::{Comparison, RunPair};
use crate::analysis::health;
use crate::analysis::metrics::cost;
use crate::analysis::metrics::over_runs::plain;
use crate::analysis::table::{Cell, Labelled, Table};
use crate::data::ItemKind;
use crate::experiment::compare::{ABSENT, FieldDifference};

impl Comparison {
    /// A row a run in the first two, a row a pair in the third, under which stands what holds of all.
    pub fn tables(&self) -> Vec<Table> {
        let costs = self.runs.iter().filter_map(|row| {
            let of = row.figures.cost.as_ref()?;
            let (group, label, health) = (String::new(), row.run.clone(), row.figures.parse_health);
            Some(Labelled { group, label, of, health })
        });
        vec![self.accuracy(), cost::table(&costs.collect::<Vec<_>>()), self.differences()]
    }

    fn accuracy(&self) -> Table {
        let Comparison { dataset, kind, n_items, n_graded, .. } = self;
        let mut title = format!(
            "Accuracy of {} runs on {dataset}: {n_items} {kind}, {n_graded} with gold",
            self.runs.len()
        );
        if self.n_left_out > 0 {
            title += &format!("; {} left out, which not every run has", self.n_left_out);
        }
        Table::of("accuracy", title, &self.runs)
            .text("run", |row| &row.run)
            .text("system", |row| &row.system)
            .spread("accuracy", |row| {
                row.figures.accuracy.as_ref().map_or("no gold".into(), Cell::from)
            })
            .figures(format!("95 % over {}", self.kind), ["accuracy low", "accuracy high"], |row| {
                let one = row.figures.interval?;
                Some(Cell::Figures(one.ends(plain), vec![json!(one.low), json!(one.high)]))
            })
            .replies(|row| row.figures.parse_health)
            .number("errored", |row| row.figures.n_errors)
            .build()
    }

    fn differences(&self) -> Table {
        let answer = match self.kind {
            ItemKind::Questions => "option",
            ItemKind::Notes => "flag",
        };
        let title = format!("Differences from {}, paired by item", self.runs[0].run);
        let n_tests = self.pairs.iter().map(|pair| pair.mcnemar.len()).max().unwrap_or(0);
        let names = (0..n_tests)
            .map(|run| ["p", "won", "lost"].map(|figure| format!("mcnemar run {run} {figure}")));
        Table::of("differences", title, &self.pairs)
            .text("run", |pair| &pair.other)
            .interval("accuracy", |pair| pair.difference.as_ref())
            .figures("exact McNemar, by run", names.flatten(), |pair| {
                let mut tests = pair.mcnemar.iter().map(|test| {
                    let (lost, won) = (test.only_left, test.only_right);
                    format!("p = {:.4} ({won} won, {lost} lost)", test.p_value)
                });
                let figures = pair.mcnemar.iter().flat_map(|test| {
                    [json!(test.p_value), json!(test.only_right), json!(test.only_left)]
                });
                Cell::Figures(tests.join(", "), figures.collect())
            })
            .spread(format!("the same {answer}"), |pair| pair.agreement.as_ref())
            .number("right → wrong", |pair| pair.right_to_wrong)
            .number("wrong → right", |pair| pair.wrong_to_right)
            .notes(self.pairs.iter().map(plans))
            .notes(self.warnings())
            .notes(self.conditions.iter().cloned())
            .notes(self.synthetic.then(|| health::SYNTHETIC.to_owned()))
            .build()
    }

    /// Runs of which too many replies could not be read; and runs that repeat their items unequally often.
    pub fn warnings(&self) -> Vec<String> {
        let runs = self.runs.iter();
        let of = runs.filter_map(|row| Some((row.run.clone(), row.figures.parse_health?)));
        let unequal = !self.runs.iter().map(|row| row.figures.n_runs).all_equal();
        let unequal = unequal.then(|| "Warning: not all ran their items equally often: differences and intervals are over all of it, tests, agreement and what turned over as many as both have.".to_owned());
        health::warnings(of, "runs").into_iter().chain(unequal).collect()
    }
}

/// What a pair was run with differently.
fn plans(pair: &RunPair) -> String {
    // What is of one system alone, or each has of its own, is no choice of the runs.
    const OWN: [&str; 3] = ["system", "prompts_sha256", ".agent"];
    let of_other_systems = pair.plan.iter().any(|one| one.field == "system");
    let is_own = |one: &FieldDifference| OWN.iter().any(|own| one.field.ends_with(own));
    let is_absent = |one: &FieldDifference| [&*one.left, &*one.right].contains(&ABSENT);
    let is_shown = |one: &&FieldDifference| !of_other_systems || !(is_own(one) || is_absent(one));
    let fields = pair.plan.iter().filter(is_shown).join("; ");
    let RunPair { first, other, .. } = pair;
    match fields.as_str() {
        "" => format!("Plans of {first} against {other}: no other choice differs."),
        fields => format!("Plans of {first} against {other}: {fields}."),
    }
}
