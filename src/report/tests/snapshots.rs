//! A page and a table of each kind, word by word: what changes in them is seen.

use super::fixtures::{call, item, round};
use super::{notes, questions};
use crate::experiment::contents::Contents;
use crate::report::{Beside, Scoring, render, tables};

/// What the page says, without its style and its script.
fn body(contents: &Contents) -> String {
    let page = render(contents, &Scoring::default(), &Beside::default()).unwrap();
    let body = page.split_once("<body>").unwrap().1;
    body.rsplit_once("<script>").unwrap().0.to_owned()
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
        let tables = tables(&contents, &Scoring::default()).unwrap();
        let tables: Vec<String> = tables.iter().map(|table| table.markdown()).collect();
        insta::assert_snapshot!(format!("tables of {kind}"), tables.join("\n"));
    }
}
