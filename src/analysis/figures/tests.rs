//! Figures of runs whose answers are known, and results.json when it was changed.

use super::*;
use crate::data::Item;
use crate::digest::sha256;
use crate::experiment::fixtures::{
    ITEMS, failed_item, item, plan, start, start_with, texts, write_unfinished,
};
use crate::experiment::verify::verify;
use crate::record::AnswerLine;

#[test]
fn the_figures_of_a_run() {
    let out = tempfile::tempdir().unwrap();
    write_unfinished(out.path());
    let contents = Contents::read(out.path()).unwrap();
    let (results, figures) = write(&contents, 1234).unwrap();
    let accuracy = figures.accuracy.clone().unwrap();
    assert_eq!(accuracy.per_run, [0.5, 0.5]);
    assert_eq!((accuracy.mean, accuracy.std), (0.5, Some(0.0)));
    assert_eq!((figures.ties, figures.mean_rounds_run), (2, Some(1.0)));
    assert_eq!(figures.notes, None);
    assert!(!results.text().unwrap().contains("notes"));
    assert_eq!(verify(out.path(), None).unwrap().results, Some(results.clone()));
    assert_eq!(check(&contents, &results).unwrap(), None);
}

#[test]
fn questions_that_ask_the_same_are_named_and_one_unit() {
    let out = tempfile::tempdir().unwrap();
    let mut plan = plan();
    plan.runs = 1;
    let mut texts = texts(&["q1", "q2", "q4"]);
    for text in &mut texts[1..] {
        let Item::Question(question) = text else { panic!("{text:?}") };
        question.question = "Which, again?".to_owned();
    }
    let log = start_with(out.path(), &plan, &texts);
    for name in ["q1", "q2", "q4"] {
        log.item(AnswerLine { gold: Some("B".to_owned()), ..item(name, 0) }).unwrap();
    }
    log.finish().unwrap();
    let contents = Contents::read(out.path()).unwrap();
    let figures = Figures::of(&contents);
    assert_eq!(figures.near_duplicates, [["q2", "q4"]]);
    assert_eq!(figures.n_units, Some(2));
    let interval = RunFigures::of(&Outcomes::of(&contents)).interval.unwrap();
    assert_eq!((interval.n_questions, interval.n_units), (3, 2));
}

#[test]
fn errors_count_as_wrong_and_a_retried_item_once() {
    let out = tempfile::tempdir().unwrap();
    let log = start(out.path(), &plan());
    log.item(failed_item("q1", 0)).unwrap();
    log.item(failed_item("q2", 0)).unwrap();
    log.item(item("q2", 0)).unwrap();
    log.item(item("q3", 0)).unwrap();
    for name in ITEMS {
        log.item(item(name, 1)).unwrap();
    }
    log.finish().unwrap();
    let figures = Figures::of(&Contents::read(out.path()).unwrap());
    assert_eq!(figures.accuracy.unwrap().per_run, [0.0, 0.5]);
    assert_eq!(figures.mean_rounds_run, Some(1.0));
}

#[test]
fn without_gold_there_is_no_accuracy() {
    let out = tempfile::tempdir().unwrap();
    let mut plan = plan();
    plan.dataset.items = vec!["q3".to_owned()];
    plan.runs = 1;
    let log = start(out.path(), &plan);
    log.item(failed_item("q3", 0)).unwrap();
    log.finish().unwrap();
    let figures = Figures::of(&Contents::read(out.path()).unwrap());
    assert_eq!((figures.accuracy, figures.mean_rounds_run), (None, None));
}

#[test]
fn other_figures_are_damage_only_where_this_version_wrote_them() {
    let out = tempfile::tempdir().unwrap();
    write_unfinished(out.path());
    let contents = Contents::read(out.path()).unwrap();
    let (mut results, _) = write(&contents, 1).unwrap();
    results.figures.insert("ties".to_owned(), 9.into());
    let error = check(&contents, &results).unwrap_err().to_string();
    assert!(error.contains("found `\"ties\": 9,` where the logs give `\"ties\": 2,`"), "{error}");
    results.version = "0.0.9".to_owned();
    let note = check(&contents, &results).unwrap().unwrap();
    assert!(note.contains("version 0.0.9 wrote `\"ties\": 9,`"), "{note}");
}

