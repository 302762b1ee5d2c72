//! Corpora on machines that fail: a disk that is full, a kill, a model that is too large.

use std::path::{Path, PathBuf};
use std::process::Command;

use wardround::model::Family;

use crate::binary::outcome;
use crate::corpus::{BUILD, scratch};

/// Rows whose texts take some hundred thousand bytes.
fn many_rows(count: usize) -> String {
    let row = |number: usize| {
        let text = format!("Row {number} on fever. ").repeat(45);
        format!("{}\n", serde_json::json!({"id": number, "text": text}))
    };
    (0..count).map(row).collect()
}

/// The files of a corpus but for what `corpus.toml` says of this machine.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        if path.ends_with("corpus.toml") {
            let text = String::from_utf8(bytes).unwrap();
            bytes = text.split("[local]").next().unwrap().into();
        }
        files.push((path.file_name().unwrap().into(), bytes));
    }
    files.sort();
    files
}

#[test]
fn a_segment_that_the_disk_does_not_hold_is_not_counted() {
    let scratch = scratch();
    scratch.write("ward.jsonl", many_rows(200));
    scratch.wardround(BUILD.replace("--out out", "--out whole")).succeeded();
    // A limit on files stands in for a disk: writing beyond it is an error.
    let mut limited = Command::new("sh");
    let binary = env!("CARGO_BIN_EXE_wardround");
    limited.arg("-c").arg(format!("trap '' XFSZ; ulimit -f 64; exec {binary} {BUILD}"));
    limited.current_dir(scratch.path(".")).env_remove("WARDROUND_ENCODER");
    limited.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    outcome(&mut limited).refused(70, &["out/texts.bin", "File too large"]);
    assert!(!scratch.path("out/progress.json").exists());
    scratch.wardround("corpus verify out").refused(3, &["was not built to its end"]);
    scratch.wardround(BUILD).succeeded();
    assert!(files(&scratch.path("out")) == files(&scratch.path("whole")));
}

#[test]
fn a_build_that_was_killed_before_it_had_a_plan_is_begun_again() {
    let scratch = scratch();
    std::fs::create_dir(scratch.path("out")).unwrap();
    scratch.write("out/.plan.toml.partial", "schema = ");
    scratch.wardround(BUILD).succeeded();
    scratch.wardround("corpus verify out").succeeded();
    assert!(!scratch.path("out/.plan.toml.partial").exists());
}

const NOTE: &str = "{\"id\": \"a\", \"text\": \"0 She had asthma.\\n1 She went home.\", \"gold\": {\"flag\": 0}}\n";

#[test]
fn an_encoder_and_a_reranker_count_in_the_memory_of_a_run() {
    let scratch = scratch();
    scratch.model(Family::Qwen3);
    scratch.write("notes.jsonl", NOTE);
    scratch.wardround(BUILD).succeeded();
    crate::corpus::reranker(&scratch);
    let run = "run medreflex --data notes.jsonl --format notes --panel qwen3 --corpus out --reranker reranker --out run --set rerank_top_k=2";
    let planned = scratch.wardround(format!("{run} --dry-run"));
    let lines: Vec<&str> =
        planned.succeeded().stdout.lines().filter(|line| line.starts_with("memory")).collect();
    for part in ["qwen3: ", "encoder encoder: ", "reranker reranker: "] {
        assert!(lines.iter().any(|line| line.contains(part)), "no {part} in {lines:#?}");
    }
    assert!(planned.stdout.contains("at most 50 calls"), "{planned:#?}");
    let config = std::fs::read_to_string(scratch.path("reranker/config.json")).unwrap();
    let huge = config.replace("\"hidden_size\": 16", "\"hidden_size\": 4194304");
    assert_ne!(huge, config);
    scratch.write("reranker/config.json", huge);
    scratch.wardround(run).refused(
        2,
        &[
            "the panel needs ",
            "; reranker reranker: ",
            "GiB of weights",
            "search without a reranker (--set rerank=off)",
        ],
    );
    assert!(!scratch.path("run").exists());
}
