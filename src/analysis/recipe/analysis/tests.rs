//! Tests of `analysis.rs`.

use serde_json::json;

use super::*;
use crate::analysis::recipe::paired::paired;
use crate::experiment::contents::Contents;
use crate::experiment::fixtures;

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
fn with_cells<T>(system: &str, contents: &Contents, then: impl Fn(&[CellOutcomes<'_>]) -> T) -> T {
    let result = |method: &str| {
        serde_json::from_value(json!({
            "method": method, "dataset": "medqa", "system": system, "accuracy": [], "n_items": 3, "n_runs": 2, "n_errors": 0,
            "calls": 12, "completion_tokens": 240, "head": "",
        }))
        .unwrap()
    };
    let results: Vec<CellResult> = METHODS.map(result).into();
    let cells =
        results.iter().map(|result| CellOutcomes { result, outcomes: Outcomes::of(contents) });
    then(&cells.collect::<Vec<_>>())
}

fn run() -> Contents {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("run");
    fixtures::write_finished(&path);
    Contents::read(&path).unwrap()
}

#[test]
fn the_first_method_is_set_against_the_others_whatever_its_system() {
    let recipe = recipe("[\"paired-first\"]");
    for system in ["cot", "medmad"] {
        let rows = with_cells(system, &run(), |cells| paired(&recipe, cells).unwrap());
        let pairs: Vec<(&str, &str)> =
            rows.iter().map(|row| (row.method.as_str(), row.baseline.as_str())).collect();
        assert_eq!(pairs, [("two", "one"), ("three", "one")], "{system}");
    }
}

#[test]
fn what_has_no_gold_is_compared_with_nothing() {
    let mut contents = run();
    for line in &mut contents.items.records {
        if let ItemLine::Answer(answer) = line {
            (answer.gold, answer.correct) = (None, None);
        }
    }
    let recipe = recipe("[\"netgain\", \"paired-first\", \"paired-best\"]");
    with_cells("medmad", &contents, |cells| {
        assert_eq!(net_gains(&recipe, cells).unwrap(), []);
        assert_eq!(paired(&recipe, cells).unwrap(), []);
    });
    with_cells("medmad", &run(), |cells| assert_eq!(net_gains(&recipe, cells).unwrap().len(), 3));
}
