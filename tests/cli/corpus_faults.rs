//! Corpora on machines that fail: a disk that is full, a kill, a model that is too large, downloads from a host on the loopback.

use std::path::{Path, PathBuf};
use std::process::Command;

use wardround::model::Family;

use crate::binary::{outcome, size};
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
    assert_eq!(size(&scratch.path("out/build.jsonl")), 0);
    scratch.wardround("corpus info out").refused(3, &["was not built to its end"]);
    scratch.wardround("corpus build --resume --out out").succeeded();
    assert!(files(&scratch.path("out")) == files(&scratch.path("whole")));
}

#[test]
fn a_build_that_was_killed_before_it_had_a_plan_is_begun_again() {
    let scratch = scratch();
    std::fs::create_dir(scratch.path("out")).unwrap();
    scratch.write("out/plan.toml.part", "schema = ");
    scratch.wardround(BUILD).succeeded();
    scratch.wardround("corpus verify out").succeeded();
    assert!(!scratch.path("out/plan.toml.part").exists());
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
    for part in
        ["qwen3: ", "encoder encoder: ", "reranker reranker: ", "of corpora are memory-mapped"]
    {
        assert!(lines.iter().any(|line| line.contains(part)), "no {part} in {lines:#?}");
    }
    assert!(planned.stdout.contains("at most 50 calls of some 350 tokens"), "{planned:#?}");
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
            "search on another device (--retrieval-device)",
        ],
    );
    assert!(!scratch.path("run").exists());
}

/// Fetched, built and searched; what may not be handed on is not asked for.
#[cfg(feature = "hub")]
#[test]
fn what_may_be_handed_on_is_fetched_from_a_hub() {
    let scratch = scratch();
    let source = |label: &str, redistribute: bool| {
        format!(
            "[[source]]\nlabel = \"{label}\"\nformat = \"jsonl\"\npath = \"hub/{label}\"\nfiles = [\"rows.jsonl\"]\nrepository = \"own/{label}\"\nlicence = \"terms of {label}\"\nredistribute = {redistribute}\n"
        )
    };
    scratch.write("own.toml", format!("name = \"own\"\n{}", source("open", true)));
    let both = format!("name = \"both\"\n{}{}", source("open", true), source("closed", false));
    scratch.write("both.toml", both);
    let rows = many_rows(3).into_bytes();
    let served = vec![("datasets/own/open/resolve/main/rows.jsonl".to_owned(), rows.clone())];
    let host = crate::datasets::Host::serve(served);
    let fetch = format!("corpus fetch both.toml --to data --endpoint {}", host.address);
    let fetched = scratch.wardround(&fetch);
    fetched.succeeded();
    assert!(fetched.stderr.contains("open: licence: terms of open"), "{fetched:#?}");
    assert!(
        fetched.stderr.contains("closed is not fetched: its licence does not let copies"),
        "{fetched:#?}"
    );
    assert_eq!(std::fs::read(scratch.path("data/hub/open/rows.jsonl")).unwrap(), rows);
    assert!(host.requests().iter().all(|request| request.contains("own/open")));
    let build = "corpus build own.toml --data-dir data --encoder encoder --out out";
    scratch.wardround(build).succeeded();
    // What is there already is not loaded again.
    scratch.wardround(&fetch).succeeded();
    let again = host.requests();
    assert!(again.is_empty(), "{again:?}");
    scratch.write("closed.toml", format!("name = \"closed\"\n{}", source("closed", false)));
    scratch
        .wardround(format!("corpus fetch closed.toml --to data --endpoint {}", host.address))
        .refused(2, &["no source of closed can be fetched"]);
    // A pattern is what the hub's list has of it, and the list of articles comes from where it lies.
    let wiki = "name = \"wiki\"\n[[source]]\nlabel = \"wiki\"\nformat = \"wikipedia\"\npath = \"wiki\"\nfiles = [\"en/*.jsonl\"]\nrepository = \"own/wiki\"\nfilter = \"topics/t.csv\"\nfilter_repository = \"own/topics\"\nlicence = \"CC BY-SA\"\nredistribute = true\n";
    scratch.write("wiki.toml", wiki);
    let listing = serde_json::json!({"sha": "0".repeat(40), "siblings": [
        {"rfilename": "en/0.jsonl"}, {"rfilename": "de/0.jsonl"}, {"rfilename": "en/1.jsonl"},
    ]});
    let of = |path: &str, bytes: &str| (format!("datasets/own/{path}"), bytes.as_bytes().to_vec());
    let served = vec![
        ("api/datasets/own/wiki/revision/main".to_owned(), listing.to_string().into_bytes()),
        of("wiki/resolve/main/en/0.jsonl", "{}"),
        of("wiki/resolve/main/en/1.jsonl", "{}\n{}"),
        of("topics/resolve/main/t.csv", "wiki_id\n1\n"),
    ];
    let hub = crate::datasets::Host::serve(served);
    scratch
        .wardround(format!("corpus fetch wiki.toml --to data --endpoint {}", hub.address))
        .succeeded();
    for file in ["wiki/en/0.jsonl", "wiki/en/1.jsonl", "topics/t.csv"] {
        assert!(scratch.path("data").join(file).is_file(), "{file}");
    }
    assert!(!scratch.path("data/wiki/de").exists());
    scratch.write("gone.toml", format!("name = \"gone\"\n{}", source("gone", true)));
    let gone =
        scratch.wardround(format!("corpus fetch gone.toml --to data --endpoint {}", host.address));
    assert!(gone.code != Some(0) && gone.stderr.contains("own/gone"), "{gone:#?}");
    assert!(!scratch.path("data/hub/gone/rows.jsonl").exists());
}
