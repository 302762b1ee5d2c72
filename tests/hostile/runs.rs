//! Run directories that were damaged or made to harm: plan, logs, results.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use proptest::prelude::*;
use wardround::data::Item;
use wardround::experiment::contents::Contents;
use wardround::experiment::directory::Directory;
use wardround::experiment::log::Log;
use wardround::experiment::plan::{CorpusPlan, Plan};
use wardround::record::{Passage, RetrievedChunk, SearchLine};
use wardround::retrieval::Searched;

use super::damage::{damaged, withstands};

type Demo = LazyLock<(tempfile::TempDir, PathBuf)>;

/// The demonstration's run, and the beginning of one that searches, made once.
static RUN: Demo = LazyLock::new(demo);
static SEARCHING: Demo = LazyLock::new(searching);

fn searching() -> (tempfile::TempDir, PathBuf) {
    let Contents { mut plan, texts, .. } = Contents::read(&RUN.1).unwrap();
    let corpus = CorpusPlan {
        searched: Searched { corpus: vec!["77".repeat(32)], ..Searched::default() },
        passage: "{title}: {text}".to_owned(),
        ..CorpusPlan::default()
    };
    plan.found.corpus = Some(corpus);
    let (dataset, items) = (&plan.dataset.name, &plan.dataset.items);
    let texts: Vec<Item> = items.iter().map(|id| texts[id].clone()).collect();
    let scratch = tempfile::tempdir().unwrap();
    let run = scratch.path().join("run");
    let log = Log::start(Directory::create(&run, &plan, &texts).unwrap()).unwrap();
    for (item, step) in items.iter().flat_map(|item| (0..3).map(move |step| (item, step))) {
        let passage = Passage {
            chunk: format!("ward/1#{step}"),
            source: "ward".to_owned(),
            title: "Fever".to_owned(),
            paragraph: step,
            score: 0.85,
            sha256: "88".repeat(32),
            text: Some("Fluids first.".to_owned()),
            ..Passage::default()
        };
        let search = SearchLine {
            dataset: dataset.clone(),
            run: 1,
            item: item.clone(),
            step,
            query: "fever in children".to_owned(),
            corpus: vec!["77".repeat(32)],
            retrieved: vec![RetrievedChunk { chunk: passage.chunk.clone(), score: 0.1 }],
            shown: vec![passage],
            ..SearchLine::default()
        };
        log.search(search).unwrap();
    }
    log.finish().unwrap();
    (scratch, run)
}

fn demo() -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_wardround"))
        .args(["demo", "--out", "demo", "--quiet"])
        .current_dir(scratch.path())
        .env("HOME", scratch.path())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let run = scratch.path().join("demo");
    (scratch, run)
}

/// Reads the run after one of its files was damaged.
fn withstands_a_damaged(run: &Path, file: &'static str) {
    let good = std::fs::read(run.join(file)).unwrap();
    // Some lines are enough; the first are whole.
    let end = good.len().min(40_000);
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(run).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    withstands(file, damaged([&good[..], &good[..end]]), |bytes| {
        std::fs::write(copy.path().join(file), &bytes).unwrap();
        let is_as_it_was = bytes == good;
        let read = Contents::read(copy.path());
        assert!(read.is_ok() || !is_as_it_was, "{:?}", read.err());
    });
}

#[test]
fn with_damaged_calls() {
    withstands_a_damaged(&RUN.1, "calls.jsonl");
}

#[test]
fn with_damaged_items() {
    withstands_a_damaged(&RUN.1, "items.jsonl");
}

#[test]
fn with_damaged_searches() {
    withstands_a_damaged(&SEARCHING.1, "searches.jsonl");
}

#[test]
fn with_a_damaged_plan() {
    withstands_a_damaged(&RUN.1, "plan.toml");
}

#[test]
fn plans_are_read_back_or_refused() {
    let good = std::fs::read(RUN.1.join("plan.toml")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path: &Path = &folder.path().join("plan.toml");
    withstands("plan", damaged([good]).boxed(), |bytes| {
        std::fs::write(path, bytes).unwrap();
        let _ = Plan::load(path);
    });
}
