//! A page and a table of each kind, word by word: what changes in them is seen.

use serde_json::json;

use super::fixtures::{call, item, round};
use super::only_page;
use super::{notes, questions};
use crate::analysis::notes::CorrectionScorer;
use crate::analysis::rating::sheet::{Entry, NoteShown, Sheet, Shown};
use crate::experiment::contents::Contents;
use crate::recipe::Recipe;
use crate::recipe::cells::Cell;
use crate::recipe::results::RecipeResults;
use crate::report::{rating, recipe, tables};

/// What the page says, without its style and its script.
fn body(contents: &Contents) -> String {
    said(&only_page(contents, &CorrectionScorer::default()).unwrap())
}

fn said(page: &str) -> String {
    let body = page.split_once("<body>").unwrap().1;
    body.split("<script>").next().unwrap().to_owned()
}

fn a_question() -> Contents {
    let answered = item("x", Some("A"), vec![round(0, ["A", "B", "A"])], "A");
    let calls = ["sym", "ddx", "guide"].map(|agent| call("x", agent, 0));
    questions::contents_of(questions::records().0, vec![answered], calls.to_vec())
}

fn a_note() -> Contents {
    let mut contents = notes::records();
    contents.items.records.truncate(1);
    let first = contents.items.records[0].item().to_owned();
    contents.calls.records.retain(|call| call.item == first && call.run == 1);
    contents
}

#[test]
fn the_page_of_a_question() {
    insta::assert_snapshot!(body(&a_question()));
}

#[test]
fn the_page_of_a_note() {
    insta::assert_snapshot!(body(&a_note()));
}

#[test]
fn the_tables_of_a_run() {
    for (kind, contents) in [("questions", questions::contents()), ("notes", notes::records())] {
        let (tables, said) = tables(&contents, &CorrectionScorer::default());
        let tables = tables.iter().map(|table| table.markdown());
        let all: Vec<String> = tables.chain(said).collect();
        insta::assert_snapshot!(format!("tables of {kind}"), all.join("\n"));
    }
}

const RECIPE: &str = r#"
title = "Two methods"
text = "One question."
runs = 2
decoding = "text"
panel = ["a", "b", "c"]
analyses = []
[[dataset]]
name = "medqa"
label = "MedQA"
file = "medqa.jsonl"
format = "medqa"
[[method]]
name = "debate"
label = "MED-MAD"
group = "Debate"
system = "medmad"
"#;

#[test]
fn the_page_of_a_recipe() {
    let own = Recipe::parse(RECIPE, "two.toml").unwrap();
    let cell = Cell { method: &own.method[0], dataset: &own.dataset[0] };
    let results: RecipeResults = serde_json::from_value(json!({
        "schema": 1, "recipe": "two", "title": "Two methods", "synthetic": false,
        "conditions": ["2 runs over the same items."],
        "cells": [{
            "method": "debate", "dataset": "medqa", "system": "medmad", "accuracy": [0.5, 1.0], "mean": 0.75,
            "std": 0.35, "interval": null, "parse_health": null, "paper": [0.7, 0.1], "n_items": 1, "n_runs": 2,
            "n_errors": 0, "cost": null, "head": "0",
        }],
    }))
    .unwrap();
    let page = recipe::render(&own, &results, &[(cell, questions::contents())]).unwrap();
    insta::assert_snapshot!(said(&page));
}

#[test]
fn the_sheet_that_clinicians_rate() {
    let shown = NoteShown {
        before: "Fever for two days.".to_owned(),
        marked: "Malaria is treated with aspirin.".to_owned(),
        after: String::new(),
        finding: "An error found.",
        correction: Some("Malaria is treated with artesunate.".to_owned()),
    };
    let sheet = Sheet {
        sheet: "0123456789abcdef".to_owned(),
        kind: "notes",
        synthetic: true,
        entries: vec![Entry { code: "E1".to_owned(), shown: Shown::Note(shown) }],
    };
    insta::assert_snapshot!(said(&rating::render(&sheet).unwrap()));
}
