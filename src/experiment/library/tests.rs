use std::path::Path;

use crate::experiment::chain::by_key;
use crate::experiment::contents::Contents;
use crate::experiment::directory::Directory;
use crate::experiment::error::RunError;
use crate::experiment::fixtures::{
    ITEMS, all_differences, call, item, plan, search, searching_plan, start, texts, write_results,
};
use crate::experiment::log::Log;
use crate::experiment::plan::Plan;
use crate::experiment::verify::verify;
use crate::prompts::passages;
use crate::record::{CallLine, Part, SearchKey, SearchLine, SearchPlace};

/// A call that quotes the second search of its item.
fn quoting(name: &str, run: u32) -> CallLine {
    let mut call = call(name, run, "sym");
    let passages = SearchPlace { round: 0, step: 1 };
    call.messages[1].parts = vec![Part::Text("Note.".into()), Part::Passages { passages }];
    call
}

fn write(path: &Path, took: f64) {
    let log = start(path, &searching_plan());
    for run in 0..2 {
        for name in ITEMS {
            for step in 0..2 {
                let mut search = search(name, run, step);
                search.took.embed_ms = took;
                log.search(search).unwrap();
            }
            log.call(quoting(name, run)).unwrap();
            log.item(item(name, run)).unwrap();
        }
    }
    log.finish().unwrap();
}

#[test]
fn searches_are_a_third_chain_with_a_head_of_its_own() {
    let out = tempfile::tempdir().unwrap();
    write(out.path(), 1.0);
    let results = write_results(out.path(), 1).unwrap();
    assert_eq!(results.heads.search_lines, Some(12));
    let head = results.heads.searches.unwrap();
    verify(out.path(), Some(&head)).unwrap();

    let path = out.path().join("searches.jsonl");
    let whole = fs_err::read_to_string(&path).unwrap();
    let changed = |text: &str, file: &str| {
        fs_err::write(&path, text).unwrap();
        let error = verify(out.path(), None).unwrap_err().to_string();
        assert!(error.contains(&format!("/{file}")), "{error}");
    };
    changed(&whole.replacen("Fluids", "Fluidz", 1), "searches.jsonl, line 1: ");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    changed(&lines[..11].concat(), "results.json, line ");
    changed(&whole[..whole.len() - 3], "searches.jsonl: ");
    fs_err::remove_file(&path).unwrap();
    assert!(matches!(verify(out.path(), None), Err(RunError::Missing { .. })));
}

#[test]
fn what_a_call_quotes_is_put_back_and_times_do_not_count() {
    let scratch = tempfile::tempdir().unwrap();
    let (left, right) = (scratch.path().join("left"), scratch.path().join("right"));
    write(&left, 1.0);
    write(&right, 2.0);
    assert_eq!(all_differences(&left, &right), Vec::<String>::new());
    let contents = Contents::read(&left).unwrap();
    let call = &contents.calls.records[0];
    let key = |place: SearchPlace| SearchKey {
        dataset: call.dataset.clone(),
        run: call.run,
        item: call.item.clone(),
        round: place.round,
        step: place.step,
    };
    let template = contents.plan.corpus.as_ref().unwrap().passage.as_str();
    let searches = by_key(&contents.searches.records);
    let text = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Passages { passages: place } => passages(template, searches[&key(*place)]),
    };
    let whole: String = call.messages[1].parts.iter().map(text).collect();
    assert_eq!(whole, "Note.Fever: Fluids first.");
}

#[test]
fn a_resumed_run_has_its_searches_and_a_torn_one_is_cut_off() {
    let out = tempfile::tempdir().unwrap();
    let mut plan = searching_plan();
    plan.runs = 1;
    let log = start(out.path(), &plan);
    log.search(search("q1", 0, 0)).unwrap();
    log.search(search("q1", 0, 1)).unwrap();
    let twice = log.search(search("q1", 0, 1)).unwrap_err();
    assert!(twice.to_string().ends_with("is logged already"), "{twice}");
    log.finish().unwrap();
    let path = out.path().join(<SearchLine as crate::experiment::link::Link>::FILE);
    let whole = fs_err::read(&path).unwrap();
    fs_err::write(&path, &whole[..whole.len() - 5]).unwrap();
    let planned = Plan::load(&out.path().join("plan.toml")).unwrap();
    let mut directory = Directory::begin(out.path(), &planned, &texts(&ITEMS)).unwrap();
    let finished = std::mem::take(&mut directory.finished);
    assert_eq!(finished.searches.len(), 1);
    let log = Log::start(directory).unwrap();
    log.search(search("q1", 0, 1)).unwrap();
    log.finish().unwrap();
    let heads = Contents::read(out.path()).unwrap().heads();
    assert_eq!(heads.search_lines, Some(2));
}

#[test]
fn a_run_without_a_corpus_has_no_log_of_searches() {
    let out = tempfile::tempdir().unwrap();
    let log = start(out.path(), &plan());
    let error = log.search(search("q1", 0, 0)).unwrap_err();
    assert!(error.to_string().ends_with("the plan names no corpus"), "{error}");
    log.finish().unwrap();
    assert_eq!(Contents::read(out.path()).unwrap().heads().searches, None);
    assert!(!out.path().join("searches.jsonl").exists());
}
