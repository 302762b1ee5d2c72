//! An endpoint that says nothing that can be read: every system that `check` knows starts and clears no note, and a run of it is no success.

use serde_json::json;
use wardround::data::ItemKind;
use wardround::systems::{SYSTEMS, SystemConfig};

use crate::binary::Scratch;
use crate::remote::{said, serve};

#[test]
fn every_system_that_check_names_starts_and_silence_opens_no_gate() {
    let scratch = Scratch::new();
    scratch.write("bed.txt", "A man came with malaria. Aspirin was given.");
    scratch.write("exemplars.jsonl", crate::exemplars::NOTES);
    crate::corpus::write_corpus(&scratch);
    let member = serve(|_| said("..."));
    for system in SYSTEMS.iter().filter(|system| system.takes == ItemKind::Notes) {
        let config = SystemConfig::parse::<&str>(system.name, &[]).unwrap();
        let has = |key: &str| config.table.contains_key(key);
        let corpus = if config.search().is_some() { "--corpus corpus" } else { "" };
        let rerank = if has("rerank") { "--set rerank=off" } else { "" };
        let turns = if has("reflexion_turns") { "--set reflexion_turns=1" } else { "" };
        let exemplars = crate::exemplars::flags(system);
        let check = format!(
            "check bed.txt --system {} --decoding text --panel {member} {corpus} {rerank} {turns} {exemplars}",
            system.name
        );
        let outcome = scratch.wardround(format!("{check} --gate"));
        outcome.refused(1, &["whether bed has an error could not be told"]);
        let told = scratch.wardround(format!("{check} --json"));
        let finding: serde_json::Value = serde_json::from_str(&told.succeeded().stdout).unwrap();
        assert_eq!(finding["has_error"], json!(null), "{}", system.name);
    }
}

/// A log-probability that is no number of JSON, and an answer that ends in its middle: verdicts that a careless reader would find in both.
const BROKEN: [&str; 2] = [
    r#"{"model": "tiny", "choices": [{"message": {"content": "CORRECT"}, "finish_reason": "stop", "logprobs": {"content": [{"token": "CORRECT", "logprob": NaN}]}}]}"#,
    r#"{"model": "tiny", "choices": [{"message": {"content": "CORRECT"}, "finish_rea"#,
];

#[test]
fn a_broken_answer_opens_no_gate() {
    let scratch = Scratch::new();
    scratch.write("bed.txt", "A man came with malaria. Aspirin was given.");
    scratch.questions(2);
    for body in BROKEN {
        let member = serve(move |_| (200, json!(body)));
        for system in ["base-llm", "medguards"] {
            let check = format!(
                "check bed.txt --system {system} --decoding text --panel {member} --remote-attempts 1 --gate --json"
            );
            let outcome = scratch.wardround(check);
            assert_ne!(outcome.code, Some(0), "{system}: {body}");
            assert!(!outcome.stdout.contains("\"has_error\": false"), "{}", outcome.stdout);
        }
        let run = format!(
            "run zero-shot --decoding text --data questions.jsonl --format mcq --panel {member} --remote-attempts 1"
        );
        assert_ne!(
            scratch.wardround(format!("{run} --out {}", body.len())).code,
            Some(0),
            "{body}"
        );
    }
}

#[test]
fn a_run_of_which_nothing_could_be_read_is_no_success() {
    let scratch = Scratch::new();
    scratch.questions(2);
    let member = serve(|_| said("..."));
    let run = format!(
        "run zero-shot --decoding text --data questions.jsonl --format mcq --panel {member} --out out"
    );
    scratch.wardround(run).refused(1, &["none of 2 items has a result"]);
    // What was said is kept.
    scratch.wardround("verify out").succeeded();
}

/// own.toml: zero-shot on questions.jsonl.
fn write_recipe(scratch: &Scratch) {
    scratch.write(
        "own.toml",
        r#"title = "Own"
text = "Own."
runs = 1
decoding = "text"
panel = ["tiny"]
analyses = []
[[dataset]]
name = "own"
label = "Own"
file = "questions.jsonl"
format = "mcq"
[[method]]
name = "zero"
label = "zero-shot"
group = ""
system = "zero-shot"
"#,
    );
}

#[test]
fn a_dry_run_says_what_an_endpoint_would_be_asked_and_asks_it_nothing() {
    let scratch = Scratch::new();
    scratch.questions(2);
    write_recipe(&scratch);
    let member = serve(|_| panic!("asked"));
    for run in ["recipe own.toml --data-dir .", "run zero-shot --data questions.jsonl --format mcq"]
    {
        let told = scratch.wardround(format!("{run} --panel {member} --out never --dry-run"));
        assert!(told.succeeded().stdout.contains("calls      at most 2"), "{told:#?}");
    }
}

#[test]
fn a_recipe_of_which_a_cell_says_nothing_is_no_success() {
    let scratch = Scratch::new();
    scratch.questions(2);
    write_recipe(&scratch);
    let member = serve(|_| said("..."));
    let run = format!("recipe own.toml --data-dir . --panel {member} --out out");
    scratch.wardround(run).refused(1, &["items has a result", "could not be read"]);
    // Its figures and its page are there all the same.
    assert!(scratch.path("out/results.json").exists() && scratch.path("out/report.html").exists());
}
