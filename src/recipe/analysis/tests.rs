//! Tests of `analysis.rs`.

use super::*;
use crate::experiment::contents::Contents;
use crate::recipe::fixtures::{run, run_with};
use crate::recipe::paired::paired;

const METHODS: [&str; 3] = ["one", "two", "three"];

fn recipe(analyses: &str) -> Recipe {
    let mut text = format!(
        "title = \"Own\"\ntext = \"\"\nruns = 2\ndecoding = \"grammar\"\npanel = [\"tiny\"]\nanalyses = {analyses}\n\
         [[dataset]]\nname = \"medqa\"\nlabel = \"MedQA\"\nfile = \"medqa.jsonl\"\nformat = \"medqa\"\n"
    );
    for name in METHODS {
        text += &format!(
            "[[method]]\nname = \"{name}\"\nlabel = \"\"\ngroup = \"\"\nsystem = \"cot\"\n"
        );
    }
    Recipe::parse(&text, "own.toml").unwrap()
}

/// The cells of three methods of a system on the same run.
fn with_cells<T>(
    recipe: &Recipe,
    system: &str,
    contents: &Contents,
    then: impl Fn(&[CellOutcomes<'_>]) -> T,
) -> T {
    let mut contents = contents.clone();
    contents.plan.system = system.to_owned();
    let cells = recipe.cells().map(|cell| CellOutcomes { cell, outcomes: Outcomes::of(&contents) });
    then(&cells.collect::<Vec<_>>())
}

#[test]
fn the_first_method_is_set_against_the_others_whatever_its_system() {
    let recipe = recipe("[\"paired-first\"]");
    for system in ["cot", "medmad"] {
        let rows = with_cells(&recipe, system, &run(), |cells| paired(&recipe, cells));
        let pairs: Vec<(&str, &str)> =
            rows.iter().map(|row| (row.method.as_str(), row.baseline.as_str())).collect();
        assert_eq!(pairs, [("two", "one"), ("three", "one")], "{system}");
    }
}

/// As the paper has its Δ: what a method gains over the first is above 0, what it loses below.
#[test]
fn a_method_that_does_better_than_the_first_has_a_difference_above_zero() {
    // Two runs of q1 and q2: the first method is right on q1, the second on both, the third on neither.
    let all = run_with(|answer| answer.correct = answer.gold.as_ref().map(|_| true));
    let none = run_with(|answer| answer.correct = answer.gold.as_ref().map(|_| false));
    let runs = [run(), all, none];
    let recipe = recipe("[\"paired-first\"]");
    let cells = recipe.cells().zip(&runs);
    let cells =
        cells.map(|(cell, contents)| CellOutcomes { cell, outcomes: Outcomes::of(contents) });
    let rows = paired(&recipe, &cells.collect::<Vec<_>>());
    let found: Vec<(&str, &str, f64)> = rows
        .iter()
        .map(|row| (row.method.as_str(), row.baseline.as_str(), row.difference.mean))
        .collect();
    assert_eq!(found, [("two", "one", 0.5), ("three", "one", -0.5)]);
}

#[test]
fn what_has_no_gold_is_compared_with_nothing() {
    let contents = run_with(|answer| (answer.gold, answer.correct) = (None, None));
    let recipe = recipe("[\"netgain\", \"paired-first\", \"paired-best\"]");
    with_cells(&recipe, "medmad", &contents, |cells| {
        assert_eq!(net_gains(&recipe, cells), []);
        assert_eq!(paired(&recipe, cells), []);
    });
    with_cells(&recipe, "medmad", &run(), |cells| assert_eq!(net_gains(&recipe, cells).len(), 3));
}
