//! A comparison as tables: the runs, what they cost, how the first compares with each other, and what flips between them.

use itertools::Itertools;

use super::flips::{Direction, Flip};
use super::{Comparison, RunPair};
use crate::analysis::health;
use crate::analysis::metrics::cost;
use crate::analysis::metrics::over_runs::plain;
use crate::analysis::table::{Cell, Labelled, Table};
use crate::data::ItemKind;
use crate::experiment::compare::{ABSENT, FieldDifference};

impl Comparison {
    /// Markdown: the tables, then plans and flips of the first against each other.
    pub fn markdown(&self) -> String {
        let Comparison { dataset, kind, n_items, n_graded, .. } = self;
        let mut text = format!(
            "{} runs on {dataset}: {n_items} {kind}, {n_graded} with gold",
            self.runs.len()
        );
        if self.n_left_out > 0 {
            text += &format!("; {} left out, which not every run has", self.n_left_out);
        }
        text += "\n\n";
        for table in self.tables() {
            text += &format!("{}\n", table.markdown());
        }
        for line in self.warnings().iter().chain(&self.conditions) {
            text += &format!("- {line}\n");
        }
        if self.synthetic {
            text += "- synthetic weights answer noise: these figures mean nothing\n";
        }
        for pair in &self.pairs {
            text += &against(pair, self.kind);
        }
        text
    }

    /// A row a run in the first two, a row a pair in the last.
    pub fn tables(&self) -> Vec<Table> {
        let costs = self.runs.iter().filter_map(|row| {
            let of = row.figures.cost.as_ref()?;
            let (group, label, health) = (String::new(), row.run.clone(), row.figures.parse_health);
            Some(Labelled { group, label, of, health })
        });
        vec![self.accuracy(), cost::table(&costs.collect::<Vec<_>>()), self.differences()]
    }

    fn accuracy(&self) -> Table {
        Table::of("accuracy", "Accuracy", &self.runs)
            .text("run", |row| &row.run)
            .text("system", |row| &row.system)
            .spread("accuracy", |row| {
                row.figures.accuracy.as_ref().map_or("no gold".into(), Cell::from)
            })
            .text(format!("95 % over {}", self.kind), |row| Some(row.figures.interval?.ends(plain)))
            .replies(|row| row.figures.parse_health)
            .number("errored", |row| row.figures.n_errors)
            .note(health::NOTE)
            .build()
    }

    fn differences(&self) -> Table {
        let (_, answer) = nouns(self.kind);
        let title = format!("Differences from {}, paired by item", self.runs[0].run);
        let count = |pair: &RunPair, direction: Direction| {
            pair.flips.iter().filter(|flip| flip.direction == direction).count()
        };
        Table::of("differences", title, &self.pairs)
            .text("run", |pair| &pair.other)
            .interval("accuracy", |pair| pair.difference.as_ref())
            .text("exact McNemar, by run", |pair| {
                let mut tests = pair.mcnemar.iter().map(|test| {
                    let (lost, won) = (test.only_left, test.only_right);
                    format!("p = {:.4} ({won} won, {lost} lost)", test.p_value)
                });
                tests.join(", ")
            })
            .spread(format!("the same {answer}"), |pair| pair.agreement.as_ref())
            .number("right → wrong", |pair| count(pair, Direction::RightToWrong))
            .number("wrong → right", |pair| count(pair, Direction::WrongToRight))
            .build()
    }

    /// Runs of which too many replies could not be read.
    fn warnings(&self) -> Vec<String> {
        let runs = self.runs.iter();
        let of = runs.filter_map(|row| Some((row.run.clone(), row.figures.parse_health?)));
        health::warnings(of)
    }
}

/// What an item is called, and what is said of it.
fn nouns(kind: ItemKind) -> (&'static str, &'static str) {
    match kind {
        ItemKind::Questions => ("question", "option"),
        ItemKind::Notes => ("note", "flag"),
    }
}

fn against(pair: &RunPair, kind: ItemKind) -> String {
    let mut text = format!("\n## {} against {}\n\n", pair.other, pair.first);
    if pair.plan.is_empty() {
        text += "- their plans do not differ\n";
    }
    // Settings and agents that only one of two systems has are no choice of the runs.
    let of_other_systems = pair.plan.iter().any(|one| one.field == "system");
    let is_shown =
        |one: &&FieldDifference| !of_other_systems || (one.left != ABSENT && one.right != ABSENT);
    for field in pair.plan.iter().filter(is_shown) {
        text += &format!("- plan: {field}\n");
    }
    text + &flips(&pair.flips, kind)
        .map_or(String::new(), |table| format!("\n{}", table.markdown()))
}

/// A row a question or a note and a direction, with the answers of the runs one after the other in which it flips so.
fn flips(flips: &[Flip], kind: ItemKind) -> Option<Table> {
    let (item, answer) = nouns(kind);
    let rows =
        flips.chunk_by(|one, next| (&one.item, one.direction) == (&next.item, next.direction));
    Table::of("flips", format!("What flips, {item} by {item}"), rows)
        .text(item, |flips| &flips[0].item)
        .text("it goes", |flips| flips[0].direction.in_words())
        .text("gold", |flips| flips[0].gold.to_string())
        .text(format!("{answer}s"), |flips| {
            let run = |flip: &Flip| format!("run {}: {} → {}", flip.run, flip.from, flip.to);
            flips.iter().map(run).join(", ")
        })
        .unless_empty()
}
