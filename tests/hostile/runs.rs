//! Run directories that were damaged or made to harm: plan, logs, results.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use proptest::prelude::*;
use wardround::experiment::contents::Contents;
use wardround::experiment::plan::Plan;

use super::damage::{damaged, withstands};

type Demo = LazyLock<(tempfile::TempDir, PathBuf)>;

/// The demonstrations' runs, made once.
static RUN: Demo = LazyLock::new(|| demo("medmad"));
static SEARCHING: Demo = LazyLock::new(|| demo("medreflex"));

fn demo(system: &str) -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_wardround"))
        .args(["demo", "--system", system, "--out", "demo", "--quiet"])
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