/// An earlier version wrote a root over the items' lines before the figures. Its runs are as intact as they were.
#[test]
fn what_is_gone_is_left_aside_and_covered_by_the_head() {
    let out = tempfile::tempdir().unwrap();
    write_unfinished(out.path());
    let (results, _) = write(&Contents::read(out.path()).unwrap(), 1).unwrap();
    let seal = |text: &str| {
        let body = text.split_once(",\n  \"head\": ").unwrap().0;
        let head = sha256(format!("{body}\n}}\n"));
        format!("{body},\n  \"head\": \"{head}\"\n}}\n")
    };
    let root = format!("  \"items_root\": \"{}\",\n  \"accuracy\"", "0".repeat(64));
    let text = seal(&results.text().unwrap().replacen("  \"accuracy\"", &root, 1));
    let file = out.path().join(results::FILE);
    fs_err::write(&file, &text).unwrap();
    let (verified, note) = super::verify(out.path(), None).unwrap();
    assert_eq!((verified.results.unwrap().text().unwrap(), note), (text.clone(), None));
    fs_err::write(&file, text.replacen("000", "001", 1)).unwrap();
    let error = super::verify(out.path(), None).unwrap_err().to_string();
    assert!(error.contains("\"head\""), "{error}");
    fs_err::write(&file, seal(&text.replacen("\"ties\": 2", "\"ties\": 3", 1))).unwrap();
    let line = 1 + text.lines().position(|line| line.contains("\"ties\"")).unwrap();
    let error = super::verify(out.path(), None).unwrap_err().to_string();
    assert!(error.contains(&format!("line {line}: ")), "{error}");
}

#[test]
fn a_run_on_questions_without_options_still_verifies() {
    let out = tempfile::tempdir().unwrap();
    let mut plan = plan();
    (plan.runs, plan.dataset.items) = (1, vec!["q3".to_owned()]);
    plan.dataset.format = "open".to_owned();
    let text = r#"{"kind":"question","item":"q3","question":"Why?","options":{},"answer":null,"reference":"Iron.","image":null}"#;
    let log = start_with(out.path(), &plan, &[serde_json::from_str(text).unwrap()]);
    let said = ["Zinc.", "Iron."].map(str::to_owned).to_vec();
    let (reference, answer) = (Some("Iron.".to_owned()), said[1].clone());
    let line = AnswerLine { reference, answer, options: said, ..item("q3", 0) };
    assert_eq!(line.letter(), "B");
    log.item(line).unwrap();
    log.finish().unwrap();
    let contents = Contents::read(out.path()).unwrap();
    let mut figures = Figures::of(&contents).to_map(&contents).unwrap();
    figures.insert("open".to_owned(), serde_json::json!({"n": 1, "answered": 1}));
    Results::write(&contents, figures, 1).unwrap();
    let (_, note) = super::verify(out.path(), None).unwrap();
    assert!(note.unwrap().contains("figures of the format `open`"));
}

#[test]
fn a_run_has_its_digest_and_one_of_a_version_before_needs_none() {
    let out = tempfile::tempdir().unwrap();
    write_unfinished(out.path());
    let contents = Contents::read(out.path()).unwrap();
    let (mut results, _) = write(&contents, 1).unwrap();
    let digest = Value::from(compare::digest(&contents).unwrap());
    assert_eq!(results.figures[DIGEST], digest);
    results.figures.insert(DIGEST.to_owned(), "0".repeat(64).into());
    let error = check(&contents, &results).unwrap_err().to_string();
    assert!(error.contains("\"digest\""), "{error}");
    results.figures.shift_remove(DIGEST);
    assert_eq!(check(&contents, &results).unwrap(), None);
}

/// Whoever says so, and seals it anew, would have any figures taken for another version's.
#[test]
fn figures_of_a_version_that_is_yet_to_come_are_damage() {
    let out = tempfile::tempdir().unwrap();
    write_unfinished(out.path());
    let contents = Contents::read(out.path()).unwrap();
    let (mut results, _) = write(&contents, 1).unwrap();
    for version in ["99.0.0", "ours"] {
        results.version = version.to_owned();
        let error = check(&contents, &results).unwrap_err();
        let told = format!("results.json, line 3: the figures are of version {version}");
        assert!(error.to_string().contains(&told), "{error}");
    }
}
